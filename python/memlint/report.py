"""The report of a check, as `memlint check --output-format json` writes it (`memlint schema output` describes it).

Fields are named as there. Bytes are integers, lines count from 1, and `None` means that it is not known.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Type, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Tool:
    """Who wrote the report."""

    name: str
    version: str


@dataclass(frozen=True)
class Loop:
    """A loop of the program, by its first line."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Device:
    """What a snapshot shows of a device."""

    device: int
    recording: str
    iterations: int
    iterations_found_by: str
    iterations_confidence: str
    loop: Optional[Loop]
    peak_requested_bytes: Optional[int]
    peak_allocated_bytes: Optional[int]
    peak_reserved_bytes: Optional[int]
    peak_phase: str
    roles_at_peak: Dict[str, int]


@dataclass(frozen=True)
class Input:
    """A snapshot that was read."""

    path: str
    rank: Optional[int]
    devices: List[Device]


@dataclass(frozen=True)
class Location:
    """A place in the source."""

    file: str
    line: int
    column: Optional[int]
    end_line: Optional[int]
    end_column: Optional[int]
    function: Optional[str]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Related:
    """Another place that a finding names."""

    location: Location
    message: str


@dataclass(frozen=True)
class Frame:
    """A frame of a stack, and whether it is the user's own code."""

    file: str
    line: int
    function: str
    user: bool


@dataclass(frozen=True)
class Impact:
    """What mending a finding saves."""

    peak_bytes: Optional[int]
    reserved_bytes: Optional[int]
    resident_bytes: Optional[int]
    bytes_per_iteration: Optional[int]
    bytes_at_once: Optional[int]


@dataclass(frozen=True)
class Sighting:
    """Another snapshot or device that shows the same."""

    input: Optional[str]
    rank: Optional[int]
    device: Optional[int]
    impact: Impact


@dataclass(frozen=True)
class Edit:
    """A change of a file; `why` says what all changes of its finding do, and why that is safe or not."""

    file: str
    start_byte: int
    end_byte: int
    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str
    applicability: str
    why: str


@dataclass(frozen=True)
class Ignored:
    """Why a finding does not count."""

    reason: str
    by: str


@dataclass(frozen=True)
class Finding:
    """What is wrong, at which line, what it costs, and how to mend it."""

    name: str
    group: str
    severity: str
    confidence: str
    message: str
    help: str
    input: Optional[str]
    device: Optional[int]
    rank: Optional[int]
    also: List[Sighting]
    location: Optional[Location]
    related: List[Related]
    evidence: Dict[str, Any]
    impact: Impact
    stack: List[Frame]
    fingerprint: str
    standing: str
    ignored: Optional[Ignored]
    edits: List[Edit]
    no_edit: Optional[str]


@dataclass(frozen=True)
class Notice:
    """Something about the check itself."""

    kind: str
    severity: str
    message: str
    help: str
    location: Optional[Location]


@dataclass(frozen=True)
class Skipped:
    """A rule that did not judge, and why."""

    input: Optional[str]
    rule: str
    device: Optional[int]
    reason: str
    blind: bool
    help: Optional[str]


@dataclass(frozen=True)
class Gap:
    """Something that a snapshot does not show."""

    input: str
    device: Optional[int]
    kind: str
    message: str


@dataclass(frozen=True)
class Unread:
    """A file that could not be read."""

    path: str
    rank: Optional[int]
    message: str
    help: Optional[str]


@dataclass(frozen=True)
class Summary:
    """How many findings there are of each kind."""

    errors: int
    warnings: int
    infos: int
    ignored: int
    baselined: int
    unsure: int
    inherited: int
    skipped: int


@dataclass(frozen=True)
class Verdict:
    """Whether the gate is open."""

    fails: bool
    fail_on: Optional[str]
    failing: int
    outcome: str
    unread: int
    unjudged: int
    blind: int
    left_out: int


@dataclass(frozen=True)
class Report:
    """A whole report."""

    schema: str
    tool: Tool
    inputs: List[Input]
    findings: List[Finding]
    notices: List[Notice]
    skipped: List[Skipped]
    gaps: List[Gap]
    unread: List[Unread]
    summary: Summary
    verdict: Verdict

    @property
    def passes(self) -> bool:
        """Whether everything was judged and nothing found that counts."""
        return self.verdict.outcome == "open"


def read(kind: Type[T], said: Any) -> T:
    """An object of JSON as one of these classes. What a later memlint adds is passed over."""
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return kind(**{field.name: _read(hints[field.name], said[field.name]) for field in fields})


def _read(hint: Any, said: Any) -> Any:
    arguments = typing.get_args(hint)
    if said is not None and type(None) in arguments:
        return _read(arguments[0], said)
    if typing.get_origin(hint) is list:
        return [_read(arguments[0], one) for one in said]
    return read(hint, said) if isinstance(hint, type) and dataclasses.is_dataclass(hint) else said
