import os
import pickle
import sys

from .. import _C

#: How the last call of `_record_memory_history` was meant.
recording = None
events = []
calls = []


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


def allocate(size):
    if size > int(os.environ.get("FAKE_MEMORY", "1000000000")):
        for observer in _C.observers:
            observer(0, size, 1 << 30, 0)
        from . import OutOfMemoryError

        raise OutOfMemoryError("CUDA out of memory")
    if recording is not None:
        events.append({"action": "alloc", "size": size, "addr": 1 + len(events), "frames": []})
        del events[:-recording]


def _snapshot(device=None):
    return {"segments": [], "device_traces": [list(events)]}


def _dump_snapshot(filename="dump_snapshot.pickle"):
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
