#!/usr/bin/env python3
"""Records programs of the corpus without a GPU and holds them against their recordings from one.

    .ci/no_gpu.py [--folder FOLDER] [--device-memory SIZE] [--jobs N] MEMLINT PYTHON [CASE...]

PYTHON has PyTorch's wheel for CUDA. Without names the programs below are recorded; "all" is the whole corpus. With `--folder` they are those of a
folder of programs with their recordings from a GPU: `NAME/train.py`, which writes a snapshot to the path it is given, `NAME/snapshot.pickle.zst`,
and `NAME/case.json` where it needs an environment. What is compared are the snapshots that the programs write themselves, with what they record
and from where on, as they did on the GPU. A line for each: whether the warnings and errors are the same at the same lines, the peaks against the
GPU's, seconds. Exit status 1 where the findings of a program differ, or where its peak of requested bytes is off by more than a hundredth."""

import argparse
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
#: Runs before the program, and has memlint record nothing, so that the program's own recording is all there is. What the program writes into a
#: folder of its author's machine it writes beside itself.
OWN = """
import os
from memlint_recorder import recorder

def here(torch, *arguments):
    dump = torch.cuda.memory._dump_snapshot

    def dump_here(filename="dump_snapshot.pickle", *more, **named):
        has_folder = os.path.isdir(os.path.dirname(os.path.abspath(filename)))
        return dump(filename if has_folder else os.path.basename(filename), *more, **named)

    torch.cuda.memory._dump_snapshot = dump_here

recorder.wait_for_cuda = here
"""


def check(memlint: str, snapshot: Path, program: Path) -> tuple[set, dict]:
    """Warnings and errors by rule, line and severity, and the first device's figures; nothing of a file that holds no history."""
    command = [memlint, "check", "--isolated", "--output-format", "json", str(snapshot)]
    ran = subprocess.run(command, cwd=program, capture_output=True, text=True)
    report = json.loads(ran.stdout)
    loud = [finding for finding in report.get("findings", []) if finding["severity"] in ("error", "warning")]
    findings = {(finding["name"], (finding["location"] or {}).get("line"), finding["severity"]) for finding in loud}
    return findings, report["inputs"][0]["devices"][0] if "inputs" in report else {}


class Tools(NamedTuple):
    """What programs are run with."""

    memlint: str
    python: str
    device_memory: str = MEMORY


class Program(NamedTuple):
    """A program of the corpus, or one beside it, with what a GPU made of it."""

    case: str
    #: The folder of its sources.
    sources: Path
    snapshot: Path
    label: dict


def of_corpus(case: str) -> Program:
    snapshots = ROOT / "snapshots" / case
    label = json.loads((snapshots / "case.json").read_text())
    return Program(case, ROOT / "examples" / case, snapshots / "snapshot.pickle.zst", label)


def in_folder(folder: Path, wants_sources: bool = True) -> list[Program]:
    """The programs of a folder, in order; also those without their sources where these are not wanted."""
    found = []
    for snapshot in sorted(folder.glob("*/snapshot.pickle.zst")):
        label = snapshot.parent / "case.json"
        if (snapshot.parent / "train.py").exists() or not wants_sources:
            environment = json.loads(label.read_text()) if label.exists() else {}
            found.append(Program(snapshot.parent.name, snapshot.parent, snapshot, environment))
    return found


def record(tools: Tools, program: Path, label: dict) -> tuple[Path | None, float]:
    """Records a program in its folder; nothing where it wrote no snapshot."""
    (program / "own").mkdir()
    (program / "own" / "sitecustomize.py").write_text(OWN)
    # A script of the corpus calls `python3`.
    paths = {"PATH": f"{os.path.dirname(tools.python)}:{os.environ['PATH']}", "PYTHONPATH": str(program / "own")}
    environment = {**os.environ, **paths, "OMP_NUM_THREADS": "1", **label.get("env", {})}
    script = ["sh", "run.sh"] if (program / "run.sh").exists() else [tools.python, "train.py"]
    options = ["--no-gpu", "--device-memory", tools.device_memory, "--no-check", "-o", "not-wanted.pickle.zst"]
    command = [tools.memlint, "record", *options, "--", *script, "own.pickle"]
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


def target() -> Path:
    folder = ROOT / "target"
    folder.mkdir(exist_ok=True)
    return folder


def compare(tools: Tools, program: Program) -> Compared | None:
    """Records a program and judges both; nothing where it wrote no snapshot."""
    # Not where notebooks' cells seem to lie, which would make both one program.
    with tempfile.TemporaryDirectory(dir=target()) as folder:
        place = Path(folder) / program.case
        shutil.copytree(program.sources, place, ignore=shutil.ignore_patterns("*.pickle*"))
        snapshot, seconds = record(tools, place, program.label)
        if snapshot is None:
            print(f"{program.case:32} not recorded", flush=True)
            return None
        expected, gpu = check(tools.memlint, program.snapshot, place)
        found, modelled = check(tools.memlint, snapshot, place)
    levels = [f"peak_{kind}_bytes" for kind in ("requested", "allocated", "reserved")]
    # Where the history was not kept there are no peaks: on both sides, or they differ.
    shares = [(modelled.get(level) or 0) / gpu[level] if gpu.get(level) else 1.0 for level in levels]
    compared = Compared(program.case, expected - found, found - expected, *shares, seconds)
    print(compared, flush=True)
    return compared


def compare_all(tools: Tools, programs: list[Program], jobs: int | None = None) -> list[Compared]:
    """Those that were recorded, in order."""
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        tried = list(pool.map(lambda program: compare(tools, program), programs))
    return [one for one in tried if one is not None]


def counts(done: list[Compared]) -> dict[str, int]:
    """How many programs there are of each kind."""
    return {
        "recorded": len(done),
        "the same warnings and errors at the same lines": sum(one.has_same_findings for one in done),
        "peak requested to the byte": sum(one.requested == 1 for one in done),
        "peak requested within 1 %": sum(abs(one.requested - 1) <= MOST_APART for one in done),
        "peak reserved within 5 %": sum(abs(one.reserved - 1) <= 0.05 for one in done),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--device-memory", default=MEMORY)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("memlint")
    parser.add_argument("python")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    if asked.folder:
        programs = [one for one in in_folder(asked.folder) if not asked.cases or one.case in asked.cases]
    else:
        every = sorted(path.parent.name for path in ROOT.glob("snapshots/*/case.json"))
        programs = [of_corpus(case) for case in (every if asked.cases == ["all"] else asked.cases or USUAL)]
    tools = Tools(os.path.abspath(asked.memlint), asked.python, asked.device_memory)
    done = compare_all(tools, programs, asked.jobs)
    for what, count in counts(done).items():
        print(f"{count:4} of {len(programs)}: {what}")
    if done:
        print(f"{statistics.median(one.seconds for one in done):.0f} s in the median")
    return 0 if len(done) == len(programs) and all(one.is_same for one in done) else 1


if __name__ == "__main__":
    sys.exit(main())
