//! A recording that has lost its beginning.

use super::{declare_rule, measure, place};
use crate::facts::Facts;
use crate::finding::{Finding, Seek, Severity, Value};
use crate::snapshot::Action;
use crate::timeline::Agreement;
use crate::unit::{Confidence, count};

declare_rule! {
    /// The recording has lost its beginning.
    TruncatedHistory = "truncated-history", Input, Warning,
    needs: [History],
    summary: "the recording has lost its beginning",
}

impl TruncatedHistory {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let Agreement { blocks_evicted, blocks_cut, .. } = facts.timeline.agreement;
        let lost = blocks_evicted + blocks_cut;
        let events = facts.trace.events.len();
        // Without any allocation event they were left out on purpose (`skip_actions`).
        if lost == 0 || !facts.trace.events.iter().any(|event| event.action == Action::Alloc) {
            return Vec::new();
        }
        let mut finding = if blocks_evicted > 0 { overrun(facts, events) } else { slice(facts) };
        let older = facts.timeline.allocations.iter().filter(|one| one.alloc.is_none());
        let stack = older.filter_map(|one| one.stack).find(|stack| facts.site(*stack).is_some());
        if let Some(stack) = stack {
            let outermost = facts.code.user(stack).filter(|frame| !is_module(facts, *frame)).last();
            let frame = outermost.or_else(|| facts.site(stack));
            finding.location = frame.and_then(|frame| place(facts, frame));
        }
        "what this call allocated is in use, and its events are lost".clone_into(&mut finding.label);
        finding.evidence = vec![
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
        ];
        vec![finding]
    }
}

/// The buffer was too small.
fn overrun(facts: &Facts, events: usize) -> Finding {
    let message =
        format!("the recording lost its beginning: only the last {} are left", count(events, "event"));
    let help = "record with a larger buffer: torch.cuda.memory._record_memory_history(max_entries=1_000_000)";
    let mut finding = TruncatedHistory::META.finding(facts, message, help);
    finding.confidence = if is_a_buffer_size(facts, events) { Confidence::High } else { Confidence::Medium };
    finding.seek =
        Some(Seek { call: "_record_memory_history", label: "this buffer was too small for the program" });
    finding
}

/// The file says that it is a slice. Nothing in it proves that, so it is told all the same, but as a note.
fn slice(facts: &Facts) -> Finding {
    let message = "the beginning is missing: the file says that it is a slice of a recording".to_owned();
    let help = "look at the recording that it was cut out of, if what came before matters";
    let mut finding = TruncatedHistory::META.finding(facts, message, help);
    (finding.severity, finding.confidence) = (Severity::Info, Confidence::Low);
    finding
}

/// Whether the number of events is one that a person sets as a limit, or the same on several devices.
fn is_a_buffer_size(facts: &Facts, events: usize) -> bool {
    let full = facts.snapshot.devices.iter().filter(|trace| trace.events.len() == events).count();
    events.is_multiple_of(1000) || events.is_power_of_two() || full > 1
}

fn is_module(facts: &Facts, frame: crate::unit::FrameId) -> bool {
    facts.snapshot.stacks.frame(frame).is_some_and(|frame| facts.snapshot.text(frame.name) == "<module>")
}
