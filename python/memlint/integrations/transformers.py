"""Records the training of transformers' Trainer.

    trainer = Trainer(..., callbacks=[MemlintCallback("snapshot.pickle")])

The Trainer has the model on the GPU before its training begins, so that the model's own memory has no stacks here;
`memlint record` sees it, too.
"""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from transformers import TrainerCallback

from ..recording import record


class MemlintCallback(TrainerCallback):
    """Records the first `iterations` optimizer steps of a training, or all of it where that is None."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]] = "snapshot.pickle",
        *,
        iterations: Optional[int] = 10,
        stacks: str = "python",
    ) -> None:
        self.recording = record(path, iterations=iterations, stacks=stacks)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begins to record."""
        self.recording.__enter__()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Writes the snapshot of a training that was shorter."""
        self.recording.__exit__()
