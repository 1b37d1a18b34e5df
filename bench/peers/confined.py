"""Runs a script in a sandbox: everything it starts and writes is removed when it ends."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
os.umask(0o022)  # regardless of the caller's: unprivileged containers must reach the files
CACHE = os.environ.get("ORRERY_BENCH", "/var/cache/orrery-bench")


def work(peer):
    """Returns the directory for this run's files. Outside of a sandbox, it starts the script again in one instead."""
    if "ORRERY_BENCH_WORK" not in os.environ:
        path = f"{CACHE}/run/{peer}-{os.getpid()}"
        os.environ["ORRERY_BENCH_WORK"] = path
        os.execv(f"{HERE}/sandbox", ["sandbox", path, os.path.realpath(sys.argv[0]), *sys.argv[1:]])
    return os.environ.pop("ORRERY_BENCH_WORK")
