"""Servers of this machine that hold snapshots, and memlint reading from them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional

import pytest
from server import Server

import memlint.binary

ROOT = Path(__file__).resolve().parents[2]
#: A leak in a training loop, packed.
LEAK = ROOT / "snapshots" / "seed-resnet50-bug" / "snapshot.pickle.zst"
#: Two ranks of one job.
RANKS = ROOT / "snapshots" / "ranks" / "fsdp-imbalance"
#: What the environment of whoever runs the tests may say of stores.
OURS = ("AWS_", "AZURE_", "AZURITE_", "GOOGLE_", "MEMLINT_", "HTTP_", "HTTPS_", "ALL_", "SSL_")


@dataclass
class Ran:
    """What came of a run of memlint."""

    status: int
    out: str
    err: str
    seconds: float
    #: The most memory that it held, in MiB.
    peak: float


class Memlint:
    """Runs memlint in a folder of its own, with the variables that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, env: Optional[Dict[str, str]] = None, within: float = 60) -> Ran:
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(OURS)}
        out, err = self.folder / "out.txt", self.folder / "err.txt"
        start = time.monotonic()
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                [memlint.binary.find(), *arguments],
                cwd=self.folder,
                env={**kept, "HOME": str(self.folder), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        assert seconds < within, f"{seconds:.0f} s: {err.read_text()}"
        return Ran(process.returncode, out.read_text(), err.read_text(), seconds, usage.ru_maxrss / 1024)

    def fails(self, *arguments: str, env: Optional[Dict[str, str]] = None, within: float = 60) -> str:
        """One error and exit status 2; what it says, on one line."""
        ran = self(*arguments, env=env, within=within)
        assert ran.status == 2, ran
        assert ran.err.count("error: ") == 1, ran.err
        assert "help: " in ran.err, ran.err
        return " ".join(ran.err.split())


@pytest.fixture
def run(tmp_path: Path) -> Memlint:
    folder = tmp_path / "here"
    folder.mkdir()
    return Memlint(folder)


@pytest.fixture
def web() -> Iterator[Server]:
    with Server(LEAK.read_bytes()) as server:
        yield server


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def start(command: List[str], port: int, log: Path, env: Optional[Dict[str, str]] = None) -> subprocess.Popen[bytes]:
    """Starts a server, and waits until it listens."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(env or {})})
    for _ in range(600):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return process
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"{command[0]} does not listen: {log.read_text()}")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def program(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is not on the path: .ci/run installs it"
    return found
