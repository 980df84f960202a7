"""What PyTorch's L-BFGS decides, where there is no GPU.

It is the one optimizer of PyTorch's that goes by values: whether the gradient is small enough to stop, whether a step had enough
curvature to be remembered, whether a line search may end. They are made of the whole gradient, which is unknown, and read as
next to zero they would say that it has arrived: it would never remember a step, and its history is most of what it holds. So
it is on its way: the loss falls, a step has curvature, goes downhill and satisfies the line search, and nothing is below a
tolerance. As with all that is unknown, the lines that ask are written down.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from torch import Tensor

from .known import FOLDER

#: Where it stands.
ASKS = os.path.join("torch", "optim", "lbfgs.py")
#: What stands between it and an operator where the program has set a default device.
PASSES_ON = os.path.join("torch", "utils", "_device.py")
#: Operators that compare.
COMPARES = {"lt", "le", "gt", "ge"}


def is_asked() -> bool:
    """Whether it is L-BFGS that has called an operator."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _passes_on(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename.endswith(ASKS)


def _passes_on(file: str) -> bool:
    return file.startswith(FOLDER) or file.endswith(PASSES_ON)


class Descent:
    """What L-BFGS is told."""

    def __init__(self) -> None:
        self._losses = 0

    def loss(self) -> float:
        """A loss, below those before."""
        self._losses += 1
        return 1.0 / self._losses

    @staticmethod
    def holds(name: str, other: Any) -> bool:
        """Whether a comparison with another value holds. Two tensors are compared by the line search, which is content; curvature
        is above its tolerance, and the slope not above its own, which is zero or negative. Everything else asks whether something
        is small."""
        return isinstance(other, Tensor) or (name in ("gt", "ge") and bool(other > 0))
