"""A simulated dish. It slews at two degrees in a second."""

import time

from cam import Fail

SLEW, STOWED = 2.0, (0.0, 90.0)


class Dish:
    def __init__(self) -> None:
        self.at, self.goal, self.since = STOWED, STOWED, time.monotonic()

    def now(self) -> tuple:
        way = SLEW * (time.monotonic() - self.since)
        return tuple(round(goal - max(abs(goal - at) - way, 0) * (1 if goal > at else -1), 3) for at, goal in zip(self.at, self.goal))

    async def point(self, azim, elev) -> list:
        goal = float(azim), float(elev)
        if not (-185 <= goal[0] <= 275 and 15 <= goal[1] <= 90):
            raise Fail("out of reach")
        self.at, self.goal, self.since = self.now(), goal, time.monotonic()
        return []

    async def stow(self) -> list:
        return await self.point(*STOWED)


def start(device):
    dish = Dish()
    device.sensors["pos.azim"] = lambda: dish.now()[0]
    device.sensors["pos.elev"] = lambda: dish.now()[1]
    device.sensors["mode"] = lambda: "stationary" if dish.now() == dish.goal else "slew"
    device.requests["point"], device.requests["stow"] = dish.point, dish.stow
    return []
