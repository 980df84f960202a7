//! Sparse gradients that nothing clears: they grow.
//!
//! In: buffers that backward passes join to ever larger ones. Out: a claim about those that are gradients and outlive steps of an optimizer. Autograd adds one sparse gradient to another by joining their
//! rows (`torch/csrc/autograd/functions/accumulate_grad.h`), and setting one to zero drops its rows: so what grows over steps was not cleared, whatever
//! `zero_grad` was called. What it would be with a `zero_grad` is the rows of one backward pass, as many as the first had.

use super::{MissingZeroGrad, after, entered_before, step_line, updates, zero_grads};
use crate::facts::{Facts, Reallocation};
use crate::finding::{Finding, Quantity};
use crate::lives::{Change, Changes};
use crate::program::Step;
use crate::role::Role;
use crate::rules::claim::{Claim, Mending, Telling, Worth};
use crate::rules::measure;
use crate::unit::{AllocationId, Confidence, EventIndex, Index, count};

/// A claim for each line whose backward passes add to sparse gradients.
pub(super) fn claims<'f>(facts: &'f Facts<'f>) -> impl Iterator<Item = Claim<'f>> {
    facts.reallocations().iter().filter(|one| are_gradients(facts, one)).filter_map(|one| claim(facts, one))
}

/// Whether most of what is joined at last is a gradient.
fn are_gradients(facts: &Facts, one: &Reallocation) -> bool {
    let last: Vec<AllocationId> = one.chains.iter().filter_map(|chain| chain.last().copied()).collect();
    let gradients: Vec<AllocationId> =
        last.iter().copied().filter(|id| facts.role(*id) == Role::Gradient).collect();
    one.by_engine && facts.bytes(&gradients).times(2) > facts.bytes(&last)
}

fn claim<'f>(facts: &'f Facts<'f>, one: &'f Reallocation) -> Option<Claim<'f>> {
    let versions = || one.chains.iter().flatten().copied();
    let first = versions().filter_map(|id| facts.timeline.allocation(id)?.alloc).min()?;
    let last = versions().filter_map(|id| facts.timeline.allocation(id)?.alloc).max()?;
    let steps: Vec<Step> =
        after(facts.updates(), first).into_iter().filter(|step| step.start < last).collect();
    // Micro-batches of one step are meant to be added up.
    if steps.len() < 2 {
        return None;
    }
    let mending = Mending { reserved: one.holes(facts), ..Mending::lives(as_large_as_the_first(facts, one)) };
    let told = move |worth: &Worth| tell(facts, one, &steps, worth);
    let mut claim = Claim::new(&MissingZeroGrad::META, versions(), mending, told).holding(one.last);
    claim.pace = one.pace(facts);
    Some(claim.sure(if one.joins { Confidence::High } else { Confidence::Medium }))
}

/// The lifetimes as they would be: the first version stands for those of all iterations.
fn as_large_as_the_first(facts: &Facts, one: &Reallocation) -> Changes {
    let mut changes = Changes::default();
    for chain in &one.chains {
        let end = chain.last().and_then(|last| facts.timeline.allocation(*last)?.given_back());
        let end = end.or_else(|| EventIndex::at(facts.trace.events.len().saturating_sub(1)));
        for (at, version) in chain.iter().enumerate() {
            match end.filter(|_| at == 0) {
                Some(end) => changes.set(*version, Change::EndAt(end)),
                None => changes.set(*version, Change::Remove),
            }
        }
    }
    changes
}

fn tell(facts: &Facts, one: &Reallocation, steps: &[Step], worth: &Worth) -> Finding {
    let versions = || one.chains.iter().flatten().copied();
    let first = steps.first().map(|step| step.start);
    let zeroed = first.map_or(0, |first| after(&facts.program.zero_grads, first).len());
    let tensors = count(one.chains.len(), "tensor");
    let place = entered_before(facts, versions());
    let help = match zeroed {
        0 => "clear them once per step, directly after it: optimizer.zero_grad(set_to_none=True)",
        _ => {
            "call zero_grad(set_to_none=True) on the optimizer of these as well: what is called leaves them as they are"
        }
    };
    let telling = Telling {
        message: format!("sparse gradients are never cleared: {tensors} up to {}", one.last),
        help: help.to_owned(),
        label: "each backward pass joins its rows to those of all before".to_owned(),
        related: step_line(facts, steps, zeroed, &place).into_iter().collect(),
        evidence: vec![
            measure(
                "versions",
                Quantity::Count(one.versions as u64),
                format!("{} sizes in a row, each larger", one.versions),
            ),
            measure("tensors", Quantity::Count(one.chains.len() as u64), String::new()),
            measure(
                "optimizer-steps",
                Quantity::Count(steps.len() as u64),
                format!("{} meanwhile, {}", updates(facts, steps.len()), zero_grads(zeroed)),
            ),
            measure("zero-grad-calls", Quantity::Count(zeroed as u64), String::new()),
        ],
        place,
    };
    telling.told(facts, &MissingZeroGrad::META, worth)
}
