"""What cron runs: the next target of the schedule. What was observed is on the shared storage."""

import asyncio
import time
from pathlib import Path

import cam

SCHEDULE = [("vela-x", 40.0, 55.0), ("hydra-a", 70.0, 35.0), ("pictor-a", 120.0, 60.0), ("cen-a", 200.0, 45.0)]


def main() -> None:
    done = Path("/srv/data/observations")
    number = len(done.read_text().splitlines()) if done.exists() else 0
    ((target, *receptors),) = asyncio.run(cam.ask("subarray", "observe", *SCHEDULE[number % len(SCHEDULE)], timeout=10))
    with done.open("a") as log:
        log.write(f"{time.time():.0f} {target} {' '.join(receptors)}\n")


main()
