//! A recording whose events say nothing about the program.

use super::claim::{Anchor, Besides, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Quantity, Seek};
use crate::snapshot::Action;
use crate::unit::{Confidence, count};

declare_rule! {
    /// No event has a Python stack.
    NoStacks = "no-stacks", Input, Warning,
    needs: [Events],
    summary: "no event has a Python stack",
}

impl NoStacks {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let events = &facts.trace.events;
        let is_told = |stack| !facts.frames.python(stack).is_empty();
        // Events of other kinds may have none although stacks were recorded.
        let allocates = events.iter().any(|event| event.action == Action::Alloc);
        if !allocates || events.iter().filter_map(|event| event.stack).any(is_told) {
            return Vec::new();
        }
        let (all, native) = (events.len(), events.iter().filter(|event| event.stack.is_some()).count());
        // With `context="state"` blocks in use keep their stacks although events have none.
        let blocks = facts.timeline.allocations.iter().filter_map(|one| one.stack);
        let frame = blocks.filter(|stack| is_told(*stack)).find_map(|stack| facts.site(stack));
        let told = move |worth: &Worth| {
            let telling = Telling {
                message: "no event has a Python stack, so no line can be named".to_owned(),
                help: "record with stacks: torch.cuda.memory._record_memory_history(context=\"all\", stacks=\"python\")"
                    .to_owned(),
                place: frame.map_or(Anchor::Nowhere, |frame| Anchor::At(frame, None, None)),
                label: "allocated here; how its events came about is not recorded".to_owned(),
                related: Vec::new(),
                evidence: vec![
                    measure(
                        "events",
                        Quantity::Count(all as u64),
                        format!("{} without a Python stack", count(all, "event")),
                    ),
                    measure(
                        "native",
                        Quantity::Count(native as u64),
                        format!("{} with C++ frames alone", count(native, "event")),
                    ),
                ],
            };
            let seek = Seek {
                call: "_record_memory_history".into(),
                // Unless one of them is set, stacks are recorded.
                arguments: [("context", "all"), ("stacks", "python"), ("record_context", "")]
                    .map(|(name, default)| (name.into(), default.into()))
                    .to_vec(),
                label: "the one call here that records without Python stacks".into(),
            };
            telling.told(facts, &Self::META, worth).seeking(Some(seek))
        };
        let claim = Claim::new(&Self::META, [], Mending::default(), told);
        vec![claim.sure(Confidence::High)]
    }
}
