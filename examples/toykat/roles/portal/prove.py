"""What `orrery ci` runs on the portal (see [test.*] in site.toml):

    prove.py receptors    the portal shows every receptor of the inventory, with live sensors
    prove.py point        a ?point request moves a receptor, and its new azimuth arrives in PostgreSQL
"""

import asyncio
import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import asyncpg

CONFIG = json.loads(Path("/etc/portal.json").read_text())
PORTAL = f"http://127.0.0.1:{CONFIG['port']}"


def call(path: str, body=None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(PORTAL + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.load(reply)


def state() -> dict[str, dict]:
    return {receptor["name"]: receptor for receptor in call("/api/state")["receptors"]}


def within(seconds: float, what: str, check) -> None:
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.2)
    print(what, flush=True)


def receptors() -> None:
    inventory = json.loads(Path(os.environ["ORRERY_INVENTORY"]).read_text())
    declared = sorted(node["name"] for node in inventory["nodes"] if "receptor" in node["roles"])
    assert declared, "the inventory has no receptor"

    def shown() -> bool:
        now = state()
        return sorted(now) == declared and all(r["connected"] and len(r["sensors"]) >= 5 for r in now.values())

    within(20, f"the portal shows {', '.join(declared)}", shown)
    first = state()

    def live() -> bool:
        now = state()
        return all(now[n]["sensors"]["wind.speed"]["time"] > first[n]["sensors"]["wind.speed"]["time"] for n in declared)

    within(10, "all of them send new samples", live)


async def newest(receptor: str) -> float:
    config = dict(CONFIG["database"])
    password = Path(config.pop("password_file")).read_text().strip()
    database = await asyncpg.connect(**config, password=password, timeout=5)
    try:
        return await database.fetchval(
            "SELECT value FROM samples WHERE receptor = $1 AND sensor = 'pos.actual-azim' ORDER BY time DESC LIMIT 1", receptor
        )
    finally:
        await database.close()


def point() -> None:
    name = sorted(state())[0]

    def azimuth() -> float:
        return state()[name]["sensors"]["pos.actual-azim"]["value"]

    start = azimuth()
    goal = start - 10 if start > 40 else start + 10
    call(f"/api/receptors/{name}/point", {"azim": goal, "elev": 60})
    within(30, f"{name} moves from azimuth {start:.2f} to {goal:.2f}", lambda: abs(azimuth() - goal) < 0.1)
    within(10, "PostgreSQL has a sample of it", lambda: abs(asyncio.run(newest(name)) - goal) < 0.1)
    call(f"/api/receptors/{name}/stow", {})


if __name__ == "__main__":
    {"receptors": receptors, "point": point}[sys.argv[1]]()
