"""Records one process, from the moment at which CUDA is initialised, and says when its snapshots are written.

Initialising CUDA for the sake of recording would change the program (forks that use CUDA, devices that are chosen after the
import), so recording is one of the calls that torch keeps for that moment: before anything can be allocated.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from typing import Any, Callable

from . import process
from .history import History
from .ledger import Ledger
from .order import Order
from .pace import Pace
from .signals import Answer, Signals
from .snapshots import Snapshots

#: The first whose `_record_memory_history` takes what is to be recorded, and whose events have whole stacks.
OLDEST_TORCH = (2, 1)


def wait_for_cuda(torch: Any, order: Order, ledger: Ledger) -> None:
    """Has recording begin when CUDA is initialised, if this torch can record."""
    version = str(getattr(torch, "__version__", "unknown"))
    ledger.tell("torch", version=version)
    if release(version) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        ledger.complain(f"PyTorch {version} is too old to be recorded; {oldest} or later is needed")
        return

    def begin() -> None:
        # A forked process comes here by itself if it is the one that initialises CUDA.
        if process.is_data_loader_worker():
            return
        try:
            Recorder(torch, order, ledger).begin()
        except Exception as error:
            ledger.complain(f"this process is not recorded: {error!r}")

    torch.cuda._lazy_call(begin)


def release(version: str) -> tuple[int, ...]:
    """`2.11.0+cu130` as (2, 11)."""
    parts = version.split("+", maxsplit=1)[0].split(".")[:2]
    return tuple(int("".join(letter for letter in part if letter.isdigit()) or 0) for part in parts)


class Recorder:
    """The recording of this process."""

    def __init__(self, torch: Any, order: Order, ledger: Ledger) -> None:
        self._torch = torch
        self._order = order
        self._ledger = ledger
        self._pace = Pace()
        self._history = History(torch.cuda.memory, order.stacks, order.max_entries or process.affordable_events())
        self._snapshots = Snapshots(torch, order, ledger, self._history)
        #: The process that is recorded: what it forks cannot use its CUDA.
        self._pid = os.getpid()
        #: The snapshot under the process's own name is written and stays: its iterations are over, or it shows memory
        #: running out and the optimizer has made no step since.
        self._has_snapshot = False
        self._has_ended = False

    def begin(self) -> None:
        """Records, and hears of steps, of memory running out, of signals and of the end."""
        # Looking names of functions up in debug information takes minutes, and tells memlint nothing more.
        os.environ.setdefault("TORCH_DISABLE_ADDR2LINE", "1")
        self._history.begin()
        self._ledger.tell("recording", stacks=self._history.stacks, max_entries=self._history.max_entries)
        self._snapshots.note_rank()
        self._torch._C._cuda_attach_out_of_memory_observer(self._ran_out)
        self._hear_steps()
        self._hear_the_end()
        # Another thread than the main one may have initialised CUDA, and may not listen.
        with contextlib.suppress(ValueError):
            Signals(self._heard).listen()

    @property
    def _is_recording(self) -> bool:
        return self._history.is_kept and not self._has_ended and os.getpid() == self._pid

    def _hear_steps(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        is_compiling = getattr(self._torch.compiler, "is_compiling", bool)

        def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            # A compiled step is traced through here, and must find nothing.
            if not is_compiling():
                self._stepped()

        register_optimizer_step_post_hook(after_step)

    def _hear_the_end(self) -> None:
        atexit.register(self._end)
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            # Its forked children end without `atexit`.
            multiprocessing.Finalize(None, self._end, exitpriority=0)
        leave: Callable[[int], Any] = os._exit

        def _exit(status: int) -> None:
            self._end()
            leave(status)

        os._exit = _exit  # type: ignore[assignment]

    def _stepped(self) -> None:
        self._pace.step(self._is_recording)
        if self._is_recording:
            self._snapshots.note_rank()
            self._has_snapshot = False
            self._write_in_time(self._pace.steps)
            self._pace.resume()

    def _write_in_time(self, steps: int) -> None:
        order = self._order
        if order.every and steps % order.every == 0:
            self._write("every", f"_step_{steps}")
        if order.watch and steps % order.watch == 0 and self._snapshots.is_first:
            self._write("watch")
        if steps == order.iterations:
            self._write("iterations")
            if order.stop:
                self._has_snapshot = True
                raise SystemExit(0)
            if not order.every and not order.watch:
                self._has_snapshot = True
                self._history.end()

    def _ran_out(self, device: int, asked: int, total: int, free: int) -> None:
        if self._is_recording and not self._has_snapshot:
            self._write("out-of-memory")
            self._has_snapshot = True

    def _heard(self, number: int) -> Answer:
        """Writes on a signal."""
        if os.getpid() != self._pid:
            # A scheduler sends to all processes of a job, and a job does not outlive its DataLoader's workers: what asks for a
            # snapshot asks nothing of them. What ends them does.
            return Answer.NONE if number == signal.SIGTERM else Answer.GIVEN
        if self._snapshots.postpone(number):
            return Answer.LATER
        if number == signal.SIGTERM:
            self._end()
            return Answer.NONE
        if self._is_recording:
            self._write("signal", f"_step_{self._pace.steps}")
        return Answer.GIVEN

    def _end(self) -> None:
        if self._has_ended or os.getpid() != self._pid:
            return
        if self._is_recording and not self._has_snapshot:
            # Beside those of every so many steps it is one more, the last.
            self._write("end", f"_step_{self._pace.steps}_exit" if self._order.every else "")
        self._has_ended = True
        pace = self._pace
        self._ledger.tell(
            "end",
            steps=pace.steps,
            recorded_seconds=pace.recorded_seconds,
            unrecorded_seconds=pace.unrecorded_seconds,
        )

    def _write(self, reason: str, moment: str = "") -> None:
        self._snapshots.write(reason, self._pace.steps, moment)
