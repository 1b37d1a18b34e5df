"""A simulated weather mast."""

import math
import random
import time


def start(device):
    device.sensors["wind.speed"] = lambda: round(abs(6 + 4 * math.sin(time.time() / 60) + random.gauss(0, 1)), 2)
    device.sensors["temperature"] = lambda: round(18 + 9 * math.sin(time.time() / 3600), 2)
    return []
