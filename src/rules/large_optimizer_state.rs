//! Advice: the optimizer's state makes a good part of the peak.

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Quantity};
use crate::lives::Changes;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// The optimizer's state makes a good part of the peak.
    LargeOptimizerState = "large-optimizer-state", Advice, Info,
    needs: [History, Stacks, Optimizer],
    summary: "the optimizer's state makes a good part of the peak",
}

/// The share of the peak that the state has to make.
static SHARE: Threshold<f64> = Threshold::new("rules::large_optimizer_state::SHARE", 0.25);
/// Of four bytes one stays: 8 bits instead of 32 (Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization"; the
/// scales of its blocks add less than a percent).
static KEPT_PART: Threshold<u64> = Threshold::new("rules::large_optimizer_state::KEPT_PART", 4);

impl LargeOptimizerState {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let state = facts.at_steady_peak(Role::OptimizerState);
        let bytes = facts.bytes(&state);
        if bytes.share_of(facts.steady().peak) < SHARE.get() {
            return Vec::new();
        }
        let mending = Mending::estimate(saving(facts, bytes));
        let told = move |worth: &Worth| tell(facts, &state, worth);
        vec![Claim::new(&Self::META, [], mending, told).sure(Confidence::Low)]
    }
}

/// State stays from the first step on, so the peak falls by what the state loses, until the moment before the first step
/// is the highest.
fn saving(facts: &Facts, bytes: Bytes) -> Bytes {
    let without = Changes::removing(facts.with_role(Role::OptimizerState).map(|(id, _)| id));
    let lost = bytes - Bytes(bytes.get() / KEPT_PART.get());
    lost.min(without.saving(facts.timeline))
}

fn tell(facts: &Facts, state: &[AllocationId], worth: &Worth) -> Finding {
    let bytes = facts.bytes(state);
    let share = percent(bytes.share_of(facts.steady().peak));
    let parameters: Bytes = facts.bytes(&facts.at_steady_peak(Role::Parameter));
    let telling = Telling {
        message: format!("optimizer state is {bytes}, {share} of the peak"),
        help: "if memory is what limits you, keep the state in 8 bits, for example:\n  optimizer = \
               bitsandbytes.optim.AdamW8bit(model.parameters(), lr=lr)"
            .to_owned(),
        place: Anchor::responsible(facts, state, false),
        label: "the state is made here, in the first step".to_owned(),
        related: Vec::new(),
        evidence: vec![
            measure(
                "state",
                Quantity::Bytes(bytes),
                format!("{bytes} in {}", count(state.len(), "tensor of state")),
            ),
            measure("parameters", Quantity::Bytes(parameters), format!("{parameters} of parameters")),
            measure(
                "assumption",
                Quantity::Text("float32".to_owned()),
                "estimate: if the state is float32 now, which a recording does not tell".to_owned(),
            ),
        ],
    };
    telling.told(facts, &LargeOptimizerState::META, worth)
}
