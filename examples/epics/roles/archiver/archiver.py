"""Archive process variables in a database: archiver.py SETTINGS, or with --check whether all have new rows."""

import asyncio
import json
import sqlite3
import sys
import time

from aioca import caget


def connect():
    database = sqlite3.connect("/srv/archive/values.db", isolation_level=None, timeout=10)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE IF NOT EXISTS samples (time REAL, name TEXT, value REAL)")
    database.execute("CREATE INDEX IF NOT EXISTS by_name ON samples (name, time)")
    return database


async def archive(names, seconds):
    database = connect()
    while True:
        for value in await caget(names, timeout=5, throw=False):
            if value.ok:
                database.execute("INSERT INTO samples VALUES (?, ?, ?)", (time.time(), value.name, float(value)))
        await asyncio.sleep(seconds)


def check(names, seconds):
    recent = {name for name, in connect().execute("SELECT DISTINCT name FROM samples WHERE time > ?",
                                                  (time.time() - seconds - 10,))}
    if missing := set(names) - recent:
        sys.exit(f"no new values of {', '.join(sorted(missing))}")


with open(sys.argv[1]) as file:
    settings = json.load(file)
if "--check" in sys.argv:
    check(**settings)
else:
    asyncio.run(archive(**settings))
