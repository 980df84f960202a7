"""`python -m memlint`: the command."""

from __future__ import annotations

import os
import subprocess
import sys

from .binary import find


def main() -> None:
    """Becomes memlint."""
    command = [find(), *sys.argv[1:]]
    if os.name == "nt":
        # Windows has no way to become another program.
        sys.exit(subprocess.run(command, check=False).returncode)
    os.execv(command[0], command)


main()
