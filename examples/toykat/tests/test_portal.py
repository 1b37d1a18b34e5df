"""The portal against a real receptor on the loopback, with a store that keeps its rows in memory."""

import asyncio
import contextlib
import time

from aiohttp.test_utils import TestClient, TestServer

import follow
import portal
from receptor import Receptor
from store import Store

CONFIG = {"name": "receptor1", "port": 0, "latitude": -30.7, "longitude": 21.4, "position": [25.1, -9.1, 0.0]}


class MemoryStore:
    written, error = 0, None

    def __init__(self, *_):
        self.rows = []

    def add(self, row):
        self.rows.append(row)

    async def run(self):
        await asyncio.Event().wait()

    async def ages(self):
        return {row[1]: time.time() - row[0].timestamp() for row in self.rows}

    async def history(self, receptor, sensor, seconds):
        return [(row[0].timestamp(), row[3]) for row in self.rows if row[1:3] == (receptor, sensor)]


@contextlib.asynccontextmanager
async def running(monkeypatch):
    monkeypatch.setattr(portal, "Store", MemoryStore)
    monkeypatch.setattr(follow, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(follow, "WATCHDOG_SECONDS", 0.1)
    receptor = Receptor(CONFIG, host="127.0.0.1")
    await receptor.start()
    port = receptor.sockets[0].getsockname()[1]
    config = {"site": "toykat", "katcp_port": port, "keep_seconds": 60, "database": {}, "receptors": {"receptor1": "127.0.0.1"}}
    try:
        async with asyncio.timeout(20), TestClient(TestServer(portal.Portal(config).app())) as web:
            yield receptor, web
    finally:
        await receptor.stop()


async def until(check):
    while not await check():
        await asyncio.sleep(0.05)


def healthy(web, wanted=200):
    async def check():
        return (await web.get("/healthz")).status == wanted

    return check


def test_samples_show_in_state_health_and_history(monkeypatch):
    async def check():
        async with running(monkeypatch) as (receptor, web):
            await until(healthy(web))
            state = await (await web.get("/api/state")).json()
            sensors = state["receptors"][0]["sensors"]
            assert sensors["mode"]["value"] == "stow"
            assert sensors["lock"]["value"] is True
            assert sensors["pos.actual-elev"]["units"] == "deg"
            reply = await web.get("/api/history?receptor=receptor1&sensor=wind.speed&seconds=60")
            assert (await reply.json())["points"]
            assert "<title>" in await (await web.get("/")).text()

    asyncio.run(check())


def test_commands(monkeypatch):
    async def check():
        async with running(monkeypatch) as (receptor, web):
            await until(healthy(web))
            point = "/api/receptors/receptor1/point"
            assert (await web.post(point, json={"azim": 40, "elev": 60})).status == 200
            assert (receptor.dish.wanted_azim, receptor.dish.wanted_elev) == (40, 60)
            refused = await web.post(point, json={"azim": 300, "elev": 60})
            assert refused.status == 409 and "outside" in (await refused.json())["error"]
            assert (await web.post(point, json={"azim": 40})).status == 400
            assert (await web.post(point, json=[])).status == 400
            assert (await web.post(point, data={"azim": 40, "elev": 60})).status == 415
            assert (await web.post("/api/receptors/other/stow", json={})).status == 404
            assert (await web.post("/api/receptors/receptor1/halt", json={})).status == 404
            assert (await web.get("/api/history?receptor=receptor1&seconds=x")).status == 400

    asyncio.run(check())


def test_a_receptor_that_goes_away_is_unhealthy_and_found_again(monkeypatch):
    async def check():
        async with running(monkeypatch) as (receptor, web):
            monkeypatch.setattr(portal, "STALE_SECONDS", 0.7)
            await until(healthy(web))
            receptor._port = receptor.sockets[0].getsockname()[1]  # the same port again, later
            await receptor.stop()
            await until(healthy(web, 503))
            state = (await (await web.get("/api/state")).json())["receptors"][0]
            assert not state["connected"]
            assert state["sensors"]["mode"]["status"] == "unreachable"
            assert (await web.post("/api/receptors/receptor1/stow", json={})).status == 503
            await receptor.start()
            await until(healthy(web))

    asyncio.run(check())


def test_a_database_that_is_away_is_reported_and_loses_no_rows(tmp_path):
    async def check():
        (tmp_path / "password").write_text("secret\n")
        store = Store({"host": "127.0.0.1", "port": 1, "password_file": tmp_path / "password"}, 60)
        task = asyncio.create_task(store.run())
        store.add(("row",))
        while store.error is None:
            await asyncio.sleep(0.05)
        store.add(("later",))
        assert list(store._buffer) in ([("row",)], [("row",), ("later",)])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(check())
