"""Where the binary is that came with this package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def find() -> str:
    """The path of memlint.

    Raises FileNotFoundError where there is none.
    """
    name = "memlint" + (sysconfig.get_config_var("EXE") or "")
    package = Path(__file__).resolve().parent
    folders = [
        Path(sysconfig.get_path("scripts")),
        # Beside the packages, where they were installed to a folder of their own (`pip install --target`).
        package.parent / "bin",
        Path(sysconfig.get_path("scripts", scheme=_user_scheme())),
    ]
    for folder in folders:
        if (folder / name).is_file():
            return str(folder / name)
    found = shutil.which("memlint")
    if found is None:
        searched = ", ".join(str(folder) for folder in folders)
        raise FileNotFoundError(
            f"the memlint binary is neither in {searched} nor on the path: install torch-memlint anew"
        )
    return found


def _user_scheme() -> str:
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    return "nt_user" if os.name == "nt" else "posix_user"
