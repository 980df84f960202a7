"""Judges the GPU memory of one test. Needs no pytest; `memlint.pytest_plugin` gives it to tests."""

from __future__ import annotations

import contextlib
import gc
import json
import re
import shlex
import shutil
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
#: The budget that a limit is for memlint; people do not read of it.
BUDGET = "budget.gpu-memory"
#: Its evidence: how much was in use.
MEASURED = "measured"
#: What memlint says of a finding's or a whole report's weight. Where a test fails by what was measured, memlint only says where.
WEIGHT = re.compile(
    r"^(?:error|warning|info): |^(?:no (?:open )?findings|\d+ (?:error|warning|note)s?)\b.*?(?:, but |$)|; otherwise .*$",
    re.M,
)
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
        self._kept: Optional[Path] = None

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
        """Records from here on, and leaves nothing of earlier tests to be given back meanwhile, and nothing to be set up that
        stays for later ones."""
        import torch

        gc.collect()
        _have_libraries_ready()
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
            before = _requests()
            _mark()
            self._requests -= _requests() - before

    @property
    def used_memory(self) -> bool:
        """Whether the test asked for memory at all, so that its snapshot shows something; known when the recording has ended."""
        return self._requests > 0

    def complaint(self) -> Optional[str]:
        """What is wrong with the test, for people; nothing where it passes. Asked for when the recording has ended."""
        if not self.used_memory:
            # What fell back to the CPU must not pass for frugal.
            return "the test asked for no memory of a GPU, so that there is nothing to judge"
        if self._limit is None and self._leaks:
            return None if self._was_asked else _said_if(self._memlint())
        return self._judged()

    def keep(self, file: Path) -> None:
        """Copies the snapshot to where it stays. Raises OSError where that cannot be written."""
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.path, file)
        self._kept = file

    def whereabouts(self) -> str:
        """Where the snapshot is, how long, and how to look at it."""
        path = str(self._kept or self.path)
        short = "pytest removes it after a few runs; --gpu-memory-snapshots=DIR keeps those of failed tests"
        lines = [
            f"the snapshot: {path}" if self._kept else f"the snapshot ({short}): {path}",
            f"  memlint check {shlex.quote(path)}",
            f"  memlint report {shlex.quote(path)} -o report.html",
        ]
        return "\n".join(lines)

    def verdict(self) -> str:
        """The whole text of `memlint check`, whatever it finds."""
        return _said(self._memlint())

    def _judged(self) -> Optional[str]:
        """What is wrong of what was asked for: nothing else is judged, whatever the project's configuration says."""
        grown = self._grown()
        over = None if self._limit is None else self._over(self._limit)
        said = [over, None if grown is None else f"{grown}\n\n{self._kept_where()}"]
        return "\n\n".join(part for part in said if part is not None) or None

    def _over(self, limit: int) -> Optional[str]:
        """By how much the test is above its limit, and what it had in use then."""
        most = limit + self._held_before
        asked = self._configuration([BUDGET], f'[{BUDGET}]\nmetric = "peak-requested"\nlimit = {most}\n')
        try:
            report = checking.read_report(["check", *asked], [self.path])
        except checking.NoVerdict as error:
            return f"the limit of {_shown(limit)} cannot be judged: {error}"
        above = [one for one in report.findings if one.name == BUDGET and one.standing == "open"]
        if not above:
            judged = report.verdict.outcome != "no-verdict"
            return None if judged else f"the limit of {_shown(limit)} cannot be judged:\n{_said(self._memlint(*asked))}"
        worst = max(above, key=lambda one: one.evidence[MEASURED])
        used = worst.evidence[MEASURED] - self._held_before
        device = f" on device {worst.device}" if worst.device else ""
        place = "" if worst.location is None else f"; most is held by {worst.location}"
        lines = [
            f"{_shown(used)} of GPU memory in use at a time{device}, {_shown(used - limit)} above the limit of "
            f"{_shown(limit)}{place}"
        ]
        if self._held_before > 0:
            before = _shown(self._held_before)
            lines.append(f"({before} more, in use before the test, do not count; below they are shown with the rest)")
        excerpts = _excerpts(self._memlint(*asked, "--quiet").stdout)
        return "\n".join([*lines, "", *excerpts]).rstrip()

    def _kept_where(self) -> str:
        """The lines that keep what grows with every run."""
        # That memory grows is measured; the rules only say where, so that they may be as unsure as they are.
        notes = "\n".join(f'[materiality.{rule}]\nnote = "always"\n' for rule in GROWTH)
        asked = self._configuration(GROWTH, notes)
        said = _said_if(self._memlint(*asked, "--quiet"))
        return "memlint names no line that keeps it" if said is None else WEIGHT.sub("", said).strip()

    def _configuration(self, rules: Sequence[str], text: str) -> List[str]:
        """The options by which memlint asks some rules alone."""
        file = self._folder / f"{rules[0]}.toml"
        file.write_text(f"[lint]\nselect = {json.dumps(list(rules))}\n\n{text}", encoding="utf-8")
        return ["--config", str(file), "--fail-on", "info"]

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


def _excerpts(text: str) -> List[str]:
    """The pieces of source in a report, without the finding around them."""
    lines = text.splitlines()
    edges = [at for at, line in enumerate(lines) if line.startswith(("    --[", "    `----"))]
    return lines[edges[0] : edges[-1] + 1] if edges else []


def _shown(size: int) -> str:
    """`112 MiB`, `11.5 MiB`, `1 byte`: as memlint writes it."""
    for unit, factor in reversed(list(UNITS.items())):
        if size >= factor > 1:
            return f"{size / factor:.1f} {unit}".replace(".0 ", " ")
    return "1 byte" if size == 1 else f"{size} bytes"


def _bytes(size: Union[str, int]) -> int:
    """`2 GiB` as a number. Raises ValueError for what is no size."""
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]iB|B)", size)
    if found is None:
        raise ValueError(f"{size!r} is no limit of memory: write a number of bytes, or one with a unit, as in '2 GiB'")
    return int(float(found[1]) * UNITS[found[2]])


def _have_libraries_ready() -> None:
    """Has PyTorch take the room that cuBLAS keeps from the first multiplication on (65 MiB on an H100): of the first test that
    multiplies it is no more than of the others. Forward and backward, which are threads of their own with a room each."""
    import torch

    # Where it cannot be done (no memory is left, `torch.use_deterministic_algorithms`), the test says why, if it multiplies.
    with contextlib.suppress(RuntimeError), torch.enable_grad():
        ones = torch.ones(2, 2, dtype=torch.float32, device="cuda", requires_grad=True)
        # One with cuBLAS, and with a bias one with cuBLASLt.
        torch.nn.functional.linear(ones @ ones, ones, ones[0]).sum().backward()


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
