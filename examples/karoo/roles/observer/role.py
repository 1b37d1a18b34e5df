"""How many observations there were."""

from pathlib import Path


def observations() -> int:
    done = Path("/srv/data/observations")
    return len(done.read_text().splitlines()) if done.exists() else 0


def start(device):
    device.sensors["observations"] = observations
    return []
