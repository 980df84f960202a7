#!/usr/bin/env python3
"""Mends programs of the corpus with `memlint fix`, records them before and after, and says what came of it.

    .ci/fixes.py [--gpu] [--jobs N] MEMLINT PYTHON [CASE...]

They are recorded without a GPU, or with `--gpu` on one, N programs at a time. PYTHON has PyTorch's wheel for CUDA. Without
names twelve programs are mended, which need nothing else; "all" are those with a fault for which memlint writes edits. A row
for each finding that an edit mends: whether the edit is safe, whether the finding is gone and no warning or error has come,
what the peak lost and what was predicted for it.

Exit status 1 where one of the twelve has no edit or does not run, or a program that was mended is not clean of the fault, gets
another, or saves something else than predicted: more than a tenth off, and more than a hundredth of the peak."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: One at least for each kind of edit; programs that need PyTorch alone.
USUAL = [
    "graph-rl-values-bug",
    "grow-replay-bug",
    "h2-encode-empty",
    "h2-siamese-newopt",
    "ho-nanogpt-nozero",
    "ho-seq2seq-late",
    "ho-whilelm-best",
    "latezero-mlp-bug",
    "mzg-gan-disc-bug",
    "pass-eval-autograd-bug",
    "pass-overlap-dice-bug",
    "seed-linear",
]
RULES = {
    "missing-zero-grad",
    "late-zero-grad",
    "retained-graph",
    "growing-residency",
    "activations-without-backward",
    "duplicate-weights",
    "overlapping-iterations",
    "allocator-thrash",
    "optimizer-state-regrowth",
}
#: What the corpus was recorded on has so much.
MEMORY = "140GiB"
MOST_OFF, SAME = 0.1, 0.01


@dataclass(frozen=True)
class Tools:
    """What programs are run with."""

    memlint: str
    python: str
    gpu: bool


def loud(tools: Tools, snapshot: Path, program: Path) -> tuple[list, int]:
    """Warnings and errors, and the highest peak."""
    command = [tools.memlint, "check", "--isolated", "--source-root", ".", "--output-format", "json", str(snapshot)]
    report = json.loads(subprocess.run(command, cwd=program, capture_output=True, text=True).stdout)
    findings = [finding for finding in report["findings"] if finding["severity"] in ("error", "warning")]
    peaks = [device["peak_requested_bytes"] or 0 for device in report["inputs"][0]["devices"]]
    return findings, max(peaks, default=0)


def record(tools: Tools, program: Path, name: str) -> Path | None:
    """Records a program to its end; nothing where it fails."""
    snapshot = program.parent / f"{name}.pickle.zst"
    device = [] if tools.gpu else ["--no-gpu", "--device-memory", MEMORY]
    options = [*device, "--no-check", "-o", str(snapshot)]
    command = [tools.memlint, "record", *options, "--", tools.python, "train.py", str(program.parent / "own.pickle")]
    ran = subprocess.run(command, cwd=program, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if ran.returncode != 0:
        print("    " + "\n    ".join(ran.stderr.splitlines()[-3:]), file=sys.stderr)
        return None
    return snapshot if snapshot.exists() else None


def row(case: str, rule: str, kind: str, *rest: str) -> None:
    print(f"{case:24} {rule:29} {kind:7} {'  '.join(rest)}", flush=True)


def mend(tools: Tools, case: str) -> tuple[int, int]:
    """How many findings were mended, and how many of them not as they should. Each edit by itself: savings do not add up."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        shutil.copytree(ROOT / "examples" / case, program)
        snapshot = ROOT / "snapshots" / case / "snapshot.pickle.zst"
        found, _ = loud(tools, snapshot, program)
        edits: dict[str, list[str]] = {}
        for finding in found:
            if finding["edits"]:
                edits.setdefault(json.dumps([dict(edit, why="") for edit in finding["edits"]]), []).append(finding["name"])
            elif finding["name"] in RULES:
                row(case, finding["name"], "none")
        before = record(tools, program, "before") if edits else None
        mended = wrong = 0
        for edit, rules in edits.items():
            kind = json.loads(edit)[0]["applicability"]
            some, bad = mend_one(tools, case, (rules, kind), before)
            mended, wrong = mended + some, wrong + bad
        return mended, wrong


