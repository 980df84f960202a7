"""PyTorch's recording of memory: begun by us, and still the script's to call.

A script that records by itself goes on doing so. What it asks for is added to what memlint records, and what it would take
away (a shorter history, the end of it) is not: its own snapshots hold at least what it expects.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

from .checkpoints import Checkpoints
from .garbage import Garbage

#: What a call may say. Only a history of all events could be more than what is recorded anyway.
MEANT = ("all", "state", None)
#: The key under which a snapshot tells when Python collected garbage (`src/snapshot/collections.rs`).
COLLECTIONS = "memlint_collections"
#: The attribute by which `_record_memory_history` says whether memlint keeps the history; another memlint's reads it, too.
KEEPS = "memlint_keeps"


class History:
    """The history of events, as long as memlint needs it."""

    def __init__(self, memory: Any, stacks: str, max_entries: int) -> None:
        self._memory = memory
        self._record = memory._record_memory_history
        self._snapshot = memory._snapshot
        self._signature = inspect.signature(getattr(memory, "_record_memory_history_impl", self._record))
        self.stacks = stacks
        self.max_entries = max_entries
        self.is_kept = False
        #: Another recording goes on around this one: PyTorch has one history, which also holds what was before.
        self.is_within = False
        self._between: Any = None
        self._checkpoints = Checkpoints()
        self._garbage = Garbage()

    def begin(self, anew: bool = False) -> None:
        """Records from here on, in all devices, and stands between the script and PyTorch. `anew` forgets what was before,
        where nobody else wants it."""
        self.is_within = _keeps(self._record)
        if anew and not self.is_within:
            self._record(None)
        self._record("all", context="all", stacks=self.stacks, max_entries=self.max_entries)
        self.is_kept = True
        self._checkpoints.hold()
        self._garbage.begin()

        @functools.wraps(self._record)
        def _record_memory_history(*args: Any, **kwargs: Any) -> None:
            if self.is_kept:
                self._add(args, kwargs)
            else:
                self._record(*args, **kwargs)

        setattr(_record_memory_history, KEEPS, lambda: self.is_kept or _keeps(self._record))
        self._between = self._memory._record_memory_history = _record_memory_history

    def _add(self, args: Any, kwargs: Any) -> None:
        if isinstance(args[0] if args else kwargs.get("enabled"), bool):
            # The call of PyTorch 2.0, which keeps one event where nobody says how many.
            return
        given = self._signature.bind(*args, **kwargs).arguments
        enabled = given.get("enabled", "all")
        if enabled not in MEANT:
            # PyTorch says what is wrong with it.
            self._record(*args, **kwargs)
        if enabled != "all":
            return
        wanted = int(given.get("max_entries", self.max_entries))
        # Without a limit (`sys.maxsize`) means as many as fit, and that is what memlint chose.
        most = max(self.max_entries, wanted) if wanted < sys.maxsize else self.max_entries
        stacks = "all" if given.get("stacks") == "all" else self.stacks
        if (most, stacks) != (self.max_entries, self.stacks):
            self.max_entries, self.stacks = most, stacks
            self._record("all", context="all", stacks=stacks, max_entries=most)

    def end(self) -> None:
        """Records no more, unless another recording goes on; from here on the script's own calls mean what they say."""
        self.is_kept = False
        self._checkpoints.release()
        self._garbage.end()
        if not _keeps(self._memory._record_memory_history):
            self._record(None)
        if self._memory._record_memory_history is self._between:
            self._memory._record_memory_history = self._record

    def read(self) -> Any:
        """The snapshot of this moment."""
        snapshot = self._snapshot()
        collections = self._garbage.told()
        if collections is not None:
            snapshot[COLLECTIONS] = collections
        return snapshot


def _keeps(record: Any) -> bool:
    """Whether some memlint keeps the history that a `_record_memory_history` is for."""
    keeps = getattr(record, KEEPS, None)
    return keeps is not None and bool(keeps())
