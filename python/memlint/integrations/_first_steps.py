"""What the callbacks of all frameworks have in common."""

from __future__ import annotations

import os
from typing import Optional, Union

from ..recording import record


class FirstSteps:
    """Records the first `iterations` optimizer steps of a training, or all of it where that is None."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]] = "snapshot.pickle",
        *,
        iterations: Optional[int] = 10,
        stacks: str = "python",
    ) -> None:
        self.recording = record(path, iterations=iterations, stacks=stacks)
