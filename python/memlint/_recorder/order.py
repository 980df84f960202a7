"""What memlint ordered: one environment variable that holds JSON."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Optional

VARIABLE = "MEMLINT_RECORDING"


class Order(NamedTuple):
    """How to record; the Rust side writes it (`src/record/order.rs`)."""

    #: The folder in which processes tell what they do.
    ledger: str
    #: The folder that gets the snapshots.
    folder: str
    #: What snapshots are called where one process records, without an ending.
    name: str
    #: Whether that name goes before the names of ranks.
    named: bool
    #: Write after so many optimizer steps.
    iterations: Optional[int]
    #: End the program then.
    stop: bool
    #: Write a snapshot of its own after every so many optimizer steps.
    every: Optional[int]
    #: Write the snapshot anew after every so many optimizer steps.
    watch: Optional[int]
    #: Which frames a stack has: `all` or `python`.
    stacks: str
    #: The most events kept; nothing leaves it to the recorder.
    max_entries: Optional[int]
    #: What stands in for the GPU: how many devices, and the bytes of each; nothing where there is a real one.
    model: Optional[dict[str, int]]


def given() -> Order:
    """The order that this process inherited."""
    said: dict[str, Any] = json.loads(os.environ[VARIABLE])
    return Order._make(said.get(field) for field in Order._fields)
