"""The portal: samples every receptor into the database; shows and steers them over HTTP."""

import asyncio
import json
import logging
import math
import sys
import time
from pathlib import Path

from aiohttp import web
from aiokatcp import FailReply, InvalidReply

from follow import Receptor
from store import AWAY, Store, reason

STALE_SECONDS = 5
HISTORY_SECONDS = 600


class Portal:
    def __init__(self, config: dict) -> None:
        self.site = config["site"]
        self.store = Store(config["database"], config["keep_seconds"])
        self.receptors = {
            name: Receptor(name, host, config["katcp_port"], self.store.add)
            for name, host in config["receptors"].items()
        }

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes([
            web.get("/", self.page),
            web.get("/healthz", self.healthz),
            web.get("/api/state", self.state),
            web.get("/api/history", self.history),
            web.post("/api/receptors/{name}/{verb:point|track|stow|stop}", self.command),
        ])
        app.cleanup_ctx.append(self.run)
        return app

    async def run(self, _app: web.Application):
        work = [self.store.run(), *(receptor.run() for receptor in self.receptors.values())]
        tasks = [asyncio.create_task(w) for w in work]
        for task in tasks:
            task.add_done_callback(die_of_it)
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def page(self, _request: web.Request) -> web.FileResponse:
        return web.FileResponse(Path(__file__).with_name("index.html"))

    async def healthz(self, _request: web.Request) -> web.Response:
        """200 only when the database holds a row of every receptor that is less than STALE_SECONDS old."""
        detail = {"healthy": False, "stale_seconds": STALE_SECONDS, "ages": dict.fromkeys(self.receptors), "error": None}
        try:
            ages = await self.store.ages()
        except AWAY as error:
            detail["error"] = f"database: {reason(error)}"
        else:
            detail["ages"] = {name: ages.get(name) for name in self.receptors}
            detail["healthy"] = all(age is not None and age < STALE_SECONDS for age in detail["ages"].values())
        return web.json_response(detail, status=200 if detail["healthy"] else 503)

    async def state(self, _request: web.Request) -> web.Response:
        return web.json_response({
            "site": self.site,
            "time": time.time(),
            "receptors": [receptor.state() for receptor in self.receptors.values()],
            "database": {"written": self.store.written, "error": self.store.error},
        })

    async def history(self, request: web.Request) -> web.Response:
        receptor, sensor = request.query.get("receptor", ""), request.query.get("sensor", "")
        seconds = number(request.query.get("seconds", HISTORY_SECONDS), "seconds")
        if receptor not in self.receptors:
            raise problem(web.HTTPNotFound, f"no receptor {receptor!r}")
        if not 1 <= seconds <= 86400:
            raise problem(web.HTTPBadRequest, "seconds must be 1..86400")
        try:
            points = await self.store.history(receptor, sensor, seconds)
        except AWAY as error:
            raise problem(web.HTTPServiceUnavailable, f"database: {reason(error)}") from None
        return web.json_response({"receptor": receptor, "sensor": sensor, "seconds": seconds, "points": points})

    async def command(self, request: web.Request) -> web.Response:
        """Send a request to a receptor. JSON is asked for, as a form of a foreign page cannot send that."""
        name, verb = request.match_info["name"], request.match_info["verb"]
        if name not in self.receptors:
            raise problem(web.HTTPNotFound, f"no receptor {name!r}")
        if request.content_type != "application/json":
            raise problem(web.HTTPUnsupportedMediaType, "send application/json")
        try:
            body = await request.json()
        except ValueError:
            raise problem(web.HTTPBadRequest, "the body is not JSON") from None
        wanted = {"point": ("azim", "elev"), "track": ("ra", "dec")}.get(verb, ())
        args = [number(body.get(key) if isinstance(body, dict) else None, key) for key in wanted]
        try:
            await self.receptors[name].request(verb, *args)
        except (FailReply, InvalidReply) as error:
            raise problem(web.HTTPConflict, str(error)) from None
        except (OSError, asyncio.TimeoutError):
            raise problem(web.HTTPServiceUnavailable, f"{name} is not connected") from None
        return web.json_response({"receptor": name, "request": verb, "arguments": args})


def number(value, name: str) -> float:
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise problem(web.HTTPBadRequest, f"{name} must be a number") from None
    if not math.isfinite(result):
        raise problem(web.HTTPBadRequest, f"{name} must be finite")
    return result


def problem(kind: type[web.HTTPException], text: str) -> web.HTTPException:
    return kind(text=json.dumps({"error": text}), content_type="application/json")


def die_of_it(task: asyncio.Task) -> None:
    """A bug in a task ends the portal; systemd starts it again, and its log says why."""
    if not task.cancelled() and task.exception():
        logging.critical("portal stops", exc_info=task.exception())
        raise web.GracefulExit()


async def make(config: dict) -> web.Application:
    return Portal(config).app()  # inside the running loop, as the database pool wants it


def main(path: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")  # journald adds the time
    config = json.loads(Path(path).read_text())
    web.run_app(make(config), port=config["port"], access_log=None, print=None)


if __name__ == "__main__":
    main(sys.argv[1])
