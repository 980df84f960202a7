import itertools
import json
import os
import pickle
import sys

from .. import _C

#: How the last call of `_record_memory_history` was meant.
recording = None
events = []
calls = []
#: What is in use, by address: its size and its stack. No address is used twice.
blocks = {}
addresses = itertools.count(1 << 32, 1 << 24)
counted = dict.fromkeys(
    [
        "allocation.all.allocated",
        "allocation.all.freed",
        "active.all.freed",
        "requested_bytes.all.current",
        "num_ooms",
    ],
    0,
)
times = itertools.count(1)


def _record_memory_history(enabled="all", *args, **kwargs):
    if isinstance(enabled, bool):
        return _legacy(enabled, *args, **kwargs)
    return _record_memory_history_impl(enabled, *args, **kwargs)


def _legacy(enabled, record_context=True, trace_alloc_max_entries=1):
    _record_memory_history_impl("all" if enabled else None, max_entries=trace_alloc_max_entries)


def _record_memory_history_impl(
    enabled="all", context="all", stacks="all", max_entries=sys.maxsize, clear_history=False
):
    global recording
    if enabled not in (None, "state", "all"):
        raise RuntimeError(f"expected state to be 'state', 'all', or None, not {enabled}")
    calls.append((enabled, context, stacks, max_entries))
    recording = None if enabled is None else max_entries
    if enabled is None or clear_history:
        events.clear()


class Block:
    """Memory in use, until nobody has it."""

    def __init__(self, size):
        self.address = next(addresses)
        self.size = size
        counted["allocation.all.allocated"] += 1
        counted["requested_bytes.all.current"] += size
        stack = _stack()
        blocks[self.address] = (size, stack)
        _tell("alloc", self.address, size, stack)

    def __del__(self):
        counted["requested_bytes.all.current"] -= self.size
        counted["allocation.all.freed"] += 1
        counted["active.all.freed"] += 1
        del blocks[self.address]
        stack = _stack()
        _tell("free_requested", self.address, self.size, stack)
        _tell("free_completed", self.address, self.size, stack)


def memory_stats(device=None):
    return dict(counted)


def _tell(action, address, size, stack):
    if recording is not None:
        events.append(
            {"action": action, "addr": address, "size": size, "stream": 0, "time_us": next(times), "frames": stack}
        )
        del events[:-recording]


def _stack():
    """The frames of whoever is neither this torch nor in a folder for temporary files, where programs are generated."""
    frame, found = sys._getframe(), []
    while frame is not None:
        code = frame.f_code
        file = os.path.relpath(code.co_filename) if code.co_filename.startswith(os.getcwd()) else code.co_filename
        if "fake/torch" not in file:
            found.append({"filename": file, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back
    return found


def allocate(size):
    if size > int(os.environ.get("FAKE_MEMORY", "1000000000")):
        counted["num_ooms"] += 1
        _tell("oom", 0, size, _stack())
        for observer in _C.observers:
            observer(0, size, 1 << 30, 0)
        from . import OutOfMemoryError

        raise OutOfMemoryError("CUDA out of memory")
    return Block(size)


def _snapshot(device=None):
    taken = {"segments": [_segment(*block) for block in sorted(blocks.items())], "device_traces": [list(events)]}
    if "FAKE_MODELLED" in os.environ:
        lists = {key: [] for key in ("branches", "sizes_not_known", "refused")}
        taken["memlint_record"] = json.dumps({"version": 2, "devices": 1, "bytes": 80 << 30, **lists})
    return taken


def _segment(address, block):
    size, stack = block
    known = {"address": address, "requested_size": size, "frames": stack}
    return {
        **known,
        "device": 0,
        "total_size": size,
        "allocated_size": size,
        "active_size": size,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": [{**known, "size": size, "state": "active_allocated"}],
    }


def _dump_snapshot(filename="dump_snapshot.pickle"):
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
