//! What kind of recording it is: people record whole runs, a few later iterations, one pass, or by mistake one event.
//!
//! In: the trace, what it lacks, and the iterations. Out: the [`RecordingKind`], and why the beginning is lost, where it is.

use serde::{Deserialize, Serialize};

use crate::facts::Evidence;
use crate::frames::Frames;
use crate::program::{Phase, Program};
use crate::snapshot::{Action, DeviceTrace, Snapshot};
use crate::timeline::Timeline;
use crate::unit::StackId;

/// Why the beginning of a recording is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// `_record_memory_history(True)`, the call of before 2.1, keeps one event; so does `"state"`.
    OneEvent,
    /// There are as many events as a person sets as a limit, and what is alive was recorded once, or the first is in the middle of a pass.
    Full,
    /// There are not: history may have been switched off and on again.
    Earlier,
    /// The file says that it is a slice, and nothing in it proves that.
    Slice,
}

/// What kind of recording it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordingKind {
    /// What is there at one moment, without a history.
    State,
    /// Events of some kinds alone (`skip_actions`), or of kinds that memlint does not know.
    Partial,
    /// A part that was cut out of a longer recording.
    Slice,
    /// The last events of a longer recording: its buffer was full.
    Tail,
    /// History that was switched off and on again.
    Resumed,
    /// Everything from the first allocation on.
    Whole,
    /// A loop from its first iteration on; what was built before is older.
    Loop,
    /// A loop from a later iteration on.
    Later,
    /// One pass of what may be a loop.
    Pass,
    /// Something else that does not repeat.
    Straight,
}

impl Lost {
    /// Why a device's beginning is lost; nothing where it is not, or where events were left out on purpose.
    pub(super) fn of(
        (snapshot, frames): (&Snapshot, &Frames),
        trace: &DeviceTrace,
        timeline: &Timeline,
        program: &Program,
    ) -> Option<Lost> {
        let agreement = timeline.agreement;
        let events = trace.events.len();
        // Allocations that are missing between events, and not before them, were left out on purpose (`skip_actions`).
        let allocates = trace.events.iter().any(|event| event.action == Action::Alloc);
        if !allocates && agreement.lost_allocations > 0 {
            return None;
        }
        match agreement.blocks_evicted {
            0 if agreement.blocks_cut > 0 => Some(Lost::Slice),
            0 => {
                let is_full = is_a_buffer_size(snapshot, events) && begins_in_a_pass(frames, trace, program);
                (is_full && snapshot.excerpt.is_none()).then_some(Lost::Full)
            }
            _ if events == 1 => Some(Lost::OneEvent),
            _ if is_a_buffer_size(snapshot, events) => Some(Lost::Full),
            _ => Some(Lost::Earlier),
        }
    }
}

/// Whether the number of events is one that a person sets as a limit, round or a power of two (of other numbers one in a
/// hundred is), or the same on several devices.
fn is_a_buffer_size(snapshot: &Snapshot, events: usize) -> bool {
    let full = snapshot.devices.iter().filter(|trace| trace.events.len() == events).count();
    events.is_multiple_of(100) || events.is_power_of_two() || full > 1
}

/// Whether the first event is the autograd engine's, in the middle of a backward pass: a program switches its history on from Python, and
/// that waits for the engine.
fn begins_in_a_pass(frames: &Frames, trace: &DeviceTrace, program: &Program) -> bool {
    let is_engines = |stack: StackId| frames.python(stack).is_empty();
    let first = trace.events.first().and_then(|event| event.stack);
    program.phases.first() == Some(&Phase::Backward) && first.is_some_and(is_engines)
}

impl RecordingKind {
    pub(super) fn of(
        lost: Option<Lost>,
        timeline: &Timeline,
        program: &Program,
        evidence: &Evidence,
    ) -> RecordingKind {
        let older = timeline.allocations.iter().any(|one| one.alloc.is_none());
        match lost {
            Some(Lost::OneEvent) => RecordingKind::State,
            Some(Lost::Slice) => RecordingKind::Slice,
            Some(Lost::Full) => RecordingKind::Tail,
            Some(Lost::Earlier) => RecordingKind::Resumed,
            None if evidence.events().is_err() => RecordingKind::State,
            None if evidence.history().is_err() => RecordingKind::Partial,
            None if !older => RecordingKind::Whole,
            None if program.iterations.is_empty() && evidence.pass().is_ok() => RecordingKind::Pass,
            None if program.iterations.is_empty() => RecordingKind::Straight,
            None if evidence.first_iteration().is_err() => RecordingKind::Later,
            None => RecordingKind::Loop,
        }
    }

    /// The name in every machine-readable format.
    pub const fn name(self) -> &'static str {
        match self {
            RecordingKind::State => "state",
            RecordingKind::Partial => "partial",
            RecordingKind::Slice => "slice",
            RecordingKind::Tail => "tail",
            RecordingKind::Resumed => "resumed",
            RecordingKind::Whole => "whole",
            RecordingKind::Loop => "loop",
            RecordingKind::Later => "later",
            RecordingKind::Pass => "pass",
            RecordingKind::Straight => "straight",
        }
    }

    /// What it is, and what therefore cannot be judged.
    pub const fn words(self) -> &'static str {
        match self {
            RecordingKind::State => {
                "the state at one moment, without a history: nothing that takes time can be judged"
            }
            RecordingKind::Partial => {
                "events of some kinds are left out or not known: lifetimes cannot be judged"
            }
            RecordingKind::Slice => {
                "a part that was cut out of a longer recording: what came before is not seen"
            }
            RecordingKind::Tail => {
                "the last events of a longer recording, whose buffer was full: how things began is lost"
            }
            RecordingKind::Resumed => "history was switched off and on again: what came before is not seen",
            RecordingKind::Whole => "from the first allocation on",
            RecordingKind::Loop => "a loop from its first iteration on; what was built before is older",
            RecordingKind::Later => "from a later iteration on: how things began is not seen",
            RecordingKind::Pass => {
                "one pass, as it seems: no loop was found, and what needs several iterations cannot be judged"
            }
            RecordingKind::Straight => {
                "no loop and no single pass was found: what compares iterations cannot be judged"
            }
        }
    }

    /// Whether it keeps something from being judged.
    pub const fn hides(self) -> bool {
        !matches!(self, RecordingKind::Whole | RecordingKind::Loop)
    }
}
