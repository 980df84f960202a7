"""The Python package: reports, and recordings of a part of a program. Needs the memlint binary where a package puts it."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HERE, SOURCES

import memlint
from memlint import report

ROOT = SOURCES.parent
LEAK = ROOT / "snapshots" / "seed-leak-list" / "snapshot.pickle.zst"


def classes() -> list[type]:
    return [one for one in vars(report).values() if isinstance(one, type) and dataclasses.is_dataclass(one)]


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_classes_have_the_fields_of_the_schema(kind: type) -> None:
    described = json.loads((ROOT / "schemas" / "output.json").read_text())["$defs"][kind.__name__]
    properties = described["properties"]
    assert {field.name for field in dataclasses.fields(kind)} == set(properties)
    for field in dataclasses.fields(kind):
        said = json.dumps(properties[field.name])
        assert ("Optional" in str(field.type)) == ('"null"' in said), field.name


def test_all_classes_are_exported() -> None:
    assert {kind.__name__ for kind in classes()} <= set(memlint.__all__)


def test_a_check_gives_a_report() -> None:
    told = memlint.check(LEAK, options=["--isolated", "--source-root", str(ROOT / "examples")])
    assert not told.passes
    names = {finding.name for finding in told.findings if finding.severity == "error"}
    assert names == {"retained-graph", "growing-residency"}
    finding = told.findings[0]
    assert isinstance(finding.location, memlint.Location)
    assert isinstance(finding.impact.peak_bytes, int)
    assert all(isinstance(frame, memlint.Frame) for frame in finding.stack)
    assert told.inputs[0].devices[0].roles_at_peak["parameter"] > 0
    assert told.summary.errors == 2


def test_what_cannot_be_read_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(memlint.NoVerdict, match=r"nothing\.pickle"):
        memlint.check(tmp_path / "nothing.pickle")
    (tmp_path / "bad.pickle").write_bytes(b"\x80\x04}")
    with pytest.raises(memlint.NoVerdict):
        memlint.check(tmp_path / "bad.pickle")


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "memlint", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("memlint ")
    done = subprocess.run([sys.executable, "-m", "memlint", "check", "/nowhere"], capture_output=True, check=False)
    assert done.returncode == 2


def ran(folder: Path, text: str) -> str:
    script = folder / "program.py"
    script.write_text(
        "import memlint, torch\nfrom torch.optim.optimizer import Optimizer\noptimizer = Optimizer()\n" + text
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "fake"), *filter(None, [PATH])])}
    done = subprocess.run(
        [sys.executable, script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


PATH = os.environ.get("PYTHONPATH", "")


def sizes(file: Path) -> list[int]:
    with file.open("rb") as stream:
        return [event["size"] for event in pickle.load(stream)["device_traces"][0]]


def test_nothing_needs_torch_before_something_records() -> None:
    text = "import sys, memlint; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_block_is_recorded(tmp_path: Path) -> None:
    text = """
torch.cuda.allocate(1)
with memlint.record("a.pickle") as recording:
    torch.cuda.allocate(2)
torch.cuda.allocate(3)
print(recording.path, torch.cuda.memory.recording, torch.cuda.memory._record_memory_history.__name__)
"""
    assert ran(tmp_path, text) == "a.pickle None _record_memory_history\n"
    assert sizes(tmp_path / "a.pickle") == [2]


def test_a_function_is_recorded_each_time_anew(tmp_path: Path) -> None:
    text = """
@memlint.record("a.pickle", iterations=2)
def train(size):
    for _ in range(3):
        torch.cuda.allocate(size)
        optimizer.step()
train(1)
train(5)
"""
    assert ran(tmp_path, text) == ""
    assert sizes(tmp_path / "a.pickle") == [5, 5]


def test_memory_running_out_is_the_moment_that_is_kept(tmp_path: Path) -> None:
    text = """
try:
    with memlint.record("a.pickle"):
        try:
            torch.cuda.allocate(1 << 40)
        finally:
            torch.cuda.allocate(7)
except torch.cuda.OutOfMemoryError:
    print("out of memory")
"""
    assert ran(tmp_path, text) == "out of memory\n"
    assert sizes(tmp_path / "a.pickle") == [1 << 40], "what was asked for, and nothing later"


def test_what_is_written_before_the_end_is_replaced(tmp_path: Path) -> None:
    text = """
import pickle
def written():
    with open(recording.write(), "rb") as file:
        return len(pickle.load(file)["device_traces"][0])
with memlint.record("a.pickle", iterations=1) as recording:
    torch.cuda.allocate(1)
    print(written())
    torch.cuda.allocate(2)
    optimizer.step()
    torch.cuda.allocate(3)
    print(written())
"""
    assert ran(tmp_path, text) == "1\n2\n"
    assert sizes(tmp_path / "a.pickle") == [1, 2]


def test_ranks_write_their_own(tmp_path: Path) -> None:
    text = """
torch.distributed.group = (1, 2)
with memlint.record("a.b.pickle"):
    torch.cuda.allocate(1)
"""
    assert ran(tmp_path, text) == ""
    assert [file.name for file in tmp_path.glob("*.pickle")] == ["a_rank1.b.pickle"]


def test_what_cannot_be_written_is_raised(tmp_path: Path) -> None:
    assert "FileNotFoundError" in ran(tmp_path, "with memlint.record('no/where.pickle'):\n    torch.cuda.allocate(1)")


@pytest.mark.parametrize("steps", [1, 4])
def test_callbacks_record_what_their_trainer_does(tmp_path: Path, steps: int) -> None:
    text = f"""
from memlint.integrations import accelerate, lightning, transformers
def train(size):
    for _ in range({steps}):
        torch.cuda.allocate(size)
        optimizer.step()
callback = transformers.MemlintCallback("a.pickle", iterations=2)
callback.on_train_begin(None, None, None, model=None)
train(1)
callback.on_train_end(None, None, None, model=None)
callback = lightning.MemlintCallback("b.pickle", iterations=2)
callback.setup(None, None, "fit")
train(5)
callback.teardown(None, None, "fit")
callback.setup(None, None, "test")
callback.teardown(None, None, "test")
tracker = accelerate.MemlintTracker("c.pickle", iterations=2)
tracker.start()
train(7)
tracker.finish()
"""
    assert ran(tmp_path, text) == ""
    recorded = min(steps, 2)
    assert sizes(tmp_path / "a.pickle") == [1] * recorded
    assert sizes(tmp_path / "b.pickle") == [5] * recorded
    assert sizes(tmp_path / "c.pickle") == [7] * recorded
