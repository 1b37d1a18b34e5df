"""Writes the newest sample of each sensor to where nginx finds it."""

import asyncio
import json
import os
from pathlib import Path

import cam

PAGE = Path("/var/lib/cam/sensors.json")
NEWEST = """SELECT DISTINCT ON (node, sensor) node, sensor, value, time::text
            FROM samples WHERE time > now() - interval '1 minute' ORDER BY node, sensor, time DESC"""


async def show() -> None:
    while True:
        try:
            archive = await cam.database()
            try:
                while True:
                    rows = [dict(row) for row in await archive.fetch(NEWEST)]
                    PAGE.with_suffix(".new").write_text(json.dumps(rows))
                    os.replace(PAGE.with_suffix(".new"), PAGE)
                    await asyncio.sleep(2)
            finally:
                archive.terminate()
        except Exception as reason:  # whatever it is: the archive comes back
            print("the archive:", reason or type(reason).__name__, flush=True)
        await asyncio.sleep(1)


def start(device):
    return [show()]
