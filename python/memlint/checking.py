"""Checks snapshots with the memlint binary."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Sequence, Union

from . import binary, report

#: What memlint calls the form of its output; another one is another memlint's.
SCHEMA = "memlint/1"


class NoVerdict(Exception):
    """Nothing could be judged; the message says why, and what to do."""


def check(*paths: Union[str, os.PathLike[str]], options: Sequence[str] = ()) -> report.Report:
    """What memlint finds in some snapshots or folders of them.

    `options` are those of `memlint check`: `["--advice", "--select", "leak"]`. The configuration is looked for as there.
    Raises NoVerdict where nothing could be read or understood. A report may still say that it is no verdict
    (`report.verdict.outcome`), for one if some of the files cannot be read.
    """
    return read_report(["check", *options], paths)


def read_report(command: Sequence[str], paths: Sequence[Union[str, os.PathLike[str]]]) -> report.Report:
    """What a command of memlint reports of some files. Raises NoVerdict where it reports nothing."""
    memlint = binary.find()
    arguments = [memlint, *command, "--output-format", "json", "--", *(os.fspath(path) for path in paths)]
    done = subprocess.run(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", check=False
    )
    said = json.loads(done.stdout) if done.stdout.strip() else {}
    if not said or "error" in said:
        raise NoVerdict(done.stderr.strip() or f"memlint ended with status {done.returncode}")
    if said.get("schema") != SCHEMA:
        raise NoVerdict(f"the memlint at {memlint} writes {said.get('schema')}, and this package reads {SCHEMA}")
    return report.read(report.Report, said)
