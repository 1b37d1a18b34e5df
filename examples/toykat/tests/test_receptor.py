"""The receptor over real KATCP, on a free port of the loopback."""

import asyncio
import contextlib

import aiokatcp
import pytest

from receptor import Receptor

CONFIG = {"name": "receptor1", "port": 0, "latitude": -30.7, "longitude": 21.4, "position": [25.1, -9.1, 0.0]}


@contextlib.asynccontextmanager
async def running():
    server = Receptor(CONFIG, host="127.0.0.1")
    await server.start()
    try:
        async with asyncio.timeout(10):
            async with aiokatcp.Client(*server.sockets[0].getsockname()[:2]) as client:
                await client.wait_connected()
                yield server, client
    finally:
        await server.stop()


def test_answers_and_lists_its_sensors():
    async def check():
        async with running() as (server, client):
            await client.request("watchdog")
            _, informs = await client.request("sensor-list")
            names = {inform.arguments[0].decode() for inform in informs}
            assert {"pos.actual-azim", "pos.request-elev", "mode", "wind.speed", "temp.receiver"} <= names

    asyncio.run(check())


def test_point_moves_the_dish_and_warns_until_it_is_there():
    async def check():
        async with running() as (server, client):
            await client.request("point", 2.0, 89.0)
            reading = await client.sensor_reading("pos.actual-azim")
            assert reading.status is aiokatcp.Sensor.Status.WARN
            assert await client.sensor_value("mode", str) == "slew"
            assert await client.sensor_value("lock", bool) is False
            while await client.sensor_value("mode", str) != "point":
                await asyncio.sleep(0.1)
            reading = await client.sensor_reading("pos.actual-azim")
            assert (reading.value, reading.status) == (pytest.approx(2.0, abs=0.1), aiokatcp.Sensor.Status.NOMINAL)

    asyncio.run(check())


def test_refuses_with_the_reason():
    async def check():
        async with running() as (server, client):
            with pytest.raises(aiokatcp.FailReply, match="azimuth 300 deg is outside -185..275 deg"):
                await client.request("point", 300, 45)
            with pytest.raises(aiokatcp.FailReply):
                await client.request("point", "north", 45)
            with pytest.raises(aiokatcp.FailReply, match="elevation"):
                await client.request("track", 0, 90)  # the north pole never rises in the Karoo
            server.drifts["wind.speed"].value = server.drifts["wind.speed"].mean = 30
            server.step(0.2)
            with pytest.raises(aiokatcp.FailReply, match="wind"):
                await client.request("point", 10, 45)

    asyncio.run(check())


def test_tracks_the_south_pole():
    async def check():
        async with running() as (server, client):
            await client.request("track", 0, -90)
            assert await client.sensor_value("pos.request-elev") == pytest.approx(30.7)

    asyncio.run(check())


def test_sampling_by_auto_reports_changes():
    async def check():
        async with running() as (server, client):
            watcher = aiokatcp.SensorWatcher(client)
            client.add_sensor_watcher(watcher)
            await watcher.synced.wait()
            seen = set()
            for _ in range(20):
                seen.add(watcher.sensors["wind.speed"].value)
                await asyncio.sleep(0.1)
            assert 3 <= len(seen) <= 6  # about two each second, though the simulation makes five

    asyncio.run(check())
