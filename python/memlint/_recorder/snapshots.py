"""The snapshots of this process: their names, and the writing of them.

Where it is written down who reads what: memlint takes ranks and moments from names (`src/input/origin.rs`), compresses every
file it is told of, and gives it the name that is told beside.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Optional

from . import dump, process
from .history import History
from .ledger import Ledger
from .order import Order


class Snapshots:
    """Writes what the history holds, once at a time, and tells of it."""

    def __init__(self, torch: Any, order: Order, ledger: Ledger, history: History) -> None:
        self._torch = torch
        self._order = order
        self._ledger = ledger
        self._history = history
        self._rank: Optional[process.Rank] = None
        self._name: Optional[str] = None
        self._written = 0
        self._is_writing = False
        self._signal: Optional[int] = None

    def note_rank(self) -> None:
        """Looks for the number of this process, as long as it is known: a process group does not last to the end."""
        if self._rank is None:
            self._rank = process.rank_of_torch(self._torch) or process.rank_of_launcher()

    @property
    def is_first(self) -> bool:
        """Whether no process of the job has a smaller number."""
        return self._rank is None or self._rank.rank == 0

    def postpone(self, signal: int) -> bool:
        """Has a signal wait while a snapshot is written; whether one is."""
        if self._is_writing:
            self._signal = signal
        return self._is_writing

    def write(self, reason: str, steps: int, moment: str = "") -> None:
        """Writes a snapshot. What goes wrong is said, and the program goes on."""
        if self._is_writing:
            return
        self._is_writing = True
        try:
            self._write(reason, steps, moment)
        except OSError as error:
            self._ledger.complain(f"`{error.filename or self._order.folder}` cannot be written: {error.strerror}")
        except Exception as error:
            self._ledger.complain(f"the snapshot cannot be written: {error!r}")
        finally:
            self._is_writing = False
            if self._signal is not None:
                signal, self._signal = self._signal, None
                os.kill(os.getpid(), signal)

    def _early(self, steps: int) -> Optional[dict[str, Any]]:
        """That the program did not come to its end, or to as many steps as were asked for (`src/snapshot/ended.rs`)."""
        exception, asked = process.uncaught(), self._order.iterations
        if exception is not None:
            return {"version": 1, "exception": exception, "steps": steps}
        if asked is not None and 0 < steps < asked:
            return {"version": 1, "exception": "", "steps": steps, "asked": asked}
        return None

    def _write(self, reason: str, steps: int, moment: str) -> None:
        begun = time.perf_counter()
        with dump.no_collection():
            snapshot = self._history.read()
            if dump.is_empty(snapshot):
                return
            early = self._early(steps) if reason == "end" else None
            if early is not None:
                snapshot["memlint_end"] = json.dumps(early)
            name = self._own_name() + moment
            # Never the name of one that memlint is compressing.
            self._written += 1
            path = os.path.join(self._order.folder, f"{name}.{self._written}.pickle")
            dump.write(snapshot, path)
            del snapshot
        version = self._torch.version
        self._ledger.tell(
            "written",
            path=path,
            name=name,
            reason=reason,
            steps=steps,
            seconds=time.perf_counter() - begun,
            rank=None if self._rank is None else self._rank.rank,
            torch=str(self._torch.__version__),
            cuda=version.cuda or getattr(version, "hip", None),
            device=self._torch.cuda.get_device_name(),
        )

    def _own_name(self) -> str:
        """A name that no other process of the job has: by rank where there are several."""
        if self._name is None:
            self.note_rank()
            order = self._order
            name = order.name
            if self._rank is not None:
                number = f"rank{self._rank.rank}"
                name = f"{name}_{number}" if order.named else number
            # Taken by a worker that was started anew, or where no launcher numbers the processes.
            self._name = name if self._ledger.claim(name) else f"{name}_pid{os.getpid()}"
        return self._name
