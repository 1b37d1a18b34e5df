"""Measures the three tools: the clock runs from the start of the tool until every node serves its gauge."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.realpath(__file__))
CACHE = os.environ.get("ORRERY_BENCH", "/var/cache/orrery-bench")
PATIENCE = 60  # seconds for the service to answer after the tool has ended
SETTINGS = {"LC_ALL": "C.UTF-8"}  # environment variables; each tool adds its own


def main(peer, command):
    """command(inventory, directory) returns the words of the command. It runs in directory with its own HOME, so
    that settings, known hosts and open connections of the user have no effect."""
    with open(sys.argv[1]) as file:
        inventory = json.load(file)
    directory = tempfile.mkdtemp(prefix="bench-")
    try:
        words = command(inventory, directory)
        environment = {**os.environ, **SETTINGS, "HOME": directory, "BENCH_ROLE": f"{HERE}/../role"}
        begun = time.monotonic()
        result = subprocess.run(words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode:
            raise SystemExit(f"{peer}: status {result.returncode}\n{result.stdout}")
        configured = time.monotonic()
        for name, address in inventory["nodes"].items():
            wait(name, address)
        ended = time.monotonic()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(json.dumps({"peer": peer, "n": len(inventory["nodes"]), "seconds": round(ended - begun, 3),
                      "tool_seconds": round(configured - begun, 3)}), flush=True)


def wait(name, address):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}:8085/", timeout=1) as answer:
                state = json.load(answer)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{name}: no gauge at {address}: {error}")
            time.sleep(0.05)
    if state != {"node": name, "address": address}:
        raise SystemExit(f"{name}: wrong gauge: {state}")
