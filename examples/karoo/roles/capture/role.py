"""Captures: a file on the shared storage for each observation, here only of what was to be in it."""

import json
import time
from pathlib import Path

captured = 0


async def capture(name, *receptors) -> list:
    global captured
    to = Path("/srv/data/captures")
    to.mkdir(exist_ok=True)
    began = time.time()
    (to / f"{began:.0f}-{name}.json").write_text(json.dumps({"target": name, "receptors": receptors, "began": began}))
    captured += 1
    return []


def start(device):
    device.sensors["captured"] = lambda: captured
    device.requests["capture"] = capture
    return []
