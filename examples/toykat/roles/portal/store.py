"""The samples table: a bounded buffer in front of it, so that a database away for a while costs nothing."""

import asyncio
import logging
from collections import deque
from datetime import timedelta
from pathlib import Path

import asyncpg

log = logging.getLogger("store")

COLUMNS = ("time", "receptor", "sensor", "value", "text", "status")
FLUSH_SECONDS = 0.5
PRUNE_SECONDS = 60
# What may go wrong with a database that is away, comes back, or changes its mind.
AWAY = (OSError, asyncio.TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


def reason(error: Exception) -> str:
    """What an exception says; a timeout says nothing but its name."""
    return str(error) or type(error).__name__


class Store:
    def __init__(self, config: dict, keep_seconds: float) -> None:
        config = dict(config)
        secret = Path(config.pop("password_file"))
        # min_size=0: connections are made when needed, so the portal starts without the database,
        # and broken ones are replaced. The password is read anew for each.
        self._pool = asyncpg.create_pool(
            **config, password=lambda: secret.read_text().strip(), min_size=0, max_size=4, timeout=5, command_timeout=5
        )
        self._keep = timedelta(seconds=keep_seconds)
        self._buffer: deque[tuple] = deque(maxlen=20_000)
        self.written = 0
        self.error: str | None = None

    def add(self, row: tuple) -> None:
        """Take one row (see COLUMNS); it is written within FLUSH_SECONDS."""
        self._buffer.append(row)

    async def run(self) -> None:
        """Write and prune for ever."""
        await self._pool
        try:
            await asyncio.gather(self._every(FLUSH_SECONDS, self.flush), self._every(PRUNE_SECONDS, self.prune))
        finally:
            self._pool.terminate()

    async def _every(self, seconds: float, do) -> None:
        while True:
            try:
                await do()
                self.error = None
            except AWAY as error:
                if self.error is None:
                    log.warning("database: %s", reason(error))
                self.error = reason(error)
            await asyncio.sleep(seconds)

    async def flush(self) -> None:
        rows = list(self._buffer)
        if not rows:
            return
        self._buffer.clear()
        try:
            await self._pool.copy_records_to_table("samples", records=rows, columns=COLUMNS)
        except BaseException:
            # Put back what was not written, before what has come in since.
            self._buffer.extendleft(reversed(rows[len(self._buffer):]))
            raise
        self.written += len(rows)

    async def prune(self) -> None:
        await self._pool.execute("DELETE FROM samples WHERE time < now() - $1::interval", self._keep)

    async def ages(self) -> dict[str, float]:
        """Seconds since the newest row of each receptor that has one of the last minute."""
        rows = await self._pool.fetch(
            "SELECT receptor, extract(epoch FROM now() - max(time))::float8 AS age FROM samples"
            " WHERE time > now() - interval '1 minute' GROUP BY receptor"
        )
        return {row["receptor"]: row["age"] for row in rows}

    async def history(self, receptor: str, sensor: str, seconds: float, points: int = 300) -> list[tuple[float, float]]:
        """(time, value) of the last seconds, thinned to about so many points by averaging."""
        rows = await self._pool.fetch(
            "SELECT extract(epoch FROM max(time))::float8 AS time, avg(value) AS value FROM samples"
            " WHERE receptor = $1 AND sensor = $2 AND time > now() - $3::interval AND value IS NOT NULL"
            " GROUP BY floor(extract(epoch FROM time) / $4::float8) ORDER BY 1",
            receptor, sensor, timedelta(seconds=seconds), seconds / points,
        )
        return [(row["time"], row["value"]) for row in rows]
