//! Optimizer state that appears in the first step.

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::Quantity;
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Confidence, Index, count, percent};

declare_rule! {
    /// Optimizer state appears in the first step.
    LazyOptimizerInit = "lazy-optimizer-init", Peak, Info,
    needs: [History, Beginning, Optimizer],
    summary: "optimizer state appears in the first step",
}

impl LazyOptimizerInit {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let state = first_state(facts);
        let about: Vec<AllocationId> = state.iter().map(|(id, _)| *id).collect();
        let Some(last) = state.last().and_then(|(_, allocation)| allocation.alloc) else { return Vec::new() };
        let ends = facts.iteration_ends();
        let iteration = facts.iteration_of(last).map(Index::position);
        let followed = iteration.map_or(!ends.is_empty(), |iteration| iteration + 1 < ends.len())
            || facts.program.steps.iter().any(|step| step.start > last);
        if !followed {
            return Vec::new();
        }
        let when = match iteration {
            None | Some(0) => "in the first step".to_owned(),
            Some(later) => format!("only in iteration {}", later + 1),
        };
        let bytes = facts.bytes(&about);
        let share = percent(bytes.share_of(facts.peak()));
        let told = move |worth: &Worth| {
            let tensors = count(about.len(), "tensor");
            let telling = Telling {
                message: format!("optimizer state appears {when} ({bytes}, {tensors})"),
                help: "choose the batch size by a later iteration: one that fits in the first may not fit in the next"
                    .to_owned(),
                place: Anchor::responsible(facts, &about, false),
                label: "the step makes its state here and keeps it".to_owned(),
                related: Vec::new(),
                evidence: vec![
                    measure("state", Quantity::Bytes(bytes), format!("{bytes} of state, {share} of the peak")),
                    measure("tensors", Quantity::Count(about.len() as u64), String::new()),
                ],
            };
            telling.told(facts, &Self::META, worth)
        };
        // News of state, not a fault of it: a fault may well be about the same.
        let claim = Claim::new(&Self::META, [], Mending::default(), told);
        vec![claim.holding(bytes).sure(Confidence::High)]
    }
}

/// The state made by the first iteration that makes any, as far as it stays. What a constructor allocates (Adagrad)
/// is not lazy.
fn first_state<'a>(facts: &Facts<'a>) -> Vec<(AllocationId, &'a Allocation)> {
    let made_in_step = |allocation: &Allocation| {
        allocation.alloc.is_some_and(|event| facts.phase(event) == Phase::OptimizerStep)
            && (allocation.free.is_none() || facts.ends_outlived(allocation) > 0)
    };
    let mut state = facts.with_role(Role::OptimizerState).filter(|(_, one)| made_in_step(one)).peekable();
    let first = state.peek().and_then(|(_, allocation)| facts.born_in(allocation));
    state.filter(|(_, allocation)| facts.born_in(allocation) == first).collect()
}
