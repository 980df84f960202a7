"""Judges the GPU memory of one test. Needs no pytest; `memlint.pytest_plugin` gives it to tests."""

from __future__ import annotations

import gc
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence, Union

from . import binary, checking, report
from .recording import record

MIB = 2**20
#: What a limit may be written in, as in memlint's configuration.
UNITS = {"B": 1, "KiB": 2**10, "MiB": MIB, "GiB": 2**30, "TiB": 2**40}
#: The rules that say where memory grows.
GROWTH = ("growing-residency", "retained-graph", "growing-reallocation")
#: Runs that fill caches, choose kernels and create what is created once; they are not judged.
WARM_UPS = 2
#: Runs that are judged. What fills up and stops has to grow five times on end to be taken for a leak.
RUNS = 5


class GpuMemory:
    """The GPU memory of one test: recorded from before its fixtures, and judged when its body has ended.

    `limit` is the most memory that the test and its fixtures may have in use at a time, such as "2 GiB" or a number of bytes;
    what was there before does not count. With `leaks=False` the body runs seven times, and fails where each of the last five
    runs leaves more behind than the one before. Where neither is asked for, the test fails as `memlint check` does.
    Raises ValueError for a limit that is none.
    """

    def __init__(self, folder: Path, limit: Union[str, int, None] = None, leaks: bool = True) -> None:
        self._folder = folder
        self._limit = None if limit is None else _bytes(limit)
        self._leaks = leaks
        self._recording = record(folder / "snapshot.pickle")
        self._is_recording = False
        self._was_asked = False
        self._held_before = 0
        self._requests = 0
        self._held: List[int] = []

    @property
    def path(self) -> str:
        """The snapshot, which is there when the test has ended."""
        return self._recording.path

    def check(self, *, options: Sequence[str] = ()) -> report.Report:
        """What memlint finds in what the test has done so far, with options of `memlint check`.

        The test then judges for itself: without a limit and with leaks allowed it does not fail by what else is found.
        """
        self._was_asked = True
        return checking.check(self._recording.write(), options=options)

    def begin(self) -> None:
        """Records from here on, and leaves nothing of earlier tests to be given back meanwhile."""
        import torch

        gc.collect()
        torch.cuda.empty_cache()
        self._recording.__enter__()
        self._held_before = _in_use()
        self._requests = -_requests()
        self._is_recording = True

    def end(self) -> None:
        """Writes the snapshot, unless that is done. Raises OSError where it cannot be written."""
        if self._is_recording:
            self._is_recording = False
            self._requests += _requests()
            self._recording.__exit__()

    def run(self, body: Callable[[], Any]) -> None:
        """Runs the test's body as often as is needed to judge it."""
        if self._leaks:
            body()
            return
        for _ in range(WARM_UPS + RUNS):
            body()
            # What only hangs in cycles is no leak.
            gc.collect()
            self._held.append(_in_use())
            _mark()

    def complaint(self) -> Optional[str]:
        """What is wrong with the test, for people; nothing where it passes. Asked for when the recording has ended."""
        if self._requests == 0:
            # What fell back to the CPU must not pass for frugal.
            return "the test asked for no memory of a GPU, so that there is nothing to judge"
        if self._limit is None and self._leaks:
            complaint = None if self._was_asked else _said_if(self._memlint())
        else:
            complaint = self._judged()
        return None if complaint is None else f"{complaint}\n\nthe recording: {self.path}"

    def verdict(self) -> str:
        """The whole text of `memlint check`, whatever it finds."""
        return _said(self._memlint())

    def _judged(self) -> Optional[str]:
        """What is wrong of what was asked for: nothing else is judged, whatever the project's configuration says."""
        grown = self._grown()
        rules: List[str] = []
        said: List[str] = []
        if self._limit is not None:
            most = self._limit + self._held_before
            said.append(f'[budget.gpu-memory]\nmetric = "peak-requested"\nlimit = {most}\n')
            rules.append("budget.gpu-memory")
        if grown is not None:
            # That memory grows is measured; the rules only say where, so that they may be as unsure as they are.
            said.extend(f'[materiality.{rule}]\nnote = "always"\n' for rule in GROWTH)
            rules.extend(GROWTH)
        if not rules:
            return None
        configuration = self._folder / "memlint.toml"
        configuration.write_text(f"[lint]\nselect = {json.dumps(rules)}\n\n" + "\n".join(said), encoding="utf-8")
        done = self._memlint("--config", str(configuration), "--fail-on", "info", "--quiet")
        text = _said_if(done)
        if text is not None and self._limit is not None and self._held_before > 0:
            before = f"{self._held_before / MIB:.1f} MiB, in use before the test, do not count against its limit"
            text = f"{text}\n\n{before}"
        if grown is None:
            return text
        return f"{grown}\n\n{text or 'memlint names no line that keeps it'}"

    def _grown(self) -> Optional[str]:
        """By how much memory grows with every run, where it does."""
        judged = self._held[WARM_UPS - 1 :]
        steps = [after - before for before, after in zip(judged, judged[1:])]
        if len(steps) < RUNS or min(steps) <= 0:
            return None
        held = ", ".join(f"{held / MIB:.1f}" for held in judged)
        return (
            f"each run of the test leaves more behind, {sum(steps) / RUNS / MIB:.1f} MiB on average: {held} MiB after "
            f"{WARM_UPS} warm-ups and after each of {RUNS} runs"
        )

    def _memlint(self, *options: str) -> subprocess.CompletedProcess[str]:
        said = ["--output-format", "text", "--color", "never"]
        return subprocess.run(
            [binary.find(), "check", *said, *options, "--", self.path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            check=False,
        )


def _said_if(done: subprocess.CompletedProcess[str]) -> Optional[str]:
    """What memlint said where it found something, or could not judge."""
    return _said(done) if done.returncode != 0 else None


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join(part for part in (done.stdout.strip(), done.stderr.strip()) if part)


def _bytes(size: Union[str, int]) -> int:
    """`2 GiB` as a number. Raises ValueError for what is no size."""
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]iB|B)", size)
    if found is None:
        raise ValueError(f"{size!r} is no limit of memory: write a number of bytes, or one with a unit, as in '2 GiB'")
    return int(float(found[1]) * UNITS[found[2]])


def _mark() -> None:
    """Has the recording show that a run is over, also where all of it came from one line."""
    import torch

    torch.empty(1, device="cuda")


def _in_use() -> int:
    """Bytes that the process has asked for, of all devices, and not given back."""
    return _counted("requested_bytes.all.current")


def _requests() -> int:
    """How often the process has asked for memory of any device."""
    return _counted("allocation.all.allocated")


def _counted(name: str) -> int:
    import torch

    return sum(torch.cuda.memory_stats(device).get(name, 0) for device in range(torch.cuda.device_count()))
