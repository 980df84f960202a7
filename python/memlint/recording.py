"""Records a part of a program: a `with` block, or a function.

`memlint record` records whole programs without touching them; this is for what begins and ends in the middle of one.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional, Union

from ._recorder import dump, process
from ._recorder.history import History
from .part import Part


class record(contextlib.ContextDecorator):
    """Records the memory of the GPU while the block or the function runs, and writes one snapshot.

    The snapshot is written at the end, at the moment at which memory runs out, or after `iterations` optimizer steps. Where
    `torch.distributed` runs several processes, each gets the number of its rank into the name of its file. `stacks="all"` adds
    C++'s frames; `max_entries` is the most events, else what the host memory affords. Where the program is recorded already (by
    `memlint record`, or by another block around this one) that recording goes on, and this one shows its own events alone.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike[str]] = "snapshot.pickle",
        *,
        iterations: Optional[int] = None,
        stacks: str = "python",
        max_entries: Optional[int] = None,
    ) -> None:
        self._given = os.fspath(path)
        self._iterations = iterations
        self._stacks = stacks
        self._max_entries = max_entries
        self._torch: Any = None
        self._history: Optional[History] = None
        self._part: Optional[Part] = None
        self._steps = 0
        self._hook: Any = None
        self._is_written = False

    @property
    def path(self) -> str:
        """The file that is written."""
        rank = process.rank_of_torch(self._torch) if self._torch is not None else None
        if rank is None:
            return self._given
        stem, dot, ending = os.path.basename(self._given).partition(".")
        return os.path.join(os.path.dirname(self._given), f"{stem}_rank{rank.rank}{dot}{ending}")

    def __enter__(self) -> record:
        """Begins to record. Raises what torch raises where there is no torch, or no GPU."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        torch.cuda.init()
        self._torch, self._steps, self._is_written = torch, 0, False
        history = History(torch.cuda.memory, self._stacks, self._max_entries or process.affordable_events())
        history.begin(anew=True)
        self._history = history
        self._part = Part(torch.cuda) if history.is_within else None
        self._hook = register_optimizer_step_post_hook(self._stepped)
        torch._C._cuda_attach_out_of_memory_observer(self._ran_out)
        return self

    def __exit__(self, *_: object) -> None:
        """Writes the snapshot, if that is not done. Raises OSError where it cannot be written."""
        self._hook.remove()
        try:
            self._write_once()
        finally:
            self._end()

    def write(self) -> str:
        """Writes what is recorded so far, and goes on; the path. Raises OSError where it cannot be written.

        What comes later replaces it; a snapshot that is complete (after `iterations`, or of memory running out) stays.
        """
        if self._history is not None and not self._is_written:
            with dump.no_collection():
                snapshot = self._history.read()
                if self._part is not None:
                    self._part.cut(snapshot, self._history.max_entries)
                dump.write(snapshot, self.path)
        return self.path

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._steps += 1
        if self._steps == self._iterations:
            self._write_once()
            self._end()

    def _ran_out(self, device: int, asked: int, total: int, free: int) -> None:
        # Torch has no way to detach an observer, and raises the error that matters.
        with contextlib.suppress(OSError):
            self._write_once()

    def _write_once(self) -> None:
        self.write()
        self._is_written = True

    def _end(self) -> None:
        if self._history is not None:
            self._history.end()
            self._history = None
