"""Records the training of transformers' Trainer.

    trainer = Trainer(..., callbacks=[MemlintCallback("snapshot.pickle")])

The Trainer has the model on the GPU before its training begins, so that the model's own memory has no stacks here;
`memlint record` sees it, too.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ._first_steps import FirstSteps


class MemlintCallback(FirstSteps, TrainerCallback):
    """Records the first `iterations` optimizer steps of a training, or all of it where that is None."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begins to record."""
        self.recording.__enter__()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Writes the snapshot of a training that was shorter."""
        self.recording.__exit__()
