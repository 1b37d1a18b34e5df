#!/usr/bin/env python3
"""Checks a running toykat from outside, through its portal alone:

    ./test_toykat.py http://10.8.67.101 [receptors, default 4]

The sensors of every receptor are live and move, a point request moves the azimuth,
nonsense is refused, and the rows land in the database.
"""

import json
import sys
import time
import urllib.error
import urllib.request


class Portal:
    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def call(self, path: str, body=None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def receptors(self) -> dict[str, dict]:
        return {r["name"]: r for r in self.call("/api/state")[1]["receptors"]}

    def value(self, receptor: str, sensor: str):
        return self.receptors()[receptor]["sensors"][sensor]["value"]


def wait(seconds: float, what: str, check) -> None:
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.25)
    print("ok  ", what)


def main(url: str, count: int) -> None:
    portal = Portal(url)
    wait(60, "the portal is healthy: it has fresh rows of every receptor", lambda: portal.call("/healthz")[0] == 200)

    before = portal.receptors()
    assert len(before) == count, f"{len(before)} receptors, not {count}: {sorted(before)}"
    print("ok  ", f"{count} receptors")

    def moved(name: str) -> bool:
        now = portal.receptors()[name]
        return now["connected"] and all(
            now["sensors"][s]["value"] != before[name]["sensors"][s]["value"] for s in ("wind.speed", "temp.receiver")
        )

    for name in before:
        wait(10, f"{name}: wind and temperature move", lambda: moved(name))

    name = sorted(before)[0]
    start = portal.value(name, "pos.actual-azim")
    azim = start - 10 if start > 40 else start + 10
    status, reply = portal.call(f"/api/receptors/{name}/point", {"azim": azim, "elev": 60})
    assert status == 200, reply
    wait(5, f"{name}: leaves azimuth {start:.2f}", lambda: abs(portal.value(name, "pos.actual-azim") - start) > 0.5)
    wait(30, f"{name}: reaches azimuth {azim:.2f}", lambda: abs(portal.value(name, "pos.actual-azim") - azim) < 0.1)

    status, reply = portal.call(f"/api/receptors/{name}/point", {"azim": 300, "elev": 60})
    assert status == 409 and "outside" in reply["error"], (status, reply)
    print("ok  ", f"{name}: refuses azimuth 300: {reply['error']}")

    def recorded() -> bool:
        points = portal.call(f"/api/history?receptor={name}&sensor=pos.actual-azim&seconds=60")[1]["points"]
        values = [value for _, value in points]
        return len(values) > 5 and abs(values[-1] - azim) < 0.1 and max(values) - min(values) > 5

    wait(15, f"{name}: the move is recorded in the database", recorded)
    written = portal.call("/api/state")[1]["database"]["written"]
    wait(10, "rows go on landing in the database", lambda: portal.call("/api/state")[1]["database"]["written"] > written + 50)
    portal.call(f"/api/receptors/{name}/stow", {})


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 4)
    except (AssertionError, OSError) as error:
        sys.exit(f"FAIL {error}")
