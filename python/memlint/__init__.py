"""memlint, a linter for GPU memory, from Python.

`record` records what a part of a program does with the memory of its GPU, `check` says what is wrong with it. Both need no other
package; `record` needs torch where it is used.

    with memlint.record("snapshot.pickle") as recording:
        train(iterations=8)
    report = memlint.check(recording.path)
    for finding in report.findings:
        print(finding.severity, finding.location, finding.message)
"""

from __future__ import annotations

from .checking import NoVerdict, check
from .recording import record
from .report import (
    Device,
    Edit,
    Finding,
    Frame,
    Gap,
    Ignored,
    Impact,
    Input,
    Location,
    Loop,
    Notice,
    Related,
    Report,
    Sighting,
    Skipped,
    Summary,
    Tool,
    Unread,
    Verdict,
)

__all__ = [
    "Device",
    "Edit",
    "Finding",
    "Frame",
    "Gap",
    "Ignored",
    "Impact",
    "Input",
    "Location",
    "Loop",
    "NoVerdict",
    "Notice",
    "Related",
    "Report",
    "Sighting",
    "Skipped",
    "Summary",
    "Tool",
    "Unread",
    "Verdict",
    "check",
    "record",
]
