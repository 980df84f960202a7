"""Records the fit of a Lightning Trainer.

    trainer = Trainer(..., callbacks=[MemlintCallback("snapshot.pickle")])

Recording begins before Lightning moves the model to the GPU.
"""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback

from ._first_steps import FirstSteps


class MemlintCallback(FirstSteps, Callback):
    """Records the first `iterations` optimizer steps of a fit, or all of it where that is None."""

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begins to record."""
        if stage == "fit":
            self.recording.__enter__()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Writes the snapshot of a fit that was shorter, or failed."""
        if stage == "fit":
            self.recording.__exit__()
