//! A recording whose events say nothing about the program.

use super::{declare_rule, measure, place};
use crate::facts::Facts;
use crate::finding::{Finding, Seek, Value};
use crate::snapshot::Action;
use crate::unit::{Confidence, count};

declare_rule! {
    /// No event has a Python stack.
    NoStacks = "no-stacks", Input, Warning,
    needs: [Events],
    summary: "no event has a Python stack",
}

impl NoStacks {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let events = &facts.trace.events;
        let is_told = |stack| !facts.code.python(stack).is_empty();
        // Events of other kinds may have none although stacks were recorded.
        let allocates = events.iter().any(|event| event.action == Action::Alloc);
        if !allocates || events.iter().filter_map(|event| event.stack).any(is_told) {
            return Vec::new();
        }
        let native = events.iter().filter(|event| event.stack.is_some()).count();
        let message = "no event has a Python stack, so no line can be named".to_owned();
        let help = "record with stacks: torch.cuda.memory._record_memory_history(context=\"all\", stacks=\"python\")";
        let mut finding = Self::META.finding(facts, message, help);
        finding.confidence = Confidence::High;
        finding.seek =
            Some(Seek { call: "_record_memory_history", label: "recorded here without Python stacks" });
        // With `context="state"` blocks in use keep their stacks although events have none.
        let blocks = facts.timeline.allocations.iter().filter_map(|one| one.stack);
        let frame = blocks.filter(|stack| is_told(*stack)).find_map(|stack| facts.site(stack));
        finding.location = frame.and_then(|frame| place(facts, frame));
        "allocated here; how its events came about is not recorded".clone_into(&mut finding.label);
        finding.evidence = vec![
            measure(
                "events",
                Value::Count(events.len() as u64),
                format!("{} without a Python stack", count(events.len(), "event")),
            ),
            measure(
                "native",
                Value::Count(native as u64),
                format!("{} with C++ frames alone", count(native, "event")),
            ),
        ];
        vec![finding]
    }
}
