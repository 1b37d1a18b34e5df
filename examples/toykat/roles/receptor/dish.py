"""The motion of one dish: arithmetic only, no clock and no network, so that it is easily tested."""

import enum
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """Limits of an axis, in degrees, and how fast it slews, in degrees per second."""

    name: str
    low: float
    high: float
    rate: float

    def check(self, angle: float) -> None:
        # "not (a <= x <= b)" also refuses a NaN.
        if not self.low <= angle <= self.high:
            raise ValueError(f"{self.name} {angle:g} deg is outside {self.low:g}..{self.high:g} deg")

    def towards(self, actual: float, wanted: float, seconds: float) -> float:
        reach = self.rate * seconds
        return actual + max(-reach, min(reach, wanted - actual))


AZIM = Axis("azimuth", -185.0, 275.0, 2.0)
ELEV = Axis("elevation", 15.0, 90.0, 1.0)
STOW_ELEV = 90.0
ON_TARGET = 0.05  # degrees


class Mode(enum.Enum):
    STOP = 0
    SLEW = 1
    POINT = 2
    TRACK = 3
    STOW = 4


class Dish:
    def __init__(self, azim: float = 0.0, elev: float = STOW_ELEV) -> None:
        self.azim, self.elev = azim, elev
        self.wanted_azim, self.wanted_elev = azim, elev
        self._goal = Mode.STOW

    @property
    def off_target(self) -> float:
        """Degrees between where the dish is and where it was asked to be (the worse axis)."""
        return max(abs(self.wanted_azim - self.azim), abs(self.wanted_elev - self.elev))

    @property
    def mode(self) -> Mode:
        return self._goal if self.off_target <= ON_TARGET else Mode.SLEW

    def point(self, azim: float, elev: float, goal: Mode = Mode.POINT) -> None:
        AZIM.check(azim)
        ELEV.check(elev)
        self.wanted_azim, self.wanted_elev, self._goal = azim, elev, goal

    def stow(self) -> None:
        """Face the sky, where the wind has least hold of the dish."""
        self.point(self.azim, STOW_ELEV, Mode.STOW)

    def stop(self) -> None:
        self.point(self.azim, self.elev, Mode.STOP)

    def track(self, azim: float, elev: float) -> None:
        """Point at azimuth 0..360, by whichever turn of the cable is nearer."""
        turns = [a for a in (azim - 360, azim, azim + 360) if AZIM.low <= a <= AZIM.high]
        self.point(min(turns, key=lambda a: abs(a - self.azim)), elev, Mode.TRACK)

    def step(self, seconds: float) -> None:
        self.azim = AZIM.towards(self.azim, self.wanted_azim, seconds)
        self.elev = ELEV.towards(self.elev, self.wanted_elev, seconds)


def azel(ra: float, dec: float, latitude: float, longitude: float, unix: float) -> tuple[float, float]:
    """Where a star stands (degrees; good to some arc minutes, as no precession is applied)."""
    days = unix / 86400.0 - 10957.5  # since J2000
    sidereal = 280.46062 + 360.98564737 * days + longitude
    h, d, lat = (math.radians(x) for x in (sidereal - ra, dec, latitude))
    up = math.sin(lat) * math.sin(d) + math.cos(lat) * math.cos(d) * math.cos(h)
    east = -math.cos(d) * math.sin(h)
    north = math.cos(lat) * math.sin(d) - math.sin(lat) * math.cos(d) * math.cos(h)
    return math.degrees(math.atan2(east, north)) % 360, math.degrees(math.asin(max(-1.0, min(1.0, up))))
