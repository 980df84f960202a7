"""Recordings inside of a recording: blocks of a program that `memlint record` records, and tests of a pytest that it records."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import SOURCES, Program, Ran
from test_pytest_plugin import Suite

from memlint.part import Part

BEGINNING = """
import memlint, torch
from torch.optim.optimizer import Optimizer
optimizer = Optimizer()
allocate = torch.cuda.allocate
"""


def ran(program: Program, text: str, **order: Any) -> Ran:
    done = program.run(BEGINNING + text, environment=program.environment(SOURCES, **order))
    assert (done.status, done.err) == (0, "")
    return done


def sizes(program: Program, name: str) -> list[int]:
    return [event["size"] for event in Ran.read(program.folder / name)["device_traces"][0]]


def test_a_block_shows_its_own_events_and_the_program_all(program: Program) -> None:
    text = """
allocate(1)
for number in range(2):
    with memlint.record(f"{number}.pickle") as recording:
        allocate(10 + number)
        recording.write()
        allocate(20 + number)
    allocate(2)
torch.cuda.memory.allocate(3)
with memlint.record("nothing.pickle"):
    pass
"""
    done = ran(program, text)
    assert sizes(program, "0.pickle") == [10, 20]
    assert sizes(program, "1.pickle") == [11, 21]
    assert sizes(program, "nothing.pickle") == []
    assert done.snapshots == {"snapshot.1.pickle": [1, 10, 20, 2, 11, 21, 2, 3, 3, 3]}
    blocks = [segment["blocks"][0] for segment in Ran.read(program.folder / "1.pickle")["segments"]]
    stacks = {block["size"]: bool(block["frames"]) for block in blocks}
    assert stacks == {1: False, 10: False, 20: False, 2: False, 11: True, 21: True}, "as in one that begins late"


def test_memory_that_ran_out_is_its_own_blocks(program: Program) -> None:
    text = """
def run_out(size):
    try:
        allocate(size)
    except torch.cuda.OutOfMemoryError:
        pass
run_out(1 << 40)
with memlint.record("a.pickle"):
    allocate(1)
with memlint.record("b.pickle"):
    run_out(1 << 41)
"""
    ran(program, text)
    assert (sizes(program, "a.pickle"), sizes(program, "b.pickle")) == ([1], [1 << 41])


def test_blocks_in_blocks_show_their_own(program: Program) -> None:
    text = """
with memlint.record("outer.pickle"):
    allocate(1)
    with memlint.record("inner.pickle"):
        allocate(2)
    allocate(3)
print(torch.cuda.memory.recording)
"""
    done = program.run(BEGINNING + text, environment={**program.environment(SOURCES), "MEMLINT_RECORDING": ""})
    assert done.out == "None\n"
    assert (sizes(program, "inner.pickle"), sizes(program, "outer.pickle")) == ([2], [1, 2, 3])


def test_a_recording_that_ends_within_a_block_takes_nothing_from_it(program: Program) -> None:
    text = """
allocate(1)
with memlint.record("a.pickle"):
    allocate(2)
    optimizer.step()
    allocate(3)
print(torch.cuda.memory.recording)
with memlint.record("b.pickle"):
    allocate(4)
"""
    done = ran(program, text, iterations=1)
    assert done.out == "None\n"
    assert done.snapshots == {"snapshot.1.pickle": [1, 2]}
    assert (sizes(program, "a.pickle"), sizes(program, "b.pickle")) == ([2, 3], [4])


def test_a_block_has_as_many_events_as_it_asks_for_or_are_left(program: Program) -> None:
    text = """
allocate(1)
with memlint.record("few.pickle", max_entries=2):
    [allocate(size) for size in (2, 3, 4)]
with memlint.record("lost.pickle", max_entries=4):
    [allocate(size) for size in (5, 6, 7, 8, 9)]
