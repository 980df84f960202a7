#!/usr/bin/env python3
"""Records programs of the corpus without a GPU and holds them against their recordings from one.

    .ci/no_gpu.py MEMLINT PYTHON [CASE...]

PYTHON has PyTorch's wheel for CUDA. Without names the programs below are recorded; "all" is the whole corpus. What is compared are the snapshots
that the programs write themselves, with what they record and from where on, as they did on the GPU. A line for each: whether the warnings and
errors are the same at the same lines, the peaks against the GPU's, seconds. Exit status 1 where the findings of a program differ, or where
its peak of requested bytes is off by more than a hundredth."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: Programs that need PyTorch alone: leaks, peaks and the allocator, with their healthy twins.
USUAL = [
    "cat-eval-bug",
    "cat-eval-fixed",
    "frag-serving-holes-bug",
    "graphpool-buckets-bug",
    "grow-replay-bug",
    "grow-replay-fixed",
    "h2-unfreeze-newopt",
    "ho-nanogpt",
    "ho-nanogpt-nozero",
    "ho-seq2seq",
    "ho-serving-noevict",
    "mzg-gan-disc-fixed",
]
#: What the corpus was recorded on has so much.
MEMORY = "140GiB"
MOST_APART = 0.01
#: Runs before the program, and has memlint record nothing, so that the program's own recording is all there is.
OWN = "from memlint_recorder import recorder; recorder.wait_for_cuda = lambda *arguments: None"


def check(memlint: str, snapshot: Path, program: Path) -> tuple[set, dict]:
    """Warnings and errors by rule, line and severity, and the first device's figures."""
    command = [memlint, "check", "--isolated", "--output-format", "json", str(snapshot)]
    report = json.loads(subprocess.run(command, cwd=program, capture_output=True, text=True).stdout)
    loud = [finding for finding in report["findings"] if finding["severity"] in ("error", "warning")]
    findings = {(finding["name"], (finding["location"] or {}).get("line"), finding["severity"]) for finding in loud}
    return findings, report["inputs"][0]["devices"][0]


def record(memlint: str, python: str, program: Path, label: dict) -> tuple[Path | None, float]:
    """Records a program in its folder; nothing where it wrote no snapshot."""
    (program / "own").mkdir()
    (program / "own" / "sitecustomize.py").write_text(OWN)
    # A script of the corpus calls `python3`.
    paths = {"PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}", "PYTHONPATH": str(program / "own")}
    environment = {**os.environ, **paths, "OMP_NUM_THREADS": "1", **label.get("env", {})}
    script = ["sh", "run.sh"] if (program / "run.sh").exists() else [python, "train.py"]
    options = ["--no-gpu", "--device-memory", MEMORY, "--no-check", "-o", "not-wanted.pickle.zst"]
    command = [memlint, "record", *options, "--", *script, "own.pickle"]
    begun = time.perf_counter()
    ran = subprocess.run(command, cwd=program, capture_output=True, text=True, env=environment)
    seconds = time.perf_counter() - begun
    # Some give it a name of their own.
    snapshot = next(program.glob("*.pickle"), None)
    if snapshot is None:
        print("\n".join(ran.stderr.splitlines()[-6:]), file=sys.stderr)
    return snapshot, seconds


class Compared(NamedTuple):
    """A program without a GPU and with one."""

    case: str
    #: Warnings and errors of the GPU's recording alone, and of the other alone.
    missed: set
    added: set
    #: Peaks as shares of the GPU's.
    requested: float
    allocated: float
    reserved: float
    seconds: float

    @property
    def has_same_findings(self) -> bool:
        return not self.missed and not self.added

    @property
    def is_same(self) -> bool:
        return self.has_same_findings and abs(self.requested - 1) <= MOST_APART

    def __str__(self) -> str:
        verdict = "same" if self.has_same_findings else "DIFFERS"
        peaks = f"requested {self.requested:.4f}  allocated {self.allocated:.4f}  reserved {self.reserved:.4f}"
        line = f"{self.case:32} {verdict:8} {peaks}  {self.seconds:.0f} s"
        if self.has_same_findings:
            return line
        return f"{line}\n    on the GPU alone: {sorted(self.missed, key=str)}; here alone: {sorted(self.added, key=str)}"


def compare(memlint: str, python: str, case: str) -> Compared | None:
    """Records a program and judges both; nothing where it wrote no snapshot."""
    label = json.loads((ROOT / "snapshots" / case / "case.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / case
        shutil.copytree(ROOT / "examples" / case, program)
        snapshot, seconds = record(memlint, python, program, label)
        if snapshot is None:
            print(f"{case:32} not recorded", flush=True)
            return None
        expected, gpu = check(memlint, ROOT / "snapshots" / case / "snapshot.pickle.zst", program)
        found, modelled = check(memlint, snapshot, program)
    levels = [f"peak_{kind}_bytes" for kind in ("requested", "allocated", "reserved")]
    shares = [(modelled.get(level) or 0) / max(gpu.get(level) or 0, 1) for level in levels]
    compared = Compared(case, expected - found, found - expected, *shares, seconds)
    print(compared, flush=True)
    return compared


def main() -> int:
    memlint, python, *cases = sys.argv[1:]
    if cases == ["all"]:
        cases = sorted(path.parent.name for path in ROOT.glob("snapshots/*/case.json"))
    cases = cases or USUAL
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = list(pool.map(lambda case: compare(os.path.abspath(memlint), python, case), cases))
    done = [one for one in tried if one is not None]
    for what, count in (
        ("recorded", len(done)),
        ("the same warnings and errors at the same lines", sum(one.has_same_findings for one in done)),
        ("peak requested to the byte", sum(one.requested == 1 for one in done)),
        ("peak requested within 1 %", sum(abs(one.requested - 1) <= 0.01 for one in done)),
        ("peak reserved within 5 %", sum(abs(one.reserved - 1) <= 0.05 for one in done)),
    ):
        print(f"{count:4} of {len(cases)}: {what}")
    if done:
        print(f"{statistics.median(one.seconds for one in done):.0f} s in the median")
    return 0 if len(done) == len(cases) and all(one.is_same for one in done) else 1


if __name__ == "__main__":
    sys.exit(main())
