//! A recording in which nothing repeats.

use super::{declare_rule, measure, place, shown};
use crate::facts::Facts;
use crate::finding::{Finding, Value};
use crate::program::FoundBy;
use crate::unit::{Confidence, count};

declare_rule! {
    /// Nothing in the recording repeats.
    NoIterations = "no-iterations", Input, Info,
    needs: [Events],
    summary: "nothing in the recording repeats",
}

impl NoIterations {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let found = facts.program.iterations.len();
        if found >= 2 && facts.program.found_by != FoundBy::Nothing {
            return Vec::new();
        }
        let message = "no iterations found: rules that compare them are skipped".to_owned();
        let help = "record at least three iterations of the loop that matters";
        let mut finding = Self::META.finding(facts, message, help);
        finding.confidence = Confidence::High;
        let stack = facts.timeline.peak_requested.event.and_then(|event| facts.seen_stack(event));
        if let Some(stack) = stack {
            finding.location = facts.site(stack).and_then(|frame| place(facts, frame));
            finding.stack = shown(facts, stack);
            "the peak of the run is here".clone_into(&mut finding.label);
        }
        let steps = facts.program.steps.len();
        finding.evidence = vec![
            measure("iterations", Value::Count(found as u64), count(found, "iteration")),
            measure("optimizer-steps", Value::Count(steps as u64), count(steps, "optimizer step")),
        ];
        vec![finding]
    }
}
