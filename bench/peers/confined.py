"""A script that confines itself: everything that it starts and writes is gone when it ends."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
os.umask(0o022)  # whatever the caller's is: containers that are not privileged reach what is made
CACHE = os.environ.get("ORRERY_BENCH", "/var/cache/orrery-bench")


def work(peer):
    """The directory for this run's files; outside a sandbox, starts the script once more in one instead."""
    if "ORRERY_BENCH_WORK" not in os.environ:
        path = f"{CACHE}/run/{peer}-{os.getpid()}"
        os.environ["ORRERY_BENCH_WORK"] = path
        os.execv(f"{HERE}/sandbox", ["sandbox", path, os.path.realpath(sys.argv[0]), *sys.argv[1:]])
    return os.environ.pop("ORRERY_BENCH_WORK")
