"""What the programs of the site share: a device that answers lines of KATCP, and how others are asked.

    cam.py NODE REQUEST [ARGUMENT...]     asks, and prints what it is told
"""

import asyncio
import json
import socket
import sys
import time
from pathlib import Path

PORT = 7147
NODE = socket.gethostname()
INVENTORY = Path("/etc/orrery/inventory.json")


class Fail(Exception):
    """A request that a device refuses, or a device that does not answer."""


def nodes(role: str = "") -> list[str]:
    """The names of the nodes of the site, or of those with a role."""
    everyone = json.loads(INVENTORY.read_text())["nodes"]
    return [node["name"] for node in everyone if not role or role in node["roles"]]


class Device:
    """Answers `?sensor-value [NAME]` with the sensors, and other requests as a role says."""

    def __init__(self) -> None:
        began = time.monotonic()
        self.sensors = {"uptime": lambda: round(time.monotonic() - began, 1)}
        self.requests = {"sensor-value": self._values, "watchdog": self._nothing}

    async def _nothing(self) -> list[tuple]:
        return []

    async def _values(self, only: str = "") -> list[tuple]:
        if only and only not in self.sensors:
            raise Fail(f"no sensor {only}")
        return [(name, value()) for name, value in self.sensors.items() if not only or name == only]

    async def serve(self) -> None:
        server = await asyncio.start_server(self._talk, port=PORT)
        async with server:
            await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async for line in reader:
                name, *arguments = line.decode(errors="replace").lstrip("?").split() or [""]
                writer.write(("\n".join(await self._answer(name, arguments)) + "\n").encode())
                await writer.drain()
        except (OSError, ValueError):  # gone, or a line without end
            pass
        finally:
            writer.close()

    async def _answer(self, name: str, arguments: list[str]) -> list[str]:
        try:
            told = await self.requests[name](*arguments)
        except KeyError:
            return [f"!{name} invalid unknown-request"]
        except (Fail, TypeError, ValueError) as reason:
            return [f"!{name} fail {str(reason).replace(' ', '_')}"]
        return [f"#{name} " + " ".join(map(str, words)) for words in told] + [f"!{name} ok {len(told)}"]


async def ask(node: str, request: str, *arguments, timeout: float = 2) -> list[list[str]]:
    """Ask the device of a node. Gives what it tells, line by line; raises Fail if it refuses or is away."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(node, PORT)
            try:
                writer.write((" ".join(["?" + request, *map(str, arguments)]) + "\n").encode())
                told = []
                async for line in reader:
                    kind, *words = line.decode().split()
                    if kind == "!" + request:
                        if words[0] != "ok":
                            raise Fail(f"{node}: {' '.join(words)}")
                        return told
                    told.append(words)
            finally:
                writer.close()
    except (OSError, TimeoutError) as reason:
        raise Fail(f"{node}: {reason or 'no answer'}") from reason
    raise Fail(f"{node}: no answer")


async def ask_all(asked: list[str], request: str, *arguments) -> dict[str, list[list[str]]]:
    """Ask many at once. Who is away or refuses is left out."""
    answers = await asyncio.gather(*(ask(node, request, *arguments) for node in asked), return_exceptions=True)
    return {node: told for node, told in zip(asked, answers) if not isinstance(told, BaseException)}


async def database():
    """A connection to the archive."""
    import asyncpg  # not every node has the password

    password = Path("/etc/orrery/secrets/archive_password").read_text().strip()
    return await asyncpg.connect(host="archive", database="karoo", user="cam", password=password, timeout=3, command_timeout=3)


if __name__ == "__main__":
    try:
        for words in asyncio.run(ask(*sys.argv[1:])):
            print(*words)
    except Fail as reason:
        sys.exit(str(reason))
