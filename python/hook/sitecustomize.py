"""What Python runs first in a program that `memlint record` starts.

It says that it was there, has the import of torch waited for, and makes room: for the `sitecustomize` of whoever runs the
program, and on `sys.path`. A Python without torch pays for this file alone.
"""

import os
import sys


def _wait_for_torch() -> None:
    from memlint_recorder import waiting

    waiting.begin()


_folder = os.path.dirname(os.path.abspath(__file__))
if sys.version_info >= (3, 8) and "MEMLINT_RECORDING" in os.environ:
    try:
        _wait_for_torch()
    except Exception as error:
        print(f"memlint: this Python is not recorded: {error!r}", file=sys.stderr)
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _folder]
_own = sys.modules.pop("sitecustomize", None)
try:
    # Whatever goes wrong inside the user's own is theirs to see.
    import sitecustomize  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "sitecustomize":
        raise
    if _own is not None:
        # Python looks for what it has just imported.
        sys.modules["sitecustomize"] = _own
