//! Optimizer state that appears in the first step.

use super::{declare_rule, measure, place, shown};
use crate::facts::Facts;
use crate::finding::{Finding, Impact, Value};
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, Index, count, percent};

declare_rule! {
    /// Optimizer state appears in the first step.
    LazyOptimizerInit = "lazy-optimizer-init", Peak, Info,
    needs: [History, Beginning, Optimizer],
    summary: "optimizer state appears in the first step",
}

/// The share of the peak from which state is worth a note.
const SHARE: f64 = 0.005;

impl LazyOptimizerInit {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let state = first_state(facts);
        let bytes: Bytes = state.iter().map(|(_, allocation)| allocation.bytes).sum();
        let Some(last) = state.last().and_then(|(_, allocation)| allocation.alloc) else { return Vec::new() };
        let ends = facts.iteration_ends();
        let iteration = facts.iteration_of(last).map(Index::position);
        let followed = iteration.map_or(!ends.is_empty(), |iteration| iteration + 1 < ends.len())
            || facts.program.steps.iter().any(|step| step.start > last);
        let share = bytes.share_of(facts.peak());
        if !followed || share < SHARE {
            return Vec::new();
        }
        let when = match iteration {
            None | Some(0) => "in the first step".to_owned(),
            Some(later) => format!("only in iteration {}", later + 1),
        };
        let message = format!("optimizer state appears {when} ({bytes}, {})", count(state.len(), "tensor"));
        let help =
            "choose the batch size by an iteration after this one: the first fits where the next may not";
        let mut finding = Self::META.finding(facts, message, help);
        finding.confidence = Confidence::High;
        finding.phase = Phase::OptimizerStep;
        let guilty = facts.guilty(state.iter().map(|(id, _)| *id));
        let blamed = facts.blame().narrowest(&guilty).or_else(|| facts.site(guilty.first()?.stack));
        finding.location = blamed.and_then(|frame| place(facts, frame));
        "the step makes its state here and keeps it".clone_into(&mut finding.label);
        finding.stack = guilty.first().map(|one| shown(facts, one.stack)).unwrap_or_default();
        finding.impact = Impact { resident: Some(bytes), ..Impact::default() };
        finding.evidence = vec![
            measure(
                "state",
                Value::Bytes(bytes),
                format!("{bytes} of state, {} of the peak", percent(share)),
            ),
            measure("tensors", Value::Count(state.len() as u64), String::new()),
        ];
        vec![finding]
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
