"""Whose values were computed, where there is no GPU, and where a program read what was not.

What a large operator would compute is not there: such results are unknown, and so is what is made from them. A program that
goes one way or the other by a value that is unknown may go another way than on a GPU; where it did that is written down.

Always: no Python object stays with a tensor because of this, for the moments at which Python collects its garbage hang on
how many there are. So a tensor is known by the address of its storage, which every operator that writes there says anew.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple, Optional

#: Reads that are written down: more than a person looks at.
MOST_READS = 1000
#: Where libraries lie.
LIBRARIES = f"{os.sep}site-packages{os.sep}"
#: What makes a tensor's text.
SHOWS = os.path.join("torch", "_tensor_str.py")
#: Where this lies, whose frames are nobody's.
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def address_of(tensor: Any) -> int:
    """Where the storage begins; nothing where a tensor has none of the usual kind."""
    try:
        return int(tensor.data_ptr()) - int(tensor.storage_offset()) * int(tensor.element_size())
    except (RuntimeError, NotImplementedError):
        return 0


class Known:
    """Which tensors' values are unknown, and the lines that read them."""

    def __init__(self) -> None:
        self._unknown: set[int] = set()
        self._reads: dict[tuple[tuple[str, int], ...], None] = {}

    def are(self, tensors: Iterable[Any]) -> bool:
        """Whether the values of all of these were computed."""
        return not self._unknown or not any(address_of(tensor) in self._unknown for tensor in tensors)

    def note(self, tensors: Iterable[Any], is_known: bool) -> None:
        """Says of results whether their values were computed."""
        for tensor in tensors:
            address = address_of(tensor)
            if address and not is_known:
                self._unknown.add(address)
            else:
                self._unknown.discard(address)

    def read(self) -> None:
        """The script is given a value that is unknown, or a library that it calls."""
        frames = []
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.endswith(SHOWS):
                # To print a value decides nothing.
                return
            if not file.startswith(FOLDER):
                frames.append((file, frame.f_lineno))
                if LIBRARIES not in file and not _returns(file, frame.f_lineno):
                    break
            frame = frame.f_back
        if len(self._reads) < MOST_READS:
            self._reads[tuple(frames)] = None

    def branches(self) -> list[dict[str, Any]]:
        """The statements that decided by an unknown value, the script's and its libraries', as far as the sources are there:
        their file, first and last line. Only what stands inside of them hangs on it, and not all that the script's line does
        which called the library."""
        found: dict[Branch, None] = {}
        for frames in self._reads:
            branches = (_branch(file, line) for file, line in frames)
            branch = next((branch for branch in branches if branch is not None), None)
            if branch is not None:
                found[branch] = None
        return [branch._asdict() for branch in found]


class Branch(NamedTuple):
    """A statement that goes one way or the other."""

    file: str
    line: int
    end: int


@functools.lru_cache(maxsize=None)
def _tree(file: str) -> Optional[ast.Module]:
    try:
        with open(file, encoding="utf-8") as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return None


def _branch(file: str, line: int) -> Optional[Branch]:
    """The statement that decides by what was read at a line: there itself, or in the same function by the name it was given."""
    nodes, named = _function(file, line)
    for node in nodes:
        if not isinstance(node, (ast.If, ast.While, ast.IfExp)) or _is_check(node):
            continue
        if _is_at(node.test, line) or _names(node.test) & named:
            return Branch(file, node.lineno, node.end_lineno or node.lineno)
    return None


@functools.lru_cache(maxsize=None)
def _returns(file: str, line: int) -> bool:
    """Whether a function returns what was read at a line: then it is its caller that decides."""
    nodes, named = _function(file, line)
    return any(isinstance(node, ast.Return) and (_is_at(node, line) or _names(node) & named) for node in nodes)


def _function(file: str, line: int) -> tuple[list[Any], set[str]]:
    """What there is in the function around a line, and the names that the line gives; in the whole file, if there is none."""
    tree = _tree(file)
    if tree is None:
        return [], set()
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    around: list[Any] = [node for node in functions if _is_at(node, line)]
    nodes = list(ast.walk(around[-1] if around else tree))
    named: set[str] = set()
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and _is_at(node, line):
            named |= _names(node)
    return nodes, named


def _names(node: Any) -> set[str]:
    """The variables of an expression, or those that an assignment sets."""
    parts = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    return {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}


def _is_check(node: Any) -> bool:
    """Whether a statement ends the program where something is wrong: what is unknown is taken for right."""
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)


def _is_at(node: Any, line: int) -> bool:
    return bool(node.lineno <= line <= (node.end_lineno or node.lineno))
