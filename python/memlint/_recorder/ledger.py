"""What a process tells memlint: lines of JSON in a file of its own. Telling never fails the program."""

from __future__ import annotations

import os
import sys
import time
from typing import Any


class Ledger:
    """The file of this process; another one after a fork."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = ""
        self._pid = 0

    def tell(self, event: str, **details: Any) -> None:
        """Adds a line. Where memlint is gone, nobody reads it."""
        import json

        pid = os.getpid()
        if pid != self._pid:
            # Process ids are used again.
            self._pid, self._path = pid, os.path.join(self._folder, f"{pid}-{time.time_ns()}.jsonl")
        line = json.dumps({"event": event, "pid": pid, **details}) + "\n"
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(line)
        except OSError:
            pass

    def complain(self, what: str) -> None:
        """Tells memlint and the reader of standard error that something went wrong."""
        print(f"memlint: {what}", file=sys.stderr, flush=True)
        self.tell("failed", what=what)

    def claim(self, name: str) -> bool:
        """Takes a name for this process alone; whether nobody of the job had it."""
        try:
            os.close(os.open(os.path.join(self._folder, name + ".name"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError:
            # The folder is gone with memlint: nobody can be asked, so nobody else's name is taken.
            return False
        return True
