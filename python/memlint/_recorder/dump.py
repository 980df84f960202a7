"""Writes a snapshot: there whole under its name, or not at all."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Python collects no garbage meanwhile: a snapshot makes millions of containers and no garbage, and what a collection
    gives back would show our frames."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def is_empty(snapshot: Any) -> bool:
    """Whether the process used no memory of a GPU."""
    return not snapshot["segments"] and not any(snapshot["device_traces"])


def write(snapshot: Any, path: str) -> None:
    """Writes beside the file and puts it into its place.

    Raises OSError where the folder or the disk does not let it; what was written then is gone.
    """
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb") as file:
            pickle.dump(snapshot, file, protocol=4)
        os.replace(partial, path)
    except BaseException:
        # Also where somebody presses Ctrl-C.
        with contextlib.suppress(OSError):
            os.remove(partial)
        raise
