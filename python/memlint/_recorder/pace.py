"""How long an iteration takes, recorded and not."""

from __future__ import annotations

import time
from collections import deque
from typing import Optional

#: Intervals between optimizer steps that are kept for the median.
INTERVALS = 1000
#: The first steps create optimizer state and choose kernels; they say nothing of an iteration.
WARM_UP = 2
#: Of fewer intervals there is no middle that means something.
FEWEST = 3


class Pace:
    """Counts optimizer steps, and takes the time between them."""

    def __init__(self) -> None:
        self.steps = 0
        self._last: Optional[float] = None
        self._recorded: deque[float] = deque(maxlen=INTERVALS)
        self._unrecorded: deque[float] = deque(maxlen=INTERVALS)

    def step(self, is_recorded: bool) -> None:
        """The optimizer has made a step."""
        now = time.perf_counter()
        self.steps += 1
        if self._last is not None and self.steps > WARM_UP:
            (self._recorded if is_recorded else self._unrecorded).append(now - self._last)
        self._last = now

    def resume(self) -> None:
        """What has passed since the step was ours."""
        if self._last is not None:
            self._last = time.perf_counter()

    @property
    def recorded_seconds(self) -> Optional[float]:
        """The median interval while memory was recorded."""
        return _median(self._recorded)

    @property
    def unrecorded_seconds(self) -> Optional[float]:
        """The median interval since recording ended."""
        return _median(self._unrecorded)


def _median(values: deque[float]) -> Optional[float]:
    return sorted(values)[len(values) // 2] if len(values) >= FEWEST else None
