"""Many snapshots, judged where they lie: each is examined on a machine that has it, and what they say is put together here.

    report = memlint.distributed.check(["/scratch/job17/rank*.pickle"], engine="ray")

The work is `memlint examine` and `memlint conclude`; placing it is the engine's. The package has to be installed on every
machine.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Callable, List, Optional, Sequence

from ..checking import NoVerdict, read_report
from ..report import Report, Unread
from ._work import Part, Work

__all__ = ["check"]

Progress = Callable[[int, int], None]


def check(
    paths: Sequence[str],
    *,
    engine: str = "ray",
    config: Optional[str] = None,
    options: Sequence[str] = (),
    progress: Optional[Progress] = None,
) -> Report:
    """What memlint finds in snapshots that lie on the machines of a cluster.

    `paths` are files or patterns, as the machines see them; each machine is asked which of them it has. `config` is a
    `memlint.toml` here, which is taken along: no machine looks for one of its own. `options` are those that `memlint examine`
    and `memlint conclude` share, such as `["--select", "leak"]`. `progress` is told how many of how many are done.

    A snapshot that cannot be read, or whose machine goes away and no other has it, does not stop the rest: it stands in
    `report.unread`, and the report is no verdict then. Raises NoVerdict where nothing at all could be examined, ValueError for an
    engine that is not known, and ImportError where the engine is not installed.
    """
    if engine != "ray":
        raise ValueError(
            f"no engine is called {engine!r}: there is 'ray'; for others see `memlint examine` and `memlint conclude`"
        )
    from . import _ray

    work = Work(options=tuple(options), config=None if config is None else Path(config).read_bytes())
    parts: List[Part] = []
    for part in _ray.examine(list(paths), work):
        parts.append(part)
        if progress is not None:
            progress(len(parts), part.among)
    return _conclude(parts, work)


def _conclude(parts: Sequence[Part], work: Work) -> Report:
    """The report on all that was examined, with what was not."""
    lost = [Unread(part.name, None, part.problem, None) for part in parts if part.content is None]
    if len(lost) == len(parts):
        reasons = "\n".join(f"{one.path}: {one.message}" for one in lost)
        raise NoVerdict(reasons or "no machine of the cluster has a file of these names")
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(parts):
            if part.content is not None:
                (Path(folder) / f"{number}.memlint").write_bytes(part.content)
        report = read_report(["conclude", *work.arguments(Path(folder))], [folder])
    if not lost:
        return report
    verdict = dataclasses.replace(
        report.verdict, fails=True, outcome="no-verdict", unread=report.verdict.unread + len(lost)
    )
    return dataclasses.replace(report, unread=[*report.unread, *lost], verdict=verdict)
