"""The device of a node. What its role adds is in role.py: start(device) gives what is to run beside it."""

import asyncio

from cam import Device


async def main() -> None:
    device = Device()
    try:
        from role import start
    except ModuleNotFoundError:
        work = []
    else:
        work = start(device)
    await asyncio.gather(device.serve(), *work)


asyncio.run(main())