"""
    ran(program, text, max_entries=4)
    assert (sizes(program, "few.pickle"), sizes(program, "lost.pickle")) == ([3, 4], [6, 7, 8, 9])
    for name in ("few.pickle", "lost.pickle"):
        segments = Ran.read(program.folder / name)["segments"]
        assert all(segment["blocks"][0]["frames"] for segment in segments), "stacks without events: some are lost"


class Cuda:
    """Figures of a made-up allocator."""

    def __init__(self, *devices: dict[str, int]) -> None:
        self.devices = list(devices)

    def device_count(self) -> int:
        return len(self.devices)

    def memory_stats(self, device: int) -> dict[str, int]:
        return self.devices[device]


def event(action: str, size: int, time: int) -> dict[str, Any]:
    return {"action": action, "addr": size, "size": size, "time_us": time}


FIGURES = {"allocation.all.allocated": 7, "allocation.all.freed": 7, "active.all.freed": 7}
FIGURES.update({"reserved_bytes.all.allocated": 100, "reserved_bytes.all.freed": 90, "num_ooms": 1})
UNMAPPED = [event("free_completed", 9, 1), event("segment_unmap", 9, 2), event("snapshot", 0, 3)]
GROWN = [event("segment_map", 4, 5), event("alloc", 3, 6), event("snapshot", 0, 7), event("segment_unmap", 2, 8)]


def snapshot(**more: Any) -> Any:
    return {"segments": [], "device_traces": [UNMAPPED + GROWN, [event("alloc", 1, 2)], []], **more}


def later() -> list[dict[str, int]]:
    grown = {"allocation.all.allocated": 8, "reserved_bytes.all.allocated": 104, "reserved_bytes.all.freed": 92}
    return [{**FIGURES, **grown}, FIGURES, FIGURES]


def test_each_device_is_cut_where_its_own_events_begin() -> None:
    cuda = Cuda(FIGURES, FIGURES, FIGURES)
    part = Part(cuda)
    cuda.devices = later()
    annotations = [{"name": str(time), "time_us": time} for time in (2, 3, 4, 9)]
    taken = snapshot(external_annotations=annotations, host_traces=annotations[2:])
    part.cut(taken, 100)
    assert taken["device_traces"] == [GROWN, [], []]
    assert [one["time_us"] for one in taken["external_annotations"]] == [4, 9]
    assert len(taken["host_traces"]) == 2


def test_figures_that_are_set_back_or_missing_leave_nothing_out() -> None:
    cuda = Cuda(FIGURES, FIGURES, FIGURES)
    part = Part(cuda)
    cuda.devices = [dict.fromkeys(FIGURES, 0), {}, {}]
    taken = snapshot()
    part.cut(taken, 100)
    assert taken == snapshot()


def test_figures_that_a_version_has_not_count_nothing() -> None:
    def without(figures: dict[str, int]) -> dict[str, int]:
        return {name: count for name, count in figures.items() if not name.startswith("reserved")}

    cuda = Cuda(*(without(FIGURES) for _ in range(3)))
    part = Part(cuda)
    cuda.devices = [without(figures) for figures in later()]
    taken = copy.deepcopy(snapshot())
    part.cut(taken, 100)
    assert [one["action"] for one in taken["device_traces"][0]] == ["alloc", "snapshot", "segment_unmap"]


@pytest.fixture
def recorded(program: Program, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A pytest below `memlint record`."""
    for name, value in program.environment(SOURCES).items():
        monkeypatch.setenv(name, value)
    return Suite(pytester)


def test_a_large_test_is_not_held_against_a_small_one(recorded: Suite) -> None:
    done = recorded.run(
        """
@pytest.mark.gpu_memory(limit="100 MiB")
def test_large():
    allocate(90)

@pytest.mark.gpu_memory(limit="2 MiB")
def test_small():
    allocate(1)

@pytest.mark.gpu_memory(limit="2 MiB")
def test_above():
    allocate(3)
"""
    )
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["3 MiB of GPU memory in use at a time, 1 MiB above the limit of 2 MiB; *"])


def test_a_leak_is_held_against_its_own_test_alone(recorded: Suite, program: Program) -> None:
    recorded.configure("[lint]\ndeny = ['growing-residency']")
    done = recorded.run(
        """
def steps(keep):
    for _ in range(8):
        held = allocate(64)
        if keep:
            kept.append(held)
        del held
        allocate(3)

@pytest.mark.gpu_memory
def test_leaks():
    steps(keep=True)

@pytest.mark.gpu_memory
def test_in_order():
    steps(keep=False)

@pytest.mark.gpu_memory(leaks=False)
def test_grows():
    kept.append(allocate(2))

@pytest.mark.gpu_memory(leaks=False)
def test_does_not_grow():
    allocate(2)
""",
        "-rf",
    )
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(["FAILED *::test_leaks *", "FAILED *::test_grows *"])
    told = [json.loads(line) for file in Path(program.folder, "ledger").iterdir() for line in file.open()]
    assert [line["event"] for line in told].count("written") == 1, "the whole program is recorded, too"
