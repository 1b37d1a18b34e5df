"""A simulated receptor: one dish with its weather, as a KATCP device."""

import asyncio
import json
import math
import random
import signal
import sys
import time

from aiokatcp import DeviceServer, FailReply, RequestContext, Sensor, SensorSampler

from dish import AZIM, ELEV, ON_TARGET, Dish, Mode, azel
from weather import Drift

TICK = 0.2  # seconds between steps of the simulation
WIND_LIMIT = 15.0  # m/s: above it the dish stows itself and refuses to move


def limits(warn: float, error: float):
    """A status function: nominal below warn, error from error on."""

    def status(value: float) -> Sensor.Status:
        if value >= error:
            return Sensor.Status.ERROR
        return Sensor.Status.WARN if value >= warn else Sensor.Status.NOMINAL

    return status


class Receptor(DeviceServer):
    VERSION = "toykat-receptor-1.0"
    BUILD_STATE = "toykat-receptor-1.0.0"

    def __init__(self, config: dict, host: str = "") -> None:
        super().__init__(host, config["port"])
        self.config = config
        self.dish = Dish()
        self.target: tuple[float, float] | None = None  # right ascension, declination
        rng = random.Random(config["name"])  # every receptor drifts in its own way
        self.drifts = {
            self._sensor("temp.ambient", "Air temperature at the pedestal", "degC", limits(40, 45)): Drift(24, 1.5, 600, rng),
            self._sensor("temp.drive", "Temperature of the azimuth drive", "degC", limits(60, 75)): Drift(38, 2.0, 120, rng),
            self._sensor("temp.receiver", "Temperature of the cryogenic receiver", "K", limits(85, 100)): Drift(72, 0.6, 60, rng),
            self._sensor("wind.speed", "Wind speed at the dish", "m/s", limits(10, WIND_LIMIT)): Drift(5, 1.0, 30, rng),
        }
        self._sensor("pos.actual-azim", "Azimuth that the dish has", "deg")
        self._sensor("pos.actual-elev", "Elevation that the dish has", "deg")
        self._sensor("pos.request-azim", "Azimuth that was asked for", "deg")
        self._sensor("pos.request-elev", "Elevation that was asked for", "deg")
        self._sensor("pos.error", "Distance from the target, on the worse axis", "deg", limits(ON_TARGET, math.inf))
        self._sensor("lock", "Whether the dish is on its target", kind=bool)
        self._sensor("mode", "What the dish is doing", kind=Mode)
        for axis, metres in zip(("east", "north", "up"), config["position"]):
            self.sensors.add(Sensor(float, f"position.{axis}", f"Distance {axis} of the array's centre", "m",
                                    metres, Sensor.Status.NOMINAL))
        self.update()

    def _sensor(self, name, description, units="", status=None, kind=float) -> str:
        """Declare a sensor; a client that samples it by "auto" hears of a change
        after half a second at the soonest, and of no change every two seconds."""
        more = {"status_func": status} if status else {}
        self.sensors.add(
            Sensor(kind, name, description, units, auto_strategy=SensorSampler.Strategy.EVENT_RATE,
                   auto_strategy_parameters=(0.5, 2.0), **more)
        )
        return name

    async def start(self) -> None:
        await super().start()
        self.add_service_task(asyncio.create_task(self._run()))

    async def _run(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(TICK)
            now = time.monotonic()
            self.step(now - last)
            last = now

    def step(self, seconds: float) -> None:
        for name, drift in self.drifts.items():
            self.sensors[name].value = drift.step(seconds)
        if self.windy:
            self.target = None
            self.dish.stow()
        if self.target:
            try:
                self.dish.track(*self.target_azel())
            except ValueError:  # the target has set
                self.target = None
                self.dish.stop()
        self.dish.step(seconds)
        self.update()

    @property
    def windy(self) -> bool:
        return self.sensors["wind.speed"].value >= WIND_LIMIT

    def target_azel(self) -> tuple[float, float]:
        return azel(*self.target, self.config["latitude"], self.config["longitude"], time.time())

    def update(self) -> None:
        """Show the dish's state in the sensors."""
        off = self.dish.off_target > ON_TARGET
        status = Sensor.Status.WARN if off else Sensor.Status.NOMINAL
        now = time.time()
        for name, value in (
            ("pos.actual-azim", self.dish.azim),
            ("pos.actual-elev", self.dish.elev),
            ("lock", not off),
        ):
            self.sensors[name].set_value(value, status, now)
        self.sensors["pos.request-azim"].set_value(self.dish.wanted_azim, timestamp=now)
        self.sensors["pos.request-elev"].set_value(self.dish.wanted_elev, timestamp=now)
        self.sensors["pos.error"].set_value(self.dish.off_target, timestamp=now)
        self.sensors["mode"].set_value(self.dish.mode, timestamp=now)

    def _move(self, target: tuple[float, float] | None, move, *args: float) -> None:
        if self.windy:
            raise FailReply(f"wind is above {WIND_LIMIT:g} m/s: the dish is stowed")
        try:
            move(*args)
        except ValueError as error:
            raise FailReply(str(error)) from None
        self.target = target
        self.update()

    async def request_point(self, ctx: RequestContext, azim: float, elev: float) -> None:
        """Point at a fixed azimuth and elevation (degrees)."""
        self._move(None, self.dish.point, azim, elev)

    async def request_track(self, ctx: RequestContext, ra: float, dec: float) -> None:
        """Follow a star of this right ascension and declination (degrees)."""
        where = azel(ra, dec, self.config["latitude"], self.config["longitude"], time.time())
        self._move((ra, dec), self.dish.track, *where)

    async def request_stop(self, ctx: RequestContext) -> None:
        """Stop where the dish is."""
        self._move(None, self.dish.stop)

    async def request_stow(self, ctx: RequestContext) -> None:
        """Move to the stow position, elevation 90 degrees."""
        self.target = None
        self.dish.stow()
        self.update()


async def main(path: str) -> None:
    with open(path) as file:
        config = json.load(file)
    server = Receptor(config)
    await server.start()
    for signum in (signal.SIGTERM, signal.SIGINT):
        server.loop.add_signal_handler(signum, server.halt)
    print(f"{config['name']} serves KATCP on port {config['port']}", flush=True)
    await server.join()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
