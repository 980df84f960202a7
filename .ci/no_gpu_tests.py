#!/usr/bin/env python3
"""Runs a few marked tests below `memlint record --no-gpu -- pytest`, and holds against each other what should pass and what does.

    .ci/no_gpu_tests.py TORCH ENVIRONMENT

TORCH is a Python that has PyTorch's wheel for CUDA, ENVIRONMENT the folder of an environment with the same Python, memlint's wheel and pytest. The
tests share one process and one recording, in which each must be judged by its own events: the first is large, the second multiplies first."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = """
import pytest
import torch

kept = []


def multiply():
    layer = torch.nn.Linear(256, 256, device="cuda")
    layer(torch.randn(256, 256, device="cuda")).sum().backward()


@pytest.mark.gpu_memory(limit="6 GiB")
def test_large_passes():
    torch.empty(5 << 30, dtype=torch.uint8, device="cuda")


@pytest.mark.gpu_memory(limit="4 MiB", leaks=False)
def test_small_passes():
    multiply()


@pytest.mark.gpu_memory(limit="1 GiB", leaks=False)
def test_leak_fails():
    kept.append(torch.zeros(1 << 20, device="cuda"))


@pytest.mark.gpu_memory(limit="1 MiB")
def test_above_fails():
    torch.zeros(1 << 20, device="cuda")


@pytest.mark.gpu_memory
def test_check_passes():
    multiply()
"""


def main() -> int:
    torch, environment = sys.argv[1], Path(sys.argv[2]).resolve()
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([torch, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    pytest = [str(environment / "bin" / "python"), "-m", "pytest", "-q", "-rA", "tests.py"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tests.py").write_text(TESTS)
        command = [str(environment / "bin" / "memlint"), "record", "--no-gpu", "--no-check", "-o", "recording", "--", *pytest]
        variables = {**os.environ, "PYTHONPATH": packages, "OMP_NUM_THREADS": "1"}
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)
    told = dict(line.split(" - ")[0].split()[::-1] for line in ran.stdout.splitlines() if line.startswith(("PASSED ", "FAILED ")))
    wrong = [test for test, outcome in told.items() if not test.endswith({"PASSED": "_passes", "FAILED": "_fails"}[outcome])]
    # pytest's status: some tests fail.
    if ran.returncode == 1 and len(told) == TESTS.count("def test_") and not wrong:
        print(f"{len(told)} tests without a GPU, each judged by its own memory")
        return 0
    print(ran.stdout, ran.stderr, f"status {ran.returncode}; not as they should be: {wrong}", sep="\n", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
