"""The pytest plugin, in a pytest of its own with a torch that is not one. Needs the package to be installed: the plugin is found
by its entry point, and memlint judges."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE

BEGINNING = """
import gc
import pytest
import torch

allocate = torch.mebibytes
kept = []
"""


class Suite:
    """Test files, run by a pytest of their own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def run(self, text: str, *options: str) -> Any:
        self._pytester.makepyfile(BEGINNING + text)
        return self._pytester.runpytest_subprocess("--basetemp", self._pytester.path / "base", *options)

    @property
    def path(self) -> Path:
        return self._pytester.path

    def configure(self, text: str) -> None:
        self._pytester.makefile(".toml", memlint=text)

    def snapshots(self) -> list[str]:
        files = self._pytester.path.glob("base/*/snapshot.pickle")
        # Beside the newest of a name lies a link to it.
        return sorted(file.parent.name for file in files if not file.parent.is_symlink())


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    paths = [str(HERE / "fake"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return Suite(pytester)


def test_tests_without_the_marker_pay_nothing(suite: Suite) -> None:
    done = suite.run("import sys\n\ndef test_it():\n    allocate(1)\n    assert 'memlint.testing' not in sys.modules")
    done.assert_outcomes(passed=1)
    assert suite.snapshots() == []


def test_a_limit_is_for_what_the_test_and_its_fixtures_use(suite: Suite) -> None:
    done = suite.run(
        """
@pytest.fixture(scope="session")
def before():
    return allocate(100)

def test_first(before):
    pass

@pytest.fixture
def model():
    return allocate(8)

@pytest.mark.gpu_memory(limit="12 MiB")
def test_below(before, model):
    allocate(4)

@pytest.mark.gpu_memory(limit="11.5 MiB")
def test_above(before, model):
    allocate(4)

@pytest.mark.gpu_memory(limit=12 * 2**20 - 1)
def test_above_by_a_byte(before, model):
    allocate(4)
"""
    )
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(
        [
            "*_ test_above _*",
            "12 MiB of GPU memory in use at a time, 512 KiB above the limit of 11.5 MiB; most is held by test_*.py:*",
            "(100 MiB more, in use before the test, do not count; below they are shown with the rest)",
            "*return allocate(100)*",
            "the snapshot (pytest removes it after a few runs; --gpu-memory-snapshots=DIR keeps *): *test_above0*snapshot.pickle",
            "  memlint check */snapshot.pickle",
            "  memlint report */snapshot.pickle -o report.html",
            "*_ test_above_by_a_byte _*",
            "12 MiB of GPU memory in use at a time, 1 byte above the limit of 12 MiB; *",
        ]
    )
    assert "budget" not in done.stdout.str(), "no name of memlint's own"
    assert len(suite.snapshots()) == 3


def test_room_that_a_library_keeps_is_no_tests(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_WORKSPACE", "32")
    done = suite.run(
        """
def multiply():
    held = allocate(1)
    matrix = torch.ones(2, 2, dtype=torch.float32, device="cuda", requires_grad=True)
    (matrix @ matrix).sum().backward()

@pytest.mark.gpu_memory(limit="1 MiB")
def test_first():
    multiply()

@pytest.mark.gpu_memory(limit="1 MiB")
def test_second():
    multiply()

@pytest.mark.gpu_memory
def test_none():
    pass
"""
    )
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["the test asked for no memory of a GPU, so that there is nothing to judge"])


def test_snapshots_of_failed_tests_are_kept_where_somebody_wants_them(suite: Suite) -> None:
    text = """
@pytest.mark.gpu_memory(limit="1 MiB")
@pytest.mark.parametrize("size", [1, 2])
def test_it(size):
    allocate(size)
"""
    done = suite.run(text, "--gpu-memory-snapshots", "kept/here")
    done.assert_outcomes(passed=1, failed=1)
    kept = list((suite.path / "kept" / "here").iterdir())
    assert [file.name.split(".py_")[1] for file in kept] == ["test_it_2.pickle"]
    done.stdout.fnmatch_lines([f"the snapshot: {kept[0]}", f"  memlint check {kept[0]}"])
    (suite.path / "pytest.ini").write_text("[pytest]\ngpu_memory_snapshots = by-ini\n")
    suite.run(text).assert_outcomes(passed=1, failed=1)
    assert len(list((suite.path / "by-ini").iterdir())) == 1


@pytest.mark.parametrize("modelled", [False, True])
def test_what_grows_with_every_run_is_found_at_its_line(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, modelled: bool
) -> None:
    if modelled:
        monkeypatch.setenv("FAKE_MODELLED", "1")
    done = suite.run(
        """
@pytest.mark.gpu_memory(leaks=False)
def test_grows():
    allocate(3)
    kept.append(allocate(2))
"""
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "each run of the test leaves more behind, 2.0 MiB on average: 4.0, 6.0, 8.0, 10.0, 12.0, 14.0 MiB*",
            "",
            "memory grows by 2 MiB an iteration, 14 MiB in all*growing-residency*",
            "*kept.append(allocate(2))*",
            *(["modelled without a GPU", ""] if modelled else []),
            "the snapshot *",
        ]
    )
    said = done.stdout.str()
    assert not re.search("findings|[0-9] note", said), "the test fails, so something is found"


def test_what_fills_up_and_what_hangs_in_a_cycle_is_no_leak(suite: Suite) -> None:
    done = suite.run(
        """
gc.disable()

@pytest.mark.gpu_memory(leaks=False)
def test_fills_up():
    if len(kept) < 6:
        kept.append(allocate(2))

@pytest.mark.gpu_memory(leaks=False)
def test_cycle():
    cycle = [allocate(2)]
    cycle.append(cycle)

@pytest.mark.gpu_memory(leaks=False)
def test_last_one_stays():
    kept[:] = [allocate(2)]
"""
    )
    done.assert_outcomes(passed=3)


def test_alone_the_marker_judges_as_a_check_does(suite: Suite) -> None:
    suite.configure("[lint]\ndeny = ['growing-residency']")
    done = suite.run(
        """
@pytest.mark.gpu_memory
def test_grows():
    for _ in range(8):
        step()

def step():
    kept.append(allocate(64))
    allocate(3)

@pytest.mark.gpu_memory
def test_in_order():
    for _ in range(8):
        allocate(64)
        allocate(3)
"""
    )
    done.stdout.fnmatch_lines(["error: memory grows by 64 MiB an iteration*", "*kept.append(allocate(64))*"])
    done.assert_outcomes(passed=1, failed=1)


def test_the_fixture_lets_the_test_judge(suite: Suite) -> None:
    suite.configure("[lint]\ndeny = ['growing-residency']")
    done = suite.run(
        """
def step():
    kept.append(allocate(64))
    allocate(3)

def test_judges(gpu_memory):
    for _ in range(8):
        step()
    names = [finding.name for finding in gpu_memory.check(options=["--select", "leak"]).findings]
    assert names == ["growing-residency"]

def test_is_judged(gpu_memory):
    for _ in range(8):
        step()
"""
    )
    done.assert_outcomes(passed=1, failed=1)
    assert len(suite.snapshots()) == 2


@pytest.mark.parametrize("asked", ["", "limit='1 GiB'", "leaks=False"])
def test_a_test_without_gpu_memory_is_no_frugal_one(suite: Suite, asked: str) -> None:
    text = f"@pytest.mark.gpu_memory({asked})\ndef test_nothing():\n    pass"
    done = suite.run(text, "--gpu-memory-snapshots", "kept")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["the test asked for no memory of a GPU, so that there is nothing to judge"])
    assert "snapshot:" not in done.stdout.str(), "nor anything to look at"
    assert "memlint check" not in done.stdout.str()
    assert not (suite.path / "kept").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [("limit='2 Gigs'", "'2 Gigs' is no limit of memory*"), ("limits=1", "*unexpected keyword argument 'limits'")],
)
def test_what_the_marker_does_not_understand_is_an_error(suite: Suite, arguments: str, complaint: str) -> None:
    done = suite.run(f"@pytest.mark.gpu_memory({arguments})\ndef test_it():\n    allocate(1)")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([f"gpu_memory: {complaint}"])


