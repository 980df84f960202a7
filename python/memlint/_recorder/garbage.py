"""When Python's garbage collector freed something.

Memory that goes meanwhile was held by a reference cycle. Stacks of C++ show the collector at work; Python's, which are
what memlint records unless it is told otherwise, show only the line that happened to run.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import json
import time
from typing import Any, Optional

#: The latest so many are told: some 100 kB (`src/snapshot/collections.rs` reads no more).
MOST = 10_000


class Garbage:
    """The collections between `begin` and `end`, in microseconds since the epoch, as PyTorch counts the time of its events."""

    def __init__(self) -> None:
        self._begun = 0
        self._spans: collections.deque[tuple[int, int]] = collections.deque(maxlen=MOST)

    def begin(self) -> None:
        """Has Python tell of its collections."""
        gc.callbacks.append(self._heard)

    def end(self) -> None:
        """Listens no more. Others may have cleared the list."""
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._heard)

    def told(self) -> Optional[str]:
        """What a snapshot says of them: of each the time since the last one began, and how long it took. None where there
        were none."""
        spans = list(self._spans)
        if not spans:
            return None
        begun = [0, *(begun for begun, _ in spans)]
        numbers = [number for before, (at, took) in zip(begun, spans) for number in (at - before, took)]
        return json.dumps({"version": 1, "spans": numbers}, separators=(",", ":"))

    def _heard(self, phase: str, info: dict[str, Any]) -> None:
        # Collections do not nest.
        if phase == "start":
            self._begun = time.time_ns() // 1000
        elif info["collected"]:
            self._spans.append((self._begun, time.time_ns() // 1000 - self._begun))
