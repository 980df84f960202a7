#!/usr/bin/env python3
"""Records programs of the corpus without a GPU with one PyTorch after another.

    .ci/versions.py [--keep] [--jobs N] MEMLINT [VERSION...]

Each PyTorch is PyPI's wheel alone, in an environment of the Python that runs this, which each of them has to support (3.11 and 3.12 do). It takes up to
three gigabytes and is removed again; `--keep` leaves them in `target/torch-VERSION`. The programs are those that CI records (`no_gpu.py`), held against
their recordings with PyTorch 2.11 on a GPU: another version may have other frames, and may allocate something else. Where the corpus has recordings
of that version from a GPU, their programs follow, and have to agree with them. Ends with a table, one row a version. Exit status 1 where a program
cannot be recorded with one of them, or is not judged as with 2.11, or not as with that version on a GPU."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from no_gpu import MOST_APART, ROOT, USUAL, Compared, Program, Tools, compare_all, counts, in_folder, of_corpus

#: The first of each that differs from others in what it asks CUDA for, and the newest; built for CUDA 12.1 to 13.
VERSIONS = ["2.4.1", "2.6.0", "2.8.0", "2.10.0", "2.13.0", "2.15.0"]
#: Recordings of versions that a GPU made.
ON_A_GPU = {"2.15": ROOT / "snapshots/versions/torch-2.15"}
#: What PyTorch imports besides NVIDIA's packages. Wheels before 2.5 warn of a NumPy that they were not built with.
IMPORTED = ["filelock", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec"]
NUMPY, OLD_NUMPY = "numpy", "numpy<2"


def environment(folder: Path, version: str) -> str:
    """An environment with this PyTorch: its Python."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--no-cache-dir", "--no-deps", f"torch=={version}"], check=True)
        is_old = tuple(map(int, version.split(".")[:2])) < (2, 5)
        subprocess.run([*install, *IMPORTED, OLD_NUMPY if is_old else NUMPY], check=True)
        (folder / "ready").touch()
    return str(python)


def of_version(version: str) -> list[Program]:
    """Programs of the corpus that were recorded with this very PyTorch on a GPU."""
    folder = ON_A_GPU.get(".".join(version.split(".")[:2]))
    if folder is None:
        return []
    found = [(one, ROOT / "examples" / one.case) for one in in_folder(folder, wants_sources=False)]
    return [one._replace(sources=sources) for one, sources in found if sources.is_dir()]


def row(version: str, cuda: str, done: list[Compared], own: list[Compared], tried: int) -> list[str]:
    """A row of the table."""
    numbers = [f"{count} of {tried}" for count in counts(done).values()]
    same = sum(one.is_same for one in own)
    return [version, cuda, *numbers, f"{same} of {len(own)}" if own else ""]


def built_for(python: str) -> str:
    """The CUDA that a PyTorch was built for. Nothing of it is loaded to see that."""
    code = "import importlib.util as u, pathlib as p, runpy; f = p.Path(u.find_spec('torch').origin).with_name('version.py'); "
    code += "print(runpy.run_path(str(f))['cuda'])"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("memlint")
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    asked = parser.parse_args()
    usual = [of_corpus(case) for case in USUAL]
    head = ["PyTorch", "CUDA", *counts([]), f"the same version on a GPU: findings, and peak within {MOST_APART:.0%}"]
    rows, is_same = [head, ["---"] * len(head)], True
    for version in asked.versions:
        folder = ROOT / "target" / f"torch-{version}"
        try:
            python = environment(folder, version)
            cuda = built_for(python)
            print(f"PyTorch {version}, CUDA {cuda}", flush=True)
            tools = Tools(os.path.abspath(asked.memlint), python)
            done = compare_all(tools, usual, asked.jobs)
            theirs = of_version(version)
            own = compare_all(tools, theirs, asked.jobs)
        finally:
            if not asked.keep:
                shutil.rmtree(folder, ignore_errors=True)
        rows.append(row(version, cuda, done, own, len(usual)))
        is_same = is_same and len(done) == len(usual) and all(one.has_same_findings for one in done)
        is_same = is_same and len(own) == len(theirs) and all(one.is_same for one in own)
    print("\n".join(f"| {' | '.join(cells)} |" for cells in rows))
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
