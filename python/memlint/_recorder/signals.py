"""Signals on which a snapshot is written, seen by us and still the script's.

Python runs one handler a signal. Ours is that one; the script's, set before or later, runs behind it, and the script sees
its own where it asks (Lightning, for one, installs its handlers only where there are none).
"""

from __future__ import annotations

import enum
import os
import signal
from types import FrameType
from typing import Any, Callable, Optional

#: End the program, and go on.
SIGNALS = tuple(
    number for number in (getattr(signal, name, None) for name in ("SIGTERM", "SIGUSR1")) if number is not None
)


class Answer(enum.Enum):
    """What became of a signal."""

    #: It was what was asked for: the program goes on where the script has no handler.
    GIVEN = enum.auto()
    #: It is the script's, or does what it does to any program.
    NONE = enum.auto()
    #: It comes again.
    LATER = enum.auto()


class Signals:
    """Hears signals before the script does."""

    def __init__(self, heard: Callable[[int], Answer]) -> None:
        self._heard = heard
        self._scripts: dict[int, Any] = {}
        self._set = signal.signal
        self._get = signal.getsignal

    def listen(self) -> None:
        """Begins to hear. Raises ValueError in a thread that is not the main one."""
        for number in SIGNALS:
            self._scripts[number] = self._set(number, self._hear)
        signal.signal = self._set_by_script
        signal.getsignal = self._get_by_script

    def _set_by_script(self, signalnum: int, handler: Any) -> Any:
        if signalnum not in self._scripts:
            return self._set(signalnum, handler)
        # PyTorch's and Python's own checks: the thread, and what a handler may be.
        self._set(signalnum, handler)
        self._set(signalnum, self._hear)
        before, self._scripts[signalnum] = self._scripts[signalnum], handler
        return before

    def _get_by_script(self, signalnum: int) -> Any:
        return self._scripts[signalnum] if signalnum in self._scripts else self._get(signalnum)

    def _hear(self, number: int, frame: Optional[FrameType]) -> None:
        answer = self._heard(number)
        handler = self._scripts.get(number)
        if answer is Answer.LATER:
            return
        if callable(handler):
            handler(number, frame)
        elif handler != signal.SIG_IGN and answer is Answer.NONE:
            # What the signal does to a program without a handler, so that whoever waits sees the same status.
            self._set(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