def mend_one(tools: Tools, case: str, edit: tuple[list[str], str], before: Path | None) -> tuple[int, int]:
    """The same for one edit."""
    rules, kind = edit
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        shutil.copytree(ROOT / "examples" / case, program)
        snapshot = ROOT / "snapshots" / case / "snapshot.pickle.zst"
        command = [tools.memlint, "fix", "--isolated", "--source-root", ".", "--unsafe", "--write"]
        command += ["--only", ",".join(rules), str(snapshot)]
        said = subprocess.run(command, cwd=program, capture_output=True, text=True, check=True).stderr
        after = record(tools, program, "after") if before else None
        if before is None or after is None:
            for rule in rules:
                row(case, rule, kind, "does not run here" if before is None else "BREAKS THE PROGRAM")
            return (0, 0) if before is None else (len(rules), len(rules))
        had, high = loud(tools, before, program)
        left, low = loud(tools, after, program)
        # What one edit mends for two reasons saves what the larger of them promises, and not both.
        predicted = max((finding["impact"]["peak_bytes"] or 0 for finding in had if finding["name"] in rules), default=0)
        promise = Promise(predicted, at_most="takes up to" in said)
        return len(rules), sum(not judge(case, (rule, kind, promise), (had, high), (left, low)) for rule in rules)


@dataclass(frozen=True)
class Promise:
    """What an edit is to take off the peak; one that bounds a list saves the less the larger the bound is."""

    bytes: int
    at_most: bool

    def holds(self, saved: int, high: int) -> bool:
        """A rule about what is made again or held from the driver promises nothing of the peak."""
        near = abs(saved - self.bytes) <= max(MOST_OFF * self.bytes, SAME * high)
        return not self.bytes or near or self.at_most and 0 < saved <= self.bytes


def judge(case: str, edit: tuple[str, str, Promise], before: tuple[list, int], after: tuple[list, int]) -> bool:
    """Whether a finding is gone, nothing has come, and the peak lost what was predicted."""
    (rule, kind, promise), (had, high), (left, low) = edit, before, after
    if not any(finding["name"] == rule for finding in had):
        row(case, rule, kind, "does not show here")
        return True
    gone = not any(finding["name"] == rule for finding in left)
    # Shares of the peak rise by themselves when it falls.
    relative = {"peak", "allocator", "amp"}
    faults = {finding["name"] for finding in left if finding["group"] not in relative}
    come = faults - {finding["name"] for finding in had}
    saved = high - low
    right = promise.holds(saved, high)
    predicted = f"{promise.bytes / 2**20:8.1f} predicted{' at most' if promise.at_most else ''}"
    words = f"{'gone' if gone else 'STILL THERE':11}", f"{saved / 2**20:8.1f} MiB less", predicted
    row(case, rule, kind, *words, "right" if right else "OFF", *sorted(f"NEW: {name}" for name in come))
    return gone and right and not come


def named_all() -> list[str]:
    """Every program with a fault for which memlint writes edits."""
    labels = {path.parent.name: json.loads(path.read_text()) for path in ROOT.glob("snapshots/*/case.json")}
    rules = {name: {one["pattern"] for one in label["expect"]} for name, label in labels.items()}
    return sorted(name for name in labels if rules[name] & RULES and labels[name]["kind"] == "bug")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--gpu", action="store_true", help="record on this machine's GPU")
    arguments.add_argument("--jobs", type=int, default=1, help="how many programs at a time")
    arguments.add_argument("memlint", type=os.path.abspath)
    arguments.add_argument("python")
    arguments.add_argument("cases", nargs="*")
    given = arguments.parse_args()
    tools = Tools(given.memlint, given.python, given.gpu)
    cases = named_all() if given.cases == ["all"] else given.cases or USUAL
    with ThreadPoolExecutor(given.jobs) as pool:
        counts = list(pool.map(lambda case: mend(tools, case), cases))
    mended, wrong = (sum(column) for column in zip(*counts, strict=True))
    missing = 0 if given.cases else sum(not some for some, _ in counts)
    print(f"{mended} findings mended, {wrong} of them not as predicted")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())
