//! Gradients of before the recording that nothing in it clears.
//!
//! In: backward passes that a step follows. Out: a claim about what they add to. One pass is enough: where every tensor of a parameter's size that a backward pass makes dies in it, the parameters had gradients already. That these are
//! meant to be there cannot be excluded (the last of several micro-batches, zeroed in place by hand), so it is never sure.

use std::collections::BTreeMap;

use super::{Anchor, entered_before, step_line};
use crate::facts::{Facts, OlderGradients};
use crate::finding::{Excuse, Finding, Quantity, Severity};
use crate::lives::{Change, Changes};
use crate::program::Step;
use crate::rules::claim::{Besides, Claim, Mending, Telling, Worth};
use crate::rules::measure;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index, count};

/// What stands in the recording from its first event to its last, and what is added to it.
struct Older {
    kept: Vec<AllocationId>,
    /// The tensors that backward passes add to these, each with the step that follows.
    added: Vec<(AllocationId, Step)>,
}

/// The one claim that can be made of gradients whose making was not recorded.
pub(super) fn claim<'f>(facts: &'f Facts<'f>) -> Option<Claim<'f>> {
    let older = older(facts).filter(|_| facts.program.zero_grads.is_empty())?;
    let mut mended = Changes::removing(older.kept.iter().copied());
    for (id, step) in &older.added {
        if let Some(end) = EventIndex::at(step.end.position().saturating_sub(1)) {
            mended.set(*id, Change::EndAt(end));
        }
    }
    let about = older.kept.clone();
    let bytes = facts.bytes(&about);
    let told = move |worth: &Worth| tell(facts, &older, worth);
    let claim = Claim::new(&super::MissingZeroGrad::META, about, Mending::lives(mended), told);
    // Without annotations a zero_grad that zeroes in place leaves no trace.
    let at_most = if facts.calls.annotated { Severity::Warning } else { Severity::Info };
    Some(claim.holding(bytes).sure(Confidence::Low).at_most(at_most))
}

fn older(facts: &Facts) -> Option<Older> {
    let OlderGradients { standing, dropped: added, handed_over } = facts.older_gradients();
    if !handed_over.is_empty() {
        return None;
    }
    let steps = &facts.program.steps;
    let mut most: BTreeMap<Bytes, usize> = BTreeMap::new();
    for ((bytes, _), ids) in added {
        let many = most.entry(*bytes).or_default();
        *many = ids.len().max(*many);
    }
    // A gradient has a parameter beside it.
    let kept = most.iter().flat_map(|(bytes, many)| {
        let blocks = standing.get(bytes).map_or(&[][..], Vec::as_slice);
        blocks.iter().take((*many).min(blocks.len() / 2)).copied()
    });
    let kept: Vec<AllocationId> = kept.collect();
    let with_step = |((_, step), ids): (&(Bytes, usize), &Vec<AllocationId>)| {
        let step = steps.get(*step).copied();
        ids.iter().filter_map(|id| Some((*id, step?))).collect::<Vec<_>>()
    };
    let added = added.iter().flat_map(with_step).collect();
    // A single one is rather a library's workspace.
    (kept.len() >= 2).then_some(Older { kept, added })
}

fn tell(facts: &Facts, older: &Older, worth: &Worth) -> Finding {
    let bytes = facts.bytes(&older.kept);
    let tensors = count(older.kept.len(), "tensor");
    let steps = &facts.program.steps;
    let added = older.added.iter().map(|(id, _)| *id);
    let place: Anchor = entered_before(facts, added);
    let telling = Telling {
        message: format!("gradients from before the recording are never cleared ({bytes}, {tensors})"),
        help:
            "clear them once per step, directly after it: optimizer.zero_grad(set_to_none=True); if they are \
               accumulated on purpose, record a whole iteration"
                .to_owned(),
        label: "adds to gradients that were there before".to_owned(),
        related: step_line(facts, steps, 0, &place).into_iter().collect(),
        evidence: vec![
            measure(
                "tensors",
                Quantity::Count(older.kept.len() as u64),
                format!("{tensors} from the first event to the last step"),
            ),
            measure(
                "added",
                Quantity::Count(older.added.len() as u64),
                format!("{} added to older ones and dropped", count(older.added.len(), "new gradient")),
            ),
            measure(
                "optimizer-steps",
                Quantity::Count(steps.len() as u64),
                format!("{}, not one zero_grad", count(steps.len(), "optimizer step")),
            ),
        ],
        place,
    };
    telling.told(facts, &super::MissingZeroGrad::META, worth).excused_by(Some(Excuse::ZeroesInPlace))
}
