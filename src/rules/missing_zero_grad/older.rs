//! Gradients of before the recording that nothing in it clears.
//!
//! In: backward passes that a step follows. Out: a claim about what they add to. One pass is enough: where every tensor of a parameter's size that a backward pass makes dies in it, the parameters had gradients already. That these are
//! meant to be there cannot be excluded (the last of several micro-batches, zeroed in place by hand), so it is never sure. Where others are cleared, a
//! pass could as well compute with tensors of the sizes of frozen weights: then PyTorch has to be seen to add, before a call of `zero_grad` and
//! after it, each time with a step.

use std::collections::{BTreeMap, BTreeSet};

use super::{Anchor, entered_before, step_line};
use crate::facts::{Facts, OlderGradients};
use crate::finding::{Excuse, Finding, Quantity, Severity};
use crate::frames::GraphSign;
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

const ACCUMULATED_OR_NOT: &str = "clear them once per step, directly after it: optimizer.zero_grad(set_to_none=True); if they are \
                                  accumulated on purpose, record a whole iteration";

/// The one claim that can be made of gradients whose making was not recorded.
pub(super) fn claim<'f>(facts: &'f Facts<'f>) -> Option<Claim<'f>> {
    let older = older(facts)?;
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

/// Tensors that are added to older ones, by size and the step that follows.
type Added = BTreeMap<(Bytes, usize), Vec<AllocationId>>;

fn older(facts: &Facts) -> Option<Older> {
    let older = facts.older_gradients();
    let OlderGradients { standing, dropped, handed_over } = older;
    let beside_cleared = !handed_over.is_empty() || !facts.program.zero_grads.is_empty();
    let seen: Added;
    let added = if beside_cleared {
        seen = seen_over_a_clearing(facts, older);
        &seen
    } else {
        dropped
    };
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
    // A single one is rather a library's workspace, unless it is seen to be added to.
    let fewest = if beside_cleared { 1 } else { 2 };
    (kept.len() >= fewest).then_some(Older { kept, added })
}

/// What PyTorch is seen to add, of sizes of which it does so before a step and a `zero_grad`, and before another step after these, and never
/// hands over a new gradient (as the first of several micro-batches does).
fn seen_over_a_clearing(facts: &Facts, older: &OlderGradients) -> Added {
    let (steps, clearings) = (&facts.program.steps, &facts.program.zero_grads);
    let is_seen = |id: &AllocationId| {
        if !facts.timeline.frees_have_stacks() {
            return false;
        }
        let freed = facts.timeline.allocation(*id).and_then(|one| one.free_requested.or(one.free));
        let stack = freed.and_then(|freed| facts.trace.event(freed)?.stack);
        let frames = stack.map_or(&[][..], |stack| facts.snapshot.stacks.get(stack));
        frames.iter().any(|frame| facts.frames.graph(*frame) == GraphSign::Accumulates)
    };
    let seen = |(key, ids): (&(Bytes, usize), &Vec<AllocationId>)| {
        let ids: Vec<AllocationId> = ids.iter().copied().filter(is_seen).collect();
        (!ids.is_empty() && !older.handed_over.contains(&key.0)).then_some((*key, ids))
    };
    let mut seen: Added = older.dropped.iter().filter_map(seen).collect();
    let is_over_a_clearing = |bytes: &Bytes| {
        let mut added =
            seen.range((*bytes, 0)..=(*bytes, usize::MAX)).filter_map(|((_, step), _)| steps.get(*step));
        let Some((first, last)) = added.next().zip(added.next_back()) else { return false };
        let next = clearings.partition_point(|clearing| clearing.start < first.end);
        clearings.get(next).is_some_and(|clearing| clearing.start < last.start)
    };
    let sizes: BTreeSet<Bytes> = seen.keys().map(|(bytes, _)| *bytes).collect();
    let sizes: BTreeSet<Bytes> = sizes.into_iter().filter(is_over_a_clearing).collect();
    seen.retain(|(bytes, _), _| sizes.contains(bytes));
    seen
}

fn tell(facts: &Facts, older: &Older, worth: &Worth) -> Finding {
    let bytes = facts.bytes(&older.kept);
    let tensors = count(older.kept.len(), "tensor");
    let steps = &facts.program.steps;
    let zeroed = facts.program.zero_grads.len();
    let (help, calls) = if zeroed == 0 {
        (ACCUMULATED_OR_NOT, "not one zero_grad".to_owned())
    } else {
        (super::NOT_IN_OPTIMIZER, format!("{} of zero_grad, which clear others", count(zeroed, "call")))
    };
    let added = older.added.iter().map(|(id, _)| *id);
    let place: Anchor = entered_before(facts, added);
    let telling = Telling {
        message: format!("gradients from before the recording are never cleared ({bytes}, {tensors})"),
        help: help.to_owned(),
        label: "adds to gradients that were there before".to_owned(),
        related: step_line(facts, steps, zeroed, &place).into_iter().collect(),
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
                format!("{}, {calls}", count(steps.len(), "optimizer step")),
            ),
        ],
        place,
    };
    let excuse = (zeroed == 0).then_some(Excuse::ZeroesInPlace);
    telling.told(facts, &super::MissingZeroGrad::META, worth).excused_by(excuse)
}
