"""Follows one receptor: keeps a KATCP connection, samples every sensor, remembers the newest readings."""

import asyncio
import logging
from datetime import datetime, timezone
from typing import Callable

import aiokatcp

log = logging.getLogger("follow")

RETRY_SECONDS = 1
WATCHDOG_SECONDS = 2
ANSWER_SECONDS = 4


class Watcher(aiokatcp.SensorWatcher):
    """Mirrors the sensors. The library subscribes with ?sensor-sampling NAME auto: the receptor sets the rates."""

    def __init__(self, client: aiokatcp.Client, receptor: "Receptor") -> None:
        super().__init__(client)
        self._receptor = receptor

    def state_updated(self, state: aiokatcp.SyncState) -> None:
        if state is aiokatcp.SyncState.SYNCED:  # until then the former readings stand
            self._receptor.sensors = self.sensors
        # Closed or disconnected, the sensors are unreachable; the library marks them only for the latter.
        super().state_updated(aiokatcp.SyncState.DISCONNECTED if state is aiokatcp.SyncState.CLOSED else state)

    def sensor_updated(self, name, value, status, timestamp) -> None:  # aiokatcp 2.2 has no set_sensor_value
        super().sensor_updated(name, value, status, timestamp)
        sensor = self.sensors.get(name)
        if sensor is not None and sensor.timestamp == timestamp:  # else its value could not be read
            self._receptor.sampled(sensor)


class Receptor:
    def __init__(self, name: str, host: str, port: int, add: Callable[[tuple], None]) -> None:
        self.name, self.host, self.port = name, host, port
        self.sensors: aiokatcp.SensorSet | dict = {}
        self._add = add
        self._client: aiokatcp.Client | None = None

    @property
    def connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    def sampled(self, sensor: aiokatcp.Sensor) -> None:
        number, text = split(plain(sensor.value))
        when = datetime.fromtimestamp(sensor.timestamp, timezone.utc)
        self._add((when, self.name, sensor.name, number, text, sensor.status.name.lower()))

    async def run(self) -> None:
        """Connect, follow, and begin again when the receptor is lost, for ever."""
        while True:
            try:
                await self._follow()
            except (OSError, asyncio.TimeoutError, aiokatcp.ProtocolError, aiokatcp.FailReply, aiokatcp.InvalidReply) as error:
                log.info("%s: %s", self.name, str(error) or type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        self._client = client = aiokatcp.Client(self.host, self.port, auto_reconnect=False)
        try:
            client.add_sensor_watcher(Watcher(client, self))
            async with asyncio.timeout(ANSWER_SECONDS):
                await client.wait_connected()
            log.info("%s: connected", self.name)
            # A node that was destroyed does not say goodbye: only silence tells.
            while True:
                await self.request("watchdog")
                await asyncio.sleep(WATCHDOG_SECONDS)
        finally:
            client.close()
            await client.wait_closed()

    async def request(self, name: str, *args) -> None:
        """Send a request; raises FailReply when the receptor refuses and OSError or TimeoutError when it is away."""
        if self._client is None:
            raise ConnectionError("not connected")
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._client.request(name, *args)

    def state(self) -> dict:
        return {
            "name": self.name,
            "address": self.host,
            "connected": self.connected,
            "sensors": {
                s.name: {
                    "value": plain(s.value),
                    "units": s.units,
                    "status": s.status.name.lower(),
                    "time": s.timestamp,
                    "description": s.description,
                }
                for s in self.sensors.values()
            },
        }


def plain(value):
    """A sensor's value as JSON has it."""
    if isinstance(value, aiokatcp.client.DiscreteMixin):  # the type that SensorWatcher makes for discrete sensors
        value = value.value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, (bool, int, float)) else str(value)


def split(value) -> tuple[float | None, str | None]:
    """A plain value as the two columns of the table: a number, or else a text."""
    return (None, value) if isinstance(value, str) else (float(value), None)
