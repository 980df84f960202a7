#!/usr/bin/env python3
"""Records programs of the corpus without a GPU and holds them against their recordings from one.

    .ci/no_gpu.py MEMLINT PYTHON [CASE...]

PYTHON has PyTorch's wheel for CUDA. Without names the programs below are recorded; "all" are those that record from their start. A line for each: whether the warnings and
errors are the same at the same lines, the peaks against the GPU's, seconds. Exit status 1 where the findings of a program differ, or where
its peak of requested bytes is off by more than a hundredth."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def check(memlint: str, snapshot: Path, program: Path) -> tuple[set, dict]:
    """Warnings and errors by rule and line, and the first device's figures."""
    command = [memlint, "check", "--isolated", "--output-format", "json", str(snapshot)]
    report = json.loads(subprocess.run(command, cwd=program, capture_output=True, text=True).stdout)
    loud = [finding for finding in report["findings"] if finding["severity"] in ("error", "warning")]
    findings = {(finding["name"], (finding["location"] or {}).get("line")) for finding in loud}
    return findings, report["inputs"][0]["devices"][0]


def record(memlint: str, python: str, program: Path, folder: Path) -> tuple[Path, float]:
    """Records a program; where it wrote no snapshot, nothing is there."""
    snapshot = folder / "modelled.pickle.zst"
    options = ["--no-gpu", "--device-memory", MEMORY, "--no-check", "-o", str(snapshot)]
    command = [memlint, "record", *options, "--", python, "train.py", str(folder / "own.pickle")]
    begun = time.perf_counter()
    ran = subprocess.run(command, cwd=program, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if not snapshot.exists():
        print("\n".join(ran.stderr.splitlines()[-3:]), file=sys.stderr)
    return snapshot, time.perf_counter() - begun


def compare(memlint: str, python: str, case: str) -> bool:
    """Whether a program shows without a GPU what it showed with one."""
    program = ROOT / "examples" / case
    with tempfile.TemporaryDirectory() as folder:
        snapshot, seconds = record(memlint, python, program, Path(folder))
        if not snapshot.exists():
            print(f"{case:32} not recorded")
            return False
        expected, gpu = check(memlint, ROOT / "snapshots" / case / "snapshot.pickle.zst", program)
        found, modelled = check(memlint, snapshot, program)
    apart = {}
    for kind in ("requested", "allocated", "reserved"):
        sizes = [device.get(f"peak_{kind}_bytes") or 0 for device in (modelled, gpu)]
        apart[kind] = sizes[0] / max(sizes[1], 1)
    peaks = "  ".join(f"{kind} {share:.4f}" for kind, share in apart.items())
    print(f"{case:32} {'same' if found == expected else 'DIFFERS':8} {peaks}  {seconds:.0f} s", flush=True)
    if found != expected:
        print(f"    on the GPU alone: {sorted(expected - found)}; here alone: {sorted(found - expected)}")
    return found == expected and abs(apart["requested"] - 1) <= MOST_APART


def main() -> int:
    memlint, python, *cases = sys.argv[1:]
    if cases == ["all"]:
        labels = {path.parent.name: json.loads(path.read_text()) for path in ROOT.glob("snapshots/*/case.json")}
        cases = sorted(name for name, label in labels.items() if label.get("recorded") == "from-start")
    same = [compare(os.path.abspath(memlint), python, case) for case in cases or USUAL]
    print(f"{sum(same)} of {len(same)} programs show what they showed on a GPU")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
