"""Many snapshots, judged where they lie: each is examined on a machine that has it, and what they say is put together here.

    report = memlint.distributed.check(["/scratch/job17/rank*.pickle"], engine="ray")

The work is `memlint examine` and `memlint conclude`; placing it is the engine's. The package has to be installed on every
machine.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path
from typing import Callable, List, Mapping, Optional, Sequence, Union

from ..checking import NoVerdict, read_report
from ..report import Report, Unread
from ._work import Part, Work

__all__ = ["check"]

Progress = Callable[[int, int], None]
PathLike = Union[str, "os.PathLike[str]"]

#: The notice of a rank that has no snapshot.
MISSING_RANK = "missing-rank"


def check(  # noqa: PLR0913 - named, as on the command line
    paths: Sequence[str],
    *,
    engine: str = "ray",
    config: Optional[str] = None,
    options: Sequence[str] = (),
    progress: Optional[Progress] = None,
    ranks: Optional[int] = None,
    baseline: Optional[PathLike] = None,
    baseline_tolerance: Optional[str] = None,
    source_roots: Sequence[PathLike] = (),
    path_maps: Optional[Mapping[str, PathLike]] = None,
    device_memory: Optional[str] = None,
    fail_on: Optional[str] = None,
    min_confidence: Optional[str] = None,
    strict: bool = False,
) -> Report:
    """What memlint finds in snapshots that lie on the machines of a cluster.

    `paths` are files or patterns, as the machines see them; each machine is asked which of them it has. `config` is a
    `memlint.toml` here, which is taken along: no machine looks for one of its own. `options` are those that `memlint examine`
    and `memlint conclude` share, such as `["--select", "leak"]`. `progress` is told how many of how many are done.

    The others are the options of `memlint check` of the same names: `ranks`, how many there have to be; `baseline`, a file of
    known findings here, which may grow by `baseline_tolerance` ("5%", "20MiB"); `source_roots` and `path_maps`
    ({"/opt/job": "."}), where the program's source lies here; `device_memory` ("80GiB"), `fail_on`, `min_confidence` and
    `strict`. The baseline is only read: `memlint conclude --update-baseline` writes one.

    A snapshot that cannot be read, or whose machine goes away and no other has it, does not stop the rest: it stands in
    `report.unread`, and the report is no verdict then; nor is it where a rank has no snapshot. Raises NoVerdict where nothing at
    all could be examined, or memlint does not understand an option; ValueError for an engine that is not known and for ranks
    that no job has; FileNotFoundError where there is no such baseline, before the cluster is asked for anything; and ImportError
    where the engine is not installed.
    """
    if engine != "ray":
        raise ValueError(
            f"no engine is called {engine!r}: there is 'ray'; for others see `memlint examine` and `memlint conclude`"
        )
    if ranks is not None and ranks < 1:
        raise ValueError(f"a job has one rank at least, not {ranks}")
    if baseline is not None:
        # A wrong name costs nobody the time of the cluster.
        os.stat(baseline)
    shared = [
        *_flag("--device-memory", device_memory),
        *_flag("--fail-on", fail_on),
        *_flag("--min-confidence", min_confidence),
        *(["--strict"] if strict else []),
    ]
    concluding = [
        *_flag("--ranks", ranks),
        *_flag("--baseline", baseline),
        *_flag("--baseline-tolerance", baseline_tolerance),
        *(flag for root in source_roots for flag in _flag("--source-root", root)),
        *(f"--path-map={prefix}={os.fspath(here)}" for prefix, here in (path_maps or {}).items()),
    ]
    from . import _ray

    work = Work(options=(*options, *shared), config=None if config is None else Path(config).read_bytes())
    parts: List[Part] = []
    for part in _ray.examine(list(paths), work):
        parts.append(part)
        if progress is not None:
            progress(len(parts), part.among)
    return _conclude(parts, work, concluding)


def _flag(name: str, value: Union[PathLike, int, None]) -> List[str]:
    return [] if value is None else [f"{name}={value if isinstance(value, int) else os.fspath(value)}"]


def _conclude(parts: Sequence[Part], work: Work, concluding: Sequence[str]) -> Report:
    """The report on all that was examined, with what was not."""
    lost = [Unread(part.name, None, part.problem, None) for part in parts if part.content is None]
    if len(lost) == len(parts):
        reasons = "\n".join(f"{one.path}: {one.message}" for one in lost)
        raise NoVerdict(reasons or "no machine of the cluster has a file of these names")
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(parts):
            if part.content is not None:
                (Path(folder) / f"{number}.memlint").write_bytes(part.content)
        report = read_report(["conclude", *work.arguments(Path(folder)), *concluding], [folder])
    # As the exit status of `memlint conclude` says it.
    is_whole = not lost and all(notice.kind != MISSING_RANK for notice in report.notices)
    if is_whole:
        return report
    verdict = dataclasses.replace(
        report.verdict, fails=True, outcome="no-verdict", unread=report.verdict.unread + len(lost)
    )
    return dataclasses.replace(report, unread=[*report.unread, *lost], verdict=verdict)
