"""A local cluster of several nodes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest
import ray
from ray.cluster_utils import Cluster

import memlint
import memlint.distributed

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots"
#: A rank of a job, of a few kilobytes.
RANK = SNAPSHOTS / "ranks" / "fsdp-imbalance" / "rank0_memory_snapshot.pickle.zst"
MANY = 512


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three nodes of one processor each."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def ranks(folder: Path, many: int) -> List[Path]:
    files = [folder / f"rank{rank}_memory_snapshot.pickle.zst" for rank in range(many)]
    for file in files:
        shutil.copy(RANK, file)
    return files


def test_as_check_says_it(cluster: Cluster, tmp_path: Path) -> None:
    folder = shutil.copytree(RANK.parent, tmp_path / "job")
    there = memlint.distributed.check([f"{folder}/*.zst"])
    here = memlint.check(*sorted(folder.iterdir()), options=["--isolated"])
    assert there == here
    assert "rank-imbalance" in [one.name for one in there.findings]


def test_five_hundred_snapshots_and_a_node_that_goes_away(cluster: Cluster, tmp_path: Path) -> None:
    files = ranks(tmp_path, MANY)
    told: List[Tuple[int, int]] = []

    def progress(done: int, among: int) -> None:
        told.append((done, among))
        if done == MANY // 8:
            cluster.remove_node(cluster.list_all_nodes()[-1])

    report = memlint.distributed.check([f"{tmp_path}/rank*.zst"], progress=progress)
    assert len(cluster.list_all_nodes()) == 2
    assert told == [(done, MANY) for done in range(1, MANY + 1)]
    assert sorted(one.path for one in report.inputs) == sorted(map(str, files))
    assert not report.unread
    assert report.verdict.outcome != "no-verdict"


def test_one_bad_snapshot_does_not_stop_the_rest(cluster: Cluster, tmp_path: Path) -> None:
    files = ranks(tmp_path, 4)
    files[2].write_text("no snapshot")
    report = memlint.distributed.check([str(file) for file in files])
    assert [one.path for one in report.unread] == [str(files[2])]
    assert "not a memory snapshot" in report.unread[0].message
    assert len(report.inputs) == 3
    assert report.verdict.outcome == "no-verdict"


def test_settings_are_taken_along(cluster: Cluster, tmp_path: Path) -> None:
    folder = shutil.copytree(RANK.parent, tmp_path / "job")
    config = tmp_path / "mine.toml"
    config.write_text('[lint]\nignore = ["rank-imbalance"]\n')
    there = memlint.distributed.check([f"{folder}/*.zst"], config=str(config))
    here = memlint.check(*sorted(folder.iterdir()), options=["--config", str(config)])
    assert there == here
    assert "rank-imbalance" not in [one.name for one in there.findings]


def test_what_nobody_has_is_no_verdict(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(memlint.NoVerdict, match="no machine of the cluster"):
        memlint.distributed.check([f"{tmp_path}/rank*.zst"])


def test_engines_that_are_not_known_are_named() -> None:
    with pytest.raises(ValueError, match="'dask'"):
        memlint.distributed.check(["x"], engine="dask")
