import math
import random

import pytest

from dish import Dish, Mode, azel
from weather import Drift


def test_slews_no_faster_than_its_axes():
    dish = Dish(azim=0, elev=45)
    dish.point(100, 80)
    dish.step(3)
    assert (dish.azim, dish.elev) == (6, 48)
    assert dish.mode is Mode.SLEW


def test_arrives_and_stays():
    dish = Dish(azim=0, elev=45)
    dish.point(-10, 40)
    for _ in range(60):
        dish.step(0.2)
    assert (dish.azim, dish.elev) == pytest.approx((-10, 40))
    assert dish.mode is Mode.POINT and dish.off_target == pytest.approx(0)


@pytest.mark.parametrize("azim, elev", [(276, 45), (-186, 45), (0, 14.9), (0, 90.1), (math.nan, 45), (0, math.inf)])
def test_refuses_what_is_out_of_reach(azim, elev):
    dish = Dish(azim=1, elev=45)
    with pytest.raises(ValueError, match="is outside"):
        dish.point(azim, elev)
    assert (dish.wanted_azim, dish.wanted_elev) == (1, 45)


def test_stows_where_it_stands():
    dish = Dish(azim=30, elev=88)
    dish.stow()
    assert dish.mode is Mode.SLEW
    dish.step(5)
    assert (dish.azim, dish.elev, dish.mode) == (30, 90, Mode.STOW)


def test_tracks_by_the_nearer_turn_of_the_cable():
    dish = Dish(azim=-170, elev=45)
    dish.track(185, 45)
    assert dish.wanted_azim == -175
    dish = Dish(azim=250, elev=45)
    dish.track(185, 45)
    assert dish.wanted_azim == 185


def test_south_pole_stands_due_south_at_the_latitude():
    azim, elev = azel(0, -90, -30.7, 21.4, 1.7e9)
    assert (azim, elev) == pytest.approx((180, 30.7))


def test_sidereal_day():
    day = 86164.0905
    assert azel(83.6, -5, -30.7, 21.4, 1.7e9) == pytest.approx(azel(83.6, -5, -30.7, 21.4, 1.7e9 + day), abs=1e-3)


def test_drift_keeps_its_mean_and_spread():
    drift = Drift(20, 2, 10, random.Random(1))
    values = [drift.step(5) for _ in range(20_000)]
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    assert mean == pytest.approx(20, abs=0.2) and spread == pytest.approx(2, abs=0.2)
