"""The early stop of checkpoints, as PyTorch 2.11 has it: `None` leaves it to each call."""

from typing import Optional

_enable_checkpoint_early_stop: Optional[bool] = None
