"""Alarms: sensors out of their limits, and nodes that do not answer."""

import asyncio

import cam

LIMITS = {"wind.speed": (0, 15), "temperature": (-10, 45), "pos.elev": (15, 90)}
alarms: list[str] = []


async def watch() -> None:
    global alarms
    while True:
        told = await cam.ask_all(cam.nodes(), "sensor-value")
        found = [f"{node}.away" for node in cam.nodes() if node not in told]
        for node, sensors in told.items():
            for name, value in sensors:
                low, high = LIMITS.get(name, (None, None))
                if low is not None and not low <= float(value) <= high:
                    found.append(f"{node}.{name}={value}")
        if found != alarms:
            print("alarms:", *found or ["none"], flush=True)
        alarms = found
        await asyncio.sleep(2)


def start(device):
    device.sensors["alarms"] = lambda: len(alarms)
    device.sensors["first"] = lambda: alarms[0] if alarms else "none"
    return [watch()]
