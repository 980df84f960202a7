//! A recording in which nothing repeats.

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::Quantity;
use crate::program::FoundBy;
use crate::unit::{Confidence, count};

declare_rule! {
    /// Nothing in the recording repeats.
    NoIterations = "no-iterations", Input, Info,
    needs: [Events],
    summary: "nothing in the recording repeats",
}

impl NoIterations {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let found = facts.program.iterations.len();
        if found >= 2 && facts.program.found_by != FoundBy::Nothing {
            return Vec::new();
        }
        let steps = facts.program.steps.len();
        let told = move |worth: &Worth| {
            let stack = facts.timeline.peak_requested.event.and_then(|event| facts.seen_stack(event));
            let telling = Telling {
                message: "no iterations found: rules that compare them are skipped".to_owned(),
                help: "record at least three iterations of the loop that matters".to_owned(),
                place: Anchor::of_stack(facts, stack),
                label: "the peak of the run is here".to_owned(),
                related: Vec::new(),
                evidence: vec![
                    measure("iterations", Quantity::Count(found as u64), count(found, "iteration")),
                    measure("optimizer-steps", Quantity::Count(steps as u64), count(steps, "optimizer step")),
                ],
            };
            telling.told(facts, &Self::META, worth)
        };
        let claim = Claim::new(&Self::META, [], Mending::default(), told);
        vec![claim.sure(Confidence::High)]
    }
}
