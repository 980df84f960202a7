"""What is done to one snapshot, on whichever machine."""

from __future__ import annotations

import glob
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from .. import binary

#: A file by what tells it from another of the same path: its size, when it was written (ns), and its number on its disk.
#: Machines that share a disk see the same; two disks hardly ever.
Identity = Tuple[int, int, int]


@dataclass(frozen=True)
class Work:
    """How snapshots are examined."""

    options: Tuple[str, ...]
    #: The text of a configuration, if there is one.
    config: Optional[bytes]

    def arguments(self, folder: Path) -> List[str]:
        """The options on a machine; a configuration is laid down in a folder there."""
        if self.config is None:
            return [*self.options, "--isolated"]
        file = folder / "memlint.toml"
        file.write_bytes(self.config)
        return [*self.options, "--config", str(file)]


@dataclass(frozen=True)
class Part:
    """What came of one snapshot."""

    #: What reports call it.
    name: str
    #: What `memlint examine` wrote; None where there is a problem.
    content: Optional[bytes]
    problem: str
    #: How many snapshots there are in all.
    among: int


def look(patterns: Sequence[str]) -> Dict[str, Identity]:
    """The files here that go by some names or patterns."""
    found = {}
    for pattern in patterns:
        paths = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern, recursive=True))
        for path in paths:
            if os.path.isfile(path):
                state = os.stat(path)
                found[os.path.abspath(path)] = (state.st_size, state.st_mtime_ns, state.st_ino)
    return found


def examine(path: str, name: str, work: Work) -> Tuple[Optional[bytes], str]:
    """What a snapshot has to say; or nothing, and why."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part.memlint"
        options = work.arguments(Path(folder))
        command = [binary.find(), "examine", *options, "--name", name, "--output", str(part), "--", path]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode == 0:
            return part.read_bytes(), ""
        return None, done.stdout.strip() or f"memlint ended with status {done.returncode}"
