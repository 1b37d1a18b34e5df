"""The head node: who answers, and one request for all dishes."""

import cam


async def halt() -> list:
    return [(node,) for node in await cam.ask_all(cam.nodes("receptor"), "stow")]


async def system() -> list:
    there = await cam.ask_all(cam.nodes(), "watchdog")
    return [(node, "up" if node in there else "away") for node in cam.nodes()]


def start(device):
    device.requests["halt"], device.requests["system"] = halt, system
    return []
