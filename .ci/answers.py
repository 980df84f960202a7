#!/usr/bin/env python3
"""Runs small programs without a GPU: one that reads values back, one that takes no step because of them, and some that ask for what only a GPU can do.

    .ci/answers.py MEMLINT PYTHON

PYTHON has PyTorch's wheel for CUDA. The first has to end well; the second gets no verdict; each of the others ends with one message, which names the
call, and exit status 2."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: What does not run, by the call that memlint names.
REFUSED = {
    # A library's workspace that nobody knows: its size would be made up.
    "cudnnGetCTCLossWorkspaceSize": """
from torch.nn import functional
torch.backends.cudnn.deterministic = True
lengths = torch.full((16,), 50, dtype=torch.int32), torch.full((16,), 10, dtype=torch.int32)
scores = torch.randn(50, 16, 20, device="cuda").log_softmax(2)
functional.ctc_loss(scores, torch.randint(1, 20, (160,), dtype=torch.int32), *lengths)
""",
    # Memory that another process is to read.
    "cudaIpcGetMemHandle": """
torch.ones(4, device="cuda").untyped_storage()._share_cuda_()
""",
    # An allocator that is the driver's, and not PyTorch's.
    "cudaDeviceGetDefaultMemPool": """
torch.ones(4, device="cuda")
""",
    # Memory that several devices share.
    "nvmlDeviceGetGpuFabricInfoV": """
import torch.distributed
from torch.distributed import _symmetric_memory
torch.distributed.init_process_group("nccl", init_method=f"file://{__file__}.store", rank=0, world_size=1)
torch.cuda.set_device(0)
_symmetric_memory.empty(1024, device="cuda")
""",
}
ENVIRONMENT = {"cudaDeviceGetDefaultMemPool": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}}


class Ran(NamedTuple):
    """A program that has ended."""

    code: int
    #: Lines on standard error, of the program and of memlint.
    said: list[str]


def run(memlint: str, python: str, program: Path, environment: dict[str, str]) -> Ran:
    options = ["--no-gpu", "--no-check", "-o", f"{program}.pickle.zst"]
    command = [memlint, "record", *options, "--", python, str(program)]
    ran = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, env={**os.environ, **environment})
    return Ran(ran.returncode, ran.stderr.splitlines())


def is_refused(call: str, memlint: str, python: str) -> bool:
    """Whether a program is told of this call, and of nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(f"import torch\n{REFUSED[call]}")
        ran = run(memlint, python, program, ENVIRONMENT.get(call, {}))
    errors = [line for line in ran.said if line.startswith("error: ")]
    # Other versions of a library have another ending.
    is_told = any(f"`{call}" in line for line in ran.said)
    holds = ran.code == 2 and len(errors) == 1 and is_told
    print(f"{call}: {'refused' if holds else 'NOT as it should be'}", flush=True)
    if not holds:
        print(f"exit status {ran.code}", *ran.said[-12:], sep="\n    ")
    return holds


def ends_well(memlint: str, python: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "answers.py"
        program.write_text((ROOT / "tests/no_gpu/answers.py").read_text())
        ran = run(memlint, python, program, {})
    print(f"answers: exit status {ran.code}", flush=True)
    if ran.code:
        print(*ran.said[-20:], sep="\n    ")
    return ran.code == 0


def has_no_verdict(memlint: str, python: str) -> bool:
    """Whether a program that left its steps out for want of values is said not to be judged."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "hesitates.py"
        program.write_text((ROOT / "tests/no_gpu/hesitates.py").read_text())
        ran = run(memlint, python, program, {})
        command = [memlint, "check", "--isolated", f"{program}.pickle.zst"]
        checked = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    is_said = "took no step of its optimizer" in " ".join(checked.stdout.split())
    holds = ran.code == 0 and checked.returncode == 2 and is_said
    print(f"hesitates: {'not judged' if holds else 'NOT as it should be'}", flush=True)
    if not holds:
        print(f"exit status {checked.returncode}", *ran.said[-12:], checked.stdout, checked.stderr, sep="\n    ")
    return holds


def main() -> int:
    memlint, python = os.path.abspath(sys.argv[1]), sys.argv[2]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answered = pool.submit(ends_well, memlint, python)
        hesitated = pool.submit(has_no_verdict, memlint, python)
        refused = list(pool.map(lambda call: is_refused(call, memlint, python), REFUSED))
    return 0 if answered.result() and hesitated.result() and all(refused) else 1


if __name__ == "__main__":
    sys.exit(main())