def test_where_there_is_no_gpu_tests_are_skipped(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NO_GPU", "1")
    text = "@pytest.mark.gpu_memory\ndef test_it():\n    allocate(1)\n\ndef test_other(gpu_memory):\n    pass"
    done = suite.run(text, "-rs")
    done.assert_outcomes(skipped=2)
    done.stdout.fnmatch_lines(
        ["*GPU memory is not recorded: PyTorch finds no GPU (`memlint record --no-gpu -- pytest`*"]
    )


def test_where_there_is_no_torch_tests_are_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n\n@pytest.mark.gpu_memory\ndef test_it():\n    pass")
    done = pytester.runpytest_subprocess("-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["*GPU memory is not recorded: torch is not installed"])


def test_failures_stay_what_they_are(suite: Suite) -> None:
    done = suite.run(
        """
@pytest.mark.gpu_memory(limit=1)
def test_fails():
    allocate(1)
    assert False, "the test's own"

@pytest.mark.gpu_memory(limit=1)
@pytest.mark.xfail(strict=True)
def test_expected():
    allocate(1)

@pytest.fixture
def broken():
    raise RuntimeError

@pytest.mark.gpu_memory
def test_error(broken):
    pass

@pytest.mark.gpu_memory
def test_runs_out():
    allocate(1)
    allocate(1 << 20)

def test_after():
    assert torch.cuda.memory.recording is None
"""
    )
    done.assert_outcomes(failed=2, xfailed=1, errors=1, passed=1)
    done.stdout.fnmatch_lines(
        ["*AssertionError: the test's own", "*Captured memlint call*", "error: out of memory: 1 TiB wanted*"]
    )
    assert "is above the budget" not in done.stdout.str()
