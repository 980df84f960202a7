"""Checkpoints without reentry: how they end their second forward pass while memory is recorded.

They end it as soon as all is computed that was not kept, by an exception out of an operator. PyTorch 2.11 loses that
exception where it records the stack of a free meanwhile, and the program ends with `SystemError: <built-in method dropout
...> returned NULL without setting an exception`, on a GPU as without one. With the early stop off the second pass goes to
its end: the same values, a few operators more.
"""

from __future__ import annotations

import importlib
from typing import Any

#: What decides in `torch.utils.checkpoint`; what the program says with `set_checkpoint_early_stop` goes before.
NAME = "_enable_checkpoint_early_stop"


class Checkpoints:
    """The early stop of a program's checkpoints: off between `hold` and `release`."""

    def __init__(self) -> None:
        self._module: Any = None
        self._before: Any = None

    def hold(self) -> None:
        """Turns the early stop off. A PyTorch without it has none to lose."""
        try:
            module = importlib.import_module("torch.utils.checkpoint")
        except ImportError:
            return
        if self._module is None and hasattr(module, NAME):
            self._module, self._before = module, getattr(module, NAME)
            setattr(module, NAME, False)

    def release(self) -> None:
        """Leaves it as it was."""
        if self._module is not None and getattr(self._module, NAME) is False:
            setattr(self._module, NAME, self._before)
        self._module = None
