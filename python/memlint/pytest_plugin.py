"""A pytest plugin that judges the GPU memory of tests; installed together with the package.

    @pytest.mark.gpu_memory(limit="2 GiB", leaks=False)
    def test_training_step(): ...

A test that is marked, or that asks for the fixture `gpu_memory`, is recorded from before its fixtures, and fails with memlint's
text where its memory is not as asked for. The snapshot stays in pytest's folder for temporary files. Where there is no GPU
the test is skipped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import pytest

if TYPE_CHECKING:
    from .testing import GpuMemory

NAME = "gpu_memory"
MARKER = (
    f"{NAME}(limit=None, leaks=True): record the GPU memory of the test; fail it above the limit ('2 GiB'), with leaks=False "
    "where it leaves more behind with every run (it runs seven times), and with neither as `memlint check` does"
)
#: The option, and the entry of pytest's configuration.
KEEP = "gpu_memory_snapshots"
#: As many characters of a test's name as pytest's own folders have.
NAME_LENGTH = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the snapshots of failed tests are to stay."""
    told = "keep the GPU memory snapshots of tests that fail in this folder"
    parser.getgroup("memlint").addoption("--gpu-memory-snapshots", dest=KEEP, metavar="DIR", help=told)
    parser.addini(KEEP, told, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", MARKER)
    config.pluginmanager.register(Plugin(), "memlint-gpu-memory")


class Plugin:
    """Records one test at a time."""

    def __init__(self) -> None:
        self._memory: Optional[GpuMemory] = None

    # Behind the hook that looks at `skipif`, and before the one that sets fixtures up.
    @pytest.hookimpl
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begins to record a test that is to be judged."""
        marker = item.get_closest_marker(NAME)
        if marker is None and NAME not in getattr(item, "fixturenames", ()):
            return
        reason = _hindrance()
        if reason is not None:
            pytest.skip(f"GPU memory is not recorded: {reason}")
        from .testing import GpuMemory

        given: Any = {} if marker is None else marker.kwargs
        complaint = None
        try:
            memory = GpuMemory(_folder(item), *(() if marker is None else marker.args), **given)
        except (TypeError, ValueError) as error:
            complaint = f"{NAME}: {error}"
        if complaint is not None:
            pytest.fail(complaint, pytrace=False)
        memory.begin()
        self._memory = memory
        self._judge_within(item, memory)

    def _judge_within(self, item: pytest.Item, memory: GpuMemory) -> None:
        """Makes the verdict a part of the test, so that whatever runs or expects a failure treats it as one."""
        body = item.runtest

        def runtest() -> None:
            try:
                memory.run(body)
            except Exception as error:
                memory.end()
                _keep(item, memory)
                if _ran_out(error):
                    item.add_report_section("call", "memlint", f"{memory.verdict()}\n\n{memory.whereabouts()}")
                raise
            memory.end()
            complaint = memory.complaint()
            if complaint is not None and memory.used_memory:
                _keep(item, memory)
                complaint = f"{complaint}\n\n{memory.whereabouts()}"
            if complaint is not None:
                pytest.fail(complaint, pytrace=False)

        item.runtest = runtest  # type: ignore[method-assign]
        item.user_properties.append(("gpu_memory_snapshot", memory.path))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Ends the recording of a test that did not get as far as its body, and leaves the test as it was."""
        memory, self._memory = self._memory, None
        if memory is not None:
            del item.runtest
            memory.end()

    @pytest.fixture
    def gpu_memory(self) -> GpuMemory:
        """The recording of this test: `gpu_memory.check()` is what memlint finds in it so far."""
        assert self._memory is not None
        return self._memory


def _keep(item: pytest.Item, memory: GpuMemory) -> None:
    """Copies the snapshot of a test that failed to where somebody wants to have it."""
    folder = item.config.getoption(KEEP) or item.config.getini(KEEP)
    if folder:
        file = re.sub(r"[^\w.-]+", "_", item.nodeid).strip("_")
        memory.keep(item.config.rootpath / str(folder) / f"{file}.pickle")


def _hindrance() -> Optional[str]:
    """Why nothing can be recorded here."""
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return "torch is not installed"
    return (
        None
        if torch.cuda.is_available()
        else "PyTorch finds no GPU (`memlint record --no-gpu -- pytest` records without one)"
    )


def _folder(item: pytest.Item) -> Path:
    """A folder of the test's own, kept as long as pytest keeps temporary files."""
    # What the fixture `tmp_path_factory` gives; there is no public way to it before fixtures are set up.
    factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
    return factory.mktemp("gpu_memory_" + re.sub(r"\W", "_", item.name)[:NAME_LENGTH])


def _ran_out(error: Exception) -> bool:
    import torch

    return isinstance(error, torch.cuda.OutOfMemoryError)
