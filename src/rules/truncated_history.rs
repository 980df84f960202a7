//! A recording that has lost its beginning.

use super::claim::{Besides, Claim, Mending, Place, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Seek, Severity, Value};
use crate::frames::Method;
use crate::snapshot::Action;
use crate::unit::{Confidence, count};

declare_rule! {
    /// The recording has lost its beginning.
    TruncatedHistory = "truncated-history", Input, Warning,
    needs: [Events],
    summary: "the recording has lost its beginning",
}

impl TruncatedHistory {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let evicted = facts.timeline.agreement.blocks_evicted;
        let events = facts.trace.events.len();
        // Allocations that are missing between events, and not before them, were left out on purpose (`skip_actions`).
        let allocates = facts.trace.events.iter().any(|event| event.action == Action::Alloc);
        let skipped = !allocates && facts.timeline.agreement.lost_allocations > 0;
        if evicted == 0 || skipped {
            return Vec::new();
        }
        let left = if events == 1 { "event is".to_owned() } else { count(events, "event") + " are" };
        let told = move |worth: &Worth| {
            let telling = Telling {
                message: format!("the recording lost its beginning: only the last {left} left"),
                help: "record with a larger buffer: torch.cuda.memory._record_memory_history(max_entries=1_000_000)"
                    .to_owned(),
                place: outermost(facts),
                label: "what this call allocated is in use, and its events are lost".to_owned(),
                related: Vec::new(),
                evidence: vec![
                    measure(
                        "blocks-without-allocation",
                        Value::Count(evicted as u64),
                        format!("{} in use with a stack, but without an allocation event", count(evicted, "block")),
                    ),
                    measure(
                        "events",
                        Value::Count(events as u64),
                        format!("{} in the trace", count(events, "event")),
                    ),
                ],
            };
            let seek =
                Seek { call: "_record_memory_history", label: "this buffer was too small for the program" };
            telling.told(facts, &Self::META, worth).seeking(Some(seek))
        };
        let sure = if is_a_buffer_size(facts, events) { Confidence::High } else { Confidence::Medium };
        let claim = Claim::new(&Self::META, [], Mending::default(), told);
        vec![claim.sure(sure).at_most(Severity::Warning)]
    }
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
