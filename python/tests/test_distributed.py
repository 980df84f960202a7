"""How `memlint.distributed.check` asks memlint, by an engine that does all of the work here. Ray has tests of its own."""

from __future__ import annotations

import glob
import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from conftest import SOURCES

import memlint
import memlint.distributed
from memlint.distributed import _work

ROOT = SOURCES.parent
LEAK = ROOT / "snapshots" / "seed-leak-list" / "snapshot.pickle.zst"


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> List[_work.Work]:
    """An engine of one machine. Gives what it was asked for."""
    asked: List[_work.Work] = []

    def examine(patterns: List[str], work: _work.Work) -> Iterator[_work.Part]:
        asked.append(work)
        files = sorted(file for pattern in patterns for file in glob.glob(pattern))
        for file in files:
            yield _work.Part(file, *_work.examine(file, file, work), among=len(files))

    stub = types.ModuleType("memlint.distributed._ray")
    stub.examine = examine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "memlint.distributed._ray", stub)
    monkeypatch.setattr(memlint.distributed, "_ray", stub, raising=False)
    return asked


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(3):
        shutil.copy(LEAK, folder / f"rank{rank}.pickle.zst")
    return folder


def check(job: Path, **options: Any) -> memlint.Report:
    return memlint.distributed.check([f"{job}/*.zst"], **options)


def test_ranks_that_are_missing_are_no_verdict(job: Path) -> None:
    assert check(job, ranks=3).verdict.outcome == "closed"
    report = check(job, ranks=4)
    assert report.verdict.outcome == "no-verdict"
    assert [notice.kind for notice in report.notices if notice.severity == "warning"] == ["missing-rank"]


def test_a_baseline_makes_known_findings_pass(job: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "b.json"
    memlint.check(job, options=["--isolated", "--baseline", str(baseline), "--update-baseline"])
    report = check(job, baseline=baseline)
    assert report.verdict.outcome == "open"
    assert {finding.standing for finding in report.findings if finding.severity == "error"} == {"baselined"}
    entries = json.loads(baseline.read_text())
    for entry in entries["entries"]:
        entry["measure"] = {name: number * 9 // 10 for name, number in entry["measure"].items()}
    baseline.write_text(json.dumps(entries))
    assert check(job, baseline=str(baseline), baseline_tolerance="50%").verdict.outcome == "open"
    assert check(job, baseline=str(baseline), baseline_tolerance="1%").verdict.outcome == "closed"


def test_sources_are_looked_for_here(job: Path, tmp_path: Path) -> None:
    def first(**options: Any) -> str:
        location = check(job, **options).findings[0].location
        assert location is not None
        return location.file

    examples = ROOT / "examples" / "seed-leak-list"
    assert first(source_roots=[examples]) == str(examples / "train.py")
    recorded = check(job).inputs[0].devices[0]
    assert recorded is not None
    prefix = first().rsplit("/", 1)[0]
    assert first(path_maps={prefix: examples}) == str(examples / "train.py")


def test_what_examine_and_conclude_share_goes_to_both(job: Path, engine: List[_work.Work]) -> None:
    told: Dict[str, Any] = {"device_memory": "1GiB", "fail_on": "never", "min_confidence": "high", "strict": True}
    report = check(job, **told)
    assert engine[0].options == ("--device-memory=1GiB", "--fail-on=never", "--min-confidence=high", "--strict")
    assert report.verdict.fail_on is None
    assert {finding.confidence for finding in report.findings} == {"high"}


def test_what_cannot_be_meant_is_said_before_the_cluster_is_asked(job: Path, engine: List[_work.Work]) -> None:
    with pytest.raises(ValueError, match="one rank at least, not 0"):
        check(job, ranks=0)
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        check(job, baseline="none.json")
    assert engine == []
    with pytest.raises(memlint.NoVerdict, match="fail-on"):
        check(job, fail_on="sometimes")
