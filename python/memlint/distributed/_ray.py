"""Ray places the work: tasks where the files are, again elsewhere if a machine goes away."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from . import _work
from ._work import Identity, Part, Work

#: How often one snapshot is tried. Machines come and go; what fails three times fails for a reason of its own.
ATTEMPTS = 3


@dataclass
class _Snapshot:
    """A file, and the nodes that see it."""

    path: str
    name: str
    nodes: List[str]
    attempts: int = 0
    problem: str = ""
    #: Nodes on which it failed.
    failed_on: Set[str] = field(default_factory=set)


def examine(patterns: Sequence[str], work: Work) -> Iterator[Part]:
    """What each snapshot of the cluster has to say, as it comes in. Joins the cluster that is there, or starts one here."""
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    snapshots = _find(patterns)
    task = ray.remote(num_cpus=1, max_retries=0)(_work.examine)
    running: Dict[Any, Tuple[_Snapshot, str]] = {}
    load: Counter[str] = Counter()

    def start(one: _Snapshot) -> Optional[Part]:
        """Sends it to the node with the least to do; what no node can do is a part without content."""
        alive = set(_alive())
        nodes = [node for node in one.nodes if node in alive]
        if not nodes or one.attempts >= ATTEMPTS:
            gone = "no machine that has it is left" if not nodes else f"failed {one.attempts} times"
            problem = f"{gone}: {one.problem}" if one.problem else gone
            return Part(one.name, None, problem, len(snapshots))
        node = min(nodes, key=lambda node: (node in one.failed_on, load[node], node))
        one.attempts += 1
        load[node] += 1
        running[task.options(scheduling_strategy=_on(node)).remote(one.path, one.name, work)] = (one, node)
        return None

    yield from (part for part in map(start, snapshots) if part is not None)
    while running:
        (done,), _ = ray.wait(list(running), num_returns=1)
        one, node = running.pop(done)
        load[node] -= 1
        try:
            content, problem = ray.get(done)
        except RayError as error:
            one.failed_on.add(node)
            one.problem = str(error).strip().splitlines()[0]
            part = start(one)
            if part is not None:
                yield part
        else:
            yield Part(one.name, content, problem, len(snapshots))


def _find(patterns: Sequence[str]) -> List[_Snapshot]:
    """The files of all nodes. One that several nodes see is one; others of the same path bear their node's name."""
    look = ray.remote(num_cpus=0, max_retries=0)(_work.look)
    asked = {node: look.options(scheduling_strategy=_on(node)).remote(list(patterns)) for node in _alive()}
    seen: Dict[str, Dict[Identity, List[str]]] = {}
    for node, answer in asked.items():
        try:
            files = ray.get(answer)
        except RayError:
            # It went away meanwhile; what it alone had is found nowhere.
            continue
        for path, identity in files.items():
            seen.setdefault(path, {}).setdefault(identity, []).append(node)
    addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    return [
        _Snapshot(path, path if len(files) == 1 else f"{addresses[nodes[0]]}/{path.lstrip('/')}", nodes)
        for path, files in sorted(seen.items())
        for nodes in files.values()
    ]


def _alive() -> List[str]:
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]


def _on(node: str) -> NodeAffinitySchedulingStrategy:
    return NodeAffinitySchedulingStrategy(node, soft=False)
