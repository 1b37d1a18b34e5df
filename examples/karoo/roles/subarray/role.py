"""Points all receptors that answer, and lets the capture node know of what."""

import cam

target = "none"


async def observe(name, azim, elev) -> list:
    global target
    pointed = await cam.ask_all(cam.nodes("receptor"), "point", azim, elev)
    if not pointed:
        raise cam.Fail("no receptor answers")
    for node in cam.nodes("capture"):
        await cam.ask(node, "capture", name, *pointed)
    target = name
    return [(name, *pointed)]


def start(device):
    device.sensors["target"] = lambda: target
    device.requests["observe"] = observe
    return []
