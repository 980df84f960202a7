//! A recording that has lost its beginning.

use super::claim::{Besides, Claim, Mending, Place, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Seek, Severity, Value};
use crate::frames::Method;
use crate::snapshot::Action;
use crate::timeline::Agreement;
use crate::unit::{Confidence, count};

declare_rule! {
    /// The recording has lost its beginning.
    TruncatedHistory = "truncated-history", Input, Warning,
    needs: [Events],
    summary: "the recording has lost its beginning",
}

impl TruncatedHistory {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let Agreement { blocks_evicted, blocks_cut, .. } = facts.timeline.agreement;
        let lost = blocks_evicted + blocks_cut;
        // Allocations that are missing between events, and not before them, were left out on purpose (`skip_actions`).
        let allocates = facts.trace.events.iter().any(|event| event.action == Action::Alloc);
        let skipped = !allocates && facts.timeline.agreement.lost_allocations > 0;
        if lost == 0 || skipped {
            return Vec::new();
        }
        // That it is a slice is said by the file, and proved by nothing in it: so it is told all the same, but as a note.
        let (sure, most) = match blocks_evicted {
            0 => (Confidence::Low, Severity::Info),
            _ if is_a_buffer_size(facts, facts.trace.events.len()) => (Confidence::High, Severity::Error),
            _ => (Confidence::Medium, Severity::Error),
        };
        let told = move |worth: &Worth| tell(facts, (lost, blocks_evicted > 0), worth);
        vec![Claim::new(&Self::META, [], Mending::default(), told).sure(sure).at_most(most)]
    }
}

fn tell(facts: &Facts, (lost, is_overrun): (usize, bool), worth: &Worth) -> Finding {
    let events = facts.trace.events.len();
    let left = if events == 1 { "event is".to_owned() } else { count(events, "event") + " are" };
    let (message, help) = if is_overrun {
        (
            format!("the recording lost its beginning: only the last {left} left"),
            "record with a larger buffer: torch.cuda.memory._record_memory_history(max_entries=1_000_000)",
        )
    } else {
        (
            "the beginning is missing: the file says that it is a slice of a recording".to_owned(),
            "look at the recording that it was cut out of, if what came before matters",
        )
    };
    let telling = Telling {
        message,
        help: help.to_owned(),
        place: outermost(facts),
        label: "what this call allocated is in use, and its events are lost".to_owned(),
        related: Vec::new(),
        evidence: vec![
            measure(
                "blocks-without-allocation",
                Value::Count(lost as u64),
                format!("{} in use with a stack, but without an allocation event", count(lost, "block")),
            ),
            measure(
                "events",
                Value::Count(events as u64),
                format!("{} in the trace", count(events, "event")),
            ),
        ],
    };
    let seek = Seek { call: "_record_memory_history", label: "this buffer was too small for the program" };
    telling.told(facts, &TruncatedHistory::META, worth).seeking(is_overrun.then_some(seek))
}

/// The outermost call whose allocations are in use.
fn outermost(facts: &Facts) -> Place {
    let older = facts.timeline.allocations.iter().filter(|one| one.alloc.is_none());
    let Some(stack) = older.filter_map(|one| one.stack).find(|stack| facts.site(*stack).is_some()) else {
        return Place::Nowhere;
    };
    let outermost = facts.frames.user(stack).filter(|frame| !is_module(facts, *frame)).last();
    let frame = outermost.or_else(|| facts.site(stack));
    frame.map_or(Place::Nowhere, |frame| Place::At(frame, None, None))
}

/// Whether the number of events is one that a person sets as a limit, or the same on several devices.
fn is_a_buffer_size(facts: &Facts, events: usize) -> bool {
    let full = facts.snapshot.devices.iter().filter(|trace| trace.events.len() == events).count();
    events.is_multiple_of(1000) || events.is_power_of_two() || full > 1
}

fn is_module(facts: &Facts, frame: crate::unit::FrameId) -> bool {
    facts.frames.method(frame) == Method::Module
}
