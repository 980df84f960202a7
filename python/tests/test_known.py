"""What is unknown where there is no GPU, and which statements decided by it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from memlint._recorder.known import Known

PROGRAM = """
def train(value):
    if value() > 1:
        pass
    loss = value()
    print(loss)
    best = value()
    while best > 3:
        break
    if value() != value():
        raise ValueError
    return value()


def evaluate(value, best=0):
    loss = value()
    if best:
        pass
"""


class Tensor:
    """As much of a tensor as its address takes."""

    def __init__(self, start: int, offset: int = 0) -> None:
        self._start, self._offset = start, offset

    def data_ptr(self) -> int:
        return self._start + 4 * self._offset

    def storage_offset(self) -> int:
        return self._offset

    def element_size(self) -> int:
        return 4


def test_views_are_as_unknown_as_what_they_are_of_until_it_is_written_again() -> None:
    known = Known()
    assert known.are([Tensor(64)])
    known.note([Tensor(64)], is_known=False)
    assert not known.are([Tensor(128), Tensor(64, offset=3)])
    assert known.are([Tensor(128)])
    known.note([Tensor(64)], is_known=True)
    assert known.are([Tensor(64, offset=3)])


def test_statements_that_decide_are_told_from_reads_and_checks(tmp_path: Path) -> None:
    known = Known()
    # What reads stands in a library: the script's line is what counts.
    library = tmp_path / "site-packages" / "library.py"
    library.parent.mkdir()
    library.write_text("def read(known):\n    known.read()\n    return 0\n")
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    names: dict[str, Any] = {}
    for file in (library, script):
        exec(compile(file.read_text(), str(file), "exec"), names)
    for function in ("train", "evaluate"):
        names[function](functools.partial(names["read"], known))
    found = [(branch["file"], branch["line"], branch["end"]) for branch in known.branches()]
    assert found == [(str(script), 3, 4), (str(script), 8, 9)]


def test_what_a_library_decides_is_its_own_statement(tmp_path: Path) -> None:
    known = Known()
    library = tmp_path / "site-packages" / "library.py"
    library.parent.mkdir()
    library.write_text("def fit(known):\n    loss = known.read()\n    if loss:\n        return 1\n    return 0\n")
    script = tmp_path / "train.py"
    script.write_text("def train(known):\n    if fit(known):\n        return 1\n    return 0\n")
    names: dict[str, Any] = {}
    for file in (library, script):
        exec(compile(file.read_text(), str(file), "exec"), names)
    names["train"](known)
    # The script's own statement decides by what the library made of the value, which nobody follows.
    assert known.branches() == [{"file": str(library), "line": 3, "end": 4}]


def test_what_a_function_returns_decides_where_it_is_called(tmp_path: Path) -> None:
    known = Known()
    script = tmp_path / "train.py"
    script.write_text(
        "def is_low(known):\n    loss = known.read()\n    return loss\n\n\n"
        "def logged(known):\n    known.read()\n    return 0\n\n\n"
        "def train(known):\n    if logged(known):\n        pass\n    if is_low(known):\n        pass\n"
    )
    names: dict[str, Any] = {}
    exec(compile(script.read_text(), str(script), "exec"), names)
    names["train"](known)
    assert known.branches() == [{"file": str(script), "line": 14, "end": 15}]
