"""Values that drift about a mean, as temperatures and winds do (an Ornstein-Uhlenbeck process)."""

import math
import random


class Drift:
    def __init__(self, mean: float, spread: float, seconds: float, rng: random.Random) -> None:
        """Wander about mean with standard deviation spread, forgetting within so many seconds."""
        self.mean, self.spread, self.seconds, self._rng = mean, spread, seconds, rng
        self.value = rng.gauss(mean, spread)

    def step(self, seconds: float) -> float:
        keep = math.exp(-seconds / self.seconds)
        noise = self.spread * math.sqrt(1 - keep * keep)
        self.value = self.mean + (self.value - self.mean) * keep + self._rng.gauss(0, noise)
        return self.value
