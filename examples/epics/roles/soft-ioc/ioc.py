"""A soft IOC with a value and its limit: ioc.py NODE serves NODE:VALUE, NODE:LIMIT and NODE:OVER."""

import asyncio
import os
import sys

from softioc import asyncio_dispatcher, builder, softioc

import hardware

LIMIT = "/srv/limits/limit"
HIGHEST = 100.0


def kept():
    """Return the limit that an operator set last, or the one to begin with."""
    try:
        with open(LIMIT) as file:
            return float(file.read())
    except (FileNotFoundError, ValueError):
        return HIGHEST / 2


def keep(limit):
    """Write the limit, whole or not at all."""
    with open(LIMIT + ".new", "w") as file:
        file.write(f"{limit}\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(LIMIT + ".new", LIMIT)


def serve(node):
    dispatcher = asyncio_dispatcher.AsyncioDispatcher()
    builder.SetDeviceName(node)
    value = builder.aIn("VALUE", PREC=2)
    limit = builder.aOut("LIMIT", initial_value=kept(), DRVL=0, DRVH=HIGHEST, PREC=2, on_update=keep)
    over = builder.boolIn("OVER", ZNAM="no", ONAM="yes", OSV="MAJOR")
    builder.LoadDatabase()
    softioc.iocInit(dispatcher)

    async def poll():
        while True:
            value.set(hardware.read())
            over.set(value.get() > limit.get())
            await asyncio.sleep(0.5)

    dispatcher(poll)
    softioc.non_interactive_ioc()


if __name__ == "__main__":
    serve(sys.argv[1])
