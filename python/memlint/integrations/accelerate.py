"""Records a training loop that accelerate runs.

    accelerator = Accelerator(log_with=MemlintTracker("snapshot.pickle"))
    accelerator.init_trackers("training")   # recording begins
    ...
    accelerator.end_training()

Accelerate starts trackers in the first process of a job alone, and what stands on the GPU before `init_trackers` has no stacks
here: `memlint record -- accelerate launch train.py` records all of it.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from accelerate.tracking import GeneralTracker

from ..recording import record
from ._first_steps import FirstSteps


class MemlintTracker(FirstSteps, GeneralTracker):
    """Records the first `iterations` optimizer steps after `init_trackers`, or all until `end_training` where that is None.

    Needs accelerate 1.8 or later, which starts trackers.
    """

    name = "memlint"
    requires_logging_directory = False

    @property
    def tracker(self) -> record:
        """What records."""
        return self.recording

    def start(self) -> None:
        """Begins to record."""
        self.recording.__enter__()

    def store_init_configuration(self, values: Dict[str, Any]) -> None:
        """Nothing: a snapshot holds no hyperparameters."""

    def log(self, values: Dict[str, Any], step: Optional[int] = None, **kwargs: Any) -> None:
        """Nothing: a snapshot holds no metrics."""

    def finish(self) -> None:
        """Writes the snapshot of a training that was shorter."""
        self.recording.__exit__()
