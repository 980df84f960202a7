"""A recording inside of another one: what `memlint.record` writes in a program that `memlint record` records.

PyTorch has one history for all. Whoever records around this one wants all of it, so nothing is forgotten when a part begins;
what was before is left out of what the part writes. What it then shows is what a recording would show that began there.

Nothing in the history says where that was, and clocks differ by more than what lies between two events. So events are counted
from the end, by the figures that PyTorch keeps of its allocator: as many as there were since.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Set, Tuple


class Counted(NamedTuple):
    """What counts events of a kind."""

    #: The figure (`torch.cuda.memory_stats`).
    figure: str
    #: Whether it counts the bytes of events, or the events.
    by_bytes: bool = False


#: By action. Of expandable segments only bytes are counted.
COUNTED = {
    "alloc": Counted("allocation.all.allocated"),
    "free_requested": Counted("allocation.all.freed"),
    "free_completed": Counted("active.all.freed"),
    "segment_alloc": Counted("reserved_bytes.all.allocated", by_bytes=True),
    "segment_map": Counted("reserved_bytes.all.allocated", by_bytes=True),
    "segment_free": Counted("reserved_bytes.all.freed", by_bytes=True),
    "segment_unmap": Counted("reserved_bytes.all.freed", by_bytes=True),
    "oom": Counted("num_ooms"),
}
#: Actions that make what a snapshot's segments and blocks have the stack of.
MADE = ("alloc", "segment_alloc", "segment_map")

Figures = Dict[str, int]
Events = List[Dict[str, Any]]


class Part:
    """What is recorded from here on, of a history that began earlier."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._before = self._figures()

    def cut(self, snapshot: Any, max_entries: int) -> None:
        """Leaves what was before out of a snapshot of this moment, and of the rest all but the last events."""
        traces: List[Events] = snapshot["device_traces"]
        beginnings = [
            _beginning(trace, _since(before, now)) for trace, before, now in zip(traces, self._before, self._figures())
        ]
        _cut_times(snapshot, [trace[at - 1] for trace, at in zip(traces, beginnings) if at > 0])
        whole: Set[int] = set()
        made: Set[Tuple[int, int]] = set()
        for device, at in enumerate(beginnings):
            trace = traces[device][at:]
            if at > 0 and len(trace) <= max_entries:
                whole.add(device)
            traces[device] = trace[-max_entries:]
            made.update((device, event["addr"]) for event in traces[device] if event["action"] in MADE)
        _forget_stacks(snapshot, whole, made)

    def _figures(self) -> List[Figures]:
        """The figures that count, of each device."""
        known = {counted.figure for counted in COUNTED.values()}
        figures = []
        for device in range(self._cuda.device_count()):
            stats = self._cuda.memory_stats(device)
            figures.append({figure: int(stats[figure]) for figure in known if figure in stats})
        return figures


def _since(before: Figures, now: Figures) -> Figures:
    """How much was counted since; nothing where the program has set the figures back, so that nobody knows."""
    since = {figure: now[figure] - before.get(figure, 0) for figure in now}
    return {} if any(count < 0 for count in since.values()) else since


def _beginning(trace: Events, left: Figures) -> int:
    """The place of the first event of those that were counted; 0 where the oldest of them are lost, or were not counted."""
    if not left:
        return 0
    for place in range(len(trace) - 1, -1, -1):
        if not any(count > 0 for count in left.values()):
            return place + 1
        counted = COUNTED.get(trace[place]["action"])
        if counted is not None and counted.figure in left:
            if left[counted.figure] <= 0:
                return place + 1
            left[counted.figure] -= trace[place]["size"] if counted.by_bytes else 1
    return 0


def _cut_times(snapshot: Any, last: Events) -> None:
    """Leaves out what lists with times, but without figures, hold up to the last events that were left out."""
    times = [event["time_us"] for event in last if "time_us" in event]
    if not times:
        return
    for name in ("external_annotations", "host_traces"):
        if name in snapshot:
            snapshot[name] = [one for one in snapshot[name] if one.get("time_us", 0) > max(times)]


def _forget_stacks(snapshot: Any, whole: Set[int], made: Set[Tuple[int, int]]) -> None:
    """Takes the stacks from what is older than the part, on devices that the part shows as a whole: a stack without an event
    means that events are lost."""
    for segment in snapshot["segments"]:
        device = segment["device"]
        if device in whole:
            for one in (segment, *segment["blocks"]):
                if (device, one.get("address")) not in made:
                    one["frames"] = []
