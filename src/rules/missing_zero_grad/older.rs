//! Gradients of before the recording that nothing in it clears.
//!
//! In: backward passes that a step follows. Out: a claim about what they add to. PyTorch's `AccumulateGrad` hands a new gradient
//! over to a parameter that has none; to one that has, it adds the new gradient and drops it. So one pass is enough: where
//! every tensor of a parameter's size that a backward pass makes dies in it, the parameters had gradients already. That these are
//! meant to be there cannot be excluded (the last of several micro-batches, zeroed in place by hand), so it is never sure.

use std::collections::BTreeMap;

use super::{Place, entered_before, step_line};
use crate::facts::Facts;
use crate::finding::{Excuse, Finding, Severity, Value};
use crate::lives::{Change, Changes};
use crate::program::{Phase, Step};
use crate::role::Role;
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
    let standing = standing(facts)?;
    let steps = &facts.program.steps;
    let mut added: BTreeMap<(Bytes, usize), Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter().filter(|(_, one)| standing.contains_key(&one.bytes)) {
        let Some(born) = one.alloc.filter(|event| facts.phase(*event) == Phase::Backward) else { continue };
        let following = steps.partition_point(|step| step.start <= born);
        let Some(step) = steps.get(following) else { continue };
        if one.given_back().is_none_or(|event| event >= step.start) {
            // A gradient that was handed over: the parameter had none.
            return None;
        }
        added.entry((one.bytes, following)).or_default().push(id);
    }
    let mut most: BTreeMap<Bytes, usize> = BTreeMap::new();
    for ((bytes, _), ids) in &added {
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

/// By size, what is older than the recording and still there at its end, gradients first. Nothing where more of a size go than come
/// and stay: those are cleared. (An optimizer that binds its state anew gives back as many as it makes.)
fn standing(facts: &Facts) -> Option<BTreeMap<Bytes, Vec<AllocationId>>> {
    let mut standing: BTreeMap<Bytes, Vec<AllocationId>> = BTreeMap::new();
    let mut gone: BTreeMap<Bytes, usize> = BTreeMap::new();
    for (id, one) in facts.timeline.older() {
        match one.given_back() {
            None => standing.entry(one.bytes).or_default().push(id),
            Some(_) => *gone.entry(one.bytes).or_default() += 1,
        }
    }
    for (_, one) in facts.timeline.iter().filter(|(_, one)| one.alloc.is_some() && one.given_back().is_none())
    {
        if let Some(left) = gone.get_mut(&one.bytes) {
            *left = left.saturating_sub(1);
        }
    }
    gone.retain(|_, left| *left > 0);
    standing.retain(|bytes, blocks| blocks.len() >= 2 && !gone.contains_key(bytes));
    for blocks in standing.values_mut() {
        blocks.sort_by_key(|id| match facts.role(*id) {
            Role::Gradient => 0,
            Role::Parameter => 2,
            _ => 1,
        });
    }
    (!standing.is_empty()).then_some(standing)
}

fn tell(facts: &Facts, older: &Older, worth: &Worth) -> Finding {
    let bytes = facts.bytes(&older.kept);
    let tensors = count(older.kept.len(), "tensor");
    let steps = &facts.program.steps;
    let added = older.added.iter().map(|(id, _)| *id);
    let place: Place = entered_before(facts, added);
    let telling = Telling {
        message: format!("gradients of before the recording are never cleared ({bytes}, {tensors})"),
        help:
            "clear them once per step, directly after it: optimizer.zero_grad(set_to_none=True); if they are \
               accumulated on purpose, record a whole iteration"
                .to_owned(),
        label: "adds to gradients that were there before".to_owned(),
        related: step_line(facts, steps, 0, &place).into_iter().collect(),
        evidence: vec![
            measure(
                "tensors",
                Value::Count(older.kept.len() as u64),
                format!("{tensors} from the first event to the last"),
            ),
            measure(
                "added",
                Value::Count(older.added.len() as u64),
                format!("{} added to older ones and dropped", count(older.added.len(), "new gradient")),
            ),
            measure(
                "optimizer-steps",
                Value::Count(steps.len() as u64),
                format!("{}, not one zero_grad", count(steps.len(), "optimizer step")),
            ),
        ],
        place,
    };
    telling.told(facts, &super::MissingZeroGrad::META, worth).excused_by(Some(Excuse::ZeroesInPlace))
}
