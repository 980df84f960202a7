"""Which process of a job this is, and what the machine has to give."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple, Optional

#: Who numbers the processes of a job, and counts them; the first that speaks is believed.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("PMI_RANK", "PMI_SIZE"),
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE"),
)

#: Host memory that an event takes: in training loops of ResNet-50 and GPT-2 (PyTorch 2.11) 0.3 KiB with Python's frames and
#: 0.55 KiB with C++'s, too; deeper stacks take more.
BYTES_OF_EVENT = 1024
#: The share of the free host memory that events may take.
SHARE = 20
#: More events than this make snapshots that nobody waits for: with C++'s frames a million takes some 20 s and 170 MB.
MOST_EVENTS = 1_000_000
#: Below this not even a few iterations fit.
FEWEST_EVENTS = 50_000


class Rank(NamedTuple):
    """The number of a process in its job."""

    rank: int
    world: int


def _number(name: str) -> Optional[int]:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def rank_of_launcher() -> Optional[Rank]:
    """What the launcher says; nothing where the job has one process."""
    for rank_name, world_name in LAUNCHERS:
        rank, world = _number(rank_name), _number(world_name)
        if rank is not None and world is not None:
            return Rank(rank, world) if world > 1 else None
    return None


def rank_of_torch(torch: Any) -> Optional[Rank]:
    """What `torch.distributed` says, while a process group is there."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    world = distributed.get_world_size()
    return Rank(distributed.get_rank(), world) if world > 1 else None


def is_data_loader_worker() -> bool:
    """Whether a DataLoader started this process. Its memory is not the training's."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def uncaught() -> Optional[str]:
    """The class of the exception that ends this process, where it is at its end. A person who stops it is none."""
    raised = getattr(sys, "last_value", None)
    if raised is None or isinstance(raised, KeyboardInterrupt) or hasattr(sys, "ps1"):
        return None
    return type(raised).__name__


def _free_memory() -> Optional[int]:
    """Bytes of host memory that are left, by the machine and by the container; nothing where neither tells."""
    found = []
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            most = int(file.read())
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as file:
            found.append(max(most - int(file.read()), 0))
    except (OSError, ValueError):
        # No limit is written as "max".
        pass
    return min(found) if found else None


def affordable_events() -> int:
    """How many events the machine can keep for each process of the job."""
    free = _free_memory()
    if free is None:
        return MOST_EVENTS
    processes = max(_number("LOCAL_WORLD_SIZE") or 1, 1)
    return max(FEWEST_EVENTS, min(MOST_EVENTS, free // SHARE // BYTES_OF_EVENT // processes))
