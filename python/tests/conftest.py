"""Programs that run with the hook in them and a torch that is not one."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ("pytester",)

HERE = Path(__file__).parent
SOURCES = HERE.parent


def pytest_configure() -> None:
    """Whoever is started in the background may have interrupts ignored, and so would the programs that are started here."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Ran:
    """What came of a program."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.out, self.err = process.communicate(timeout=60)
        self.status = process.returncode
        self._folder = folder

    @property
    def told(self) -> list[dict[str, Any]]:
        """The lines of all processes."""
        files = sorted((self._folder / "ledger").glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.told if line["event"] == name]

    @property
    def snapshots(self) -> dict[str, list[int]]:
        """The sizes of the allocations in each snapshot, by file."""
        files = sorted((self._folder / "out").iterdir())
        return {file.name: [one["size"] for one in self.read(file)["device_traces"][0]] for file in files}

    @staticmethod
    def read(file: Path) -> Any:
        with file.open("rb") as stream:
            return pickle.load(stream)


class Program:
    """Starts programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("ledger", "out", "own"):
            (folder / name).mkdir()
        # As the binary lays it out.
        self.hook = folder / "hook"
        shutil.copytree(SOURCES / "hook", self.hook)
        shutil.copytree(SOURCES / "memlint" / "_recorder", self.hook / "memlint_recorder")

    def environment(self, *paths: Path, **order: Any) -> dict[str, str]:
        """What has a program recorded, with more paths for Python behind those that it needs."""
        said = {"ledger": str(self.folder / "ledger"), "folder": str(self.folder / "out"), "name": "snapshot"}
        said.update({"named": False, "stop": False, "stacks": "all", **order})
        searched = [self.hook, self.folder / "own", HERE / "fake", *paths]
        return {"PYTHONPATH": os.pathsep.join(map(str, searched)), "MEMLINT_RECORDING": json.dumps(said)}

    def start(
        self, text: str, *flags: str, environment: dict[str, str] | None = None, **order: Any
    ) -> subprocess.Popen[str]:
        script = self.folder / "program.py"
        script.write_text(text)
        return subprocess.Popen(
            [sys.executable, *flags, str(script)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **self.environment(**order), **(environment or {})},
        )

    def finish(self, process: subprocess.Popen[str]) -> Ran:
        return Ran(process, self.folder)

    def run(self, text: str, *flags: str, **rest: Any) -> Ran:
        return self.finish(self.start(text, *flags, **rest))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)
