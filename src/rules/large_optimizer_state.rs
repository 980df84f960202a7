//! Advice: the optimizer's state makes a good part of the peak.

use super::{declare_rule, measure, responsible, shown};
use crate::facts::{Changes, Facts};
use crate::finding::{Finding, Impact, Value};
use crate::program::Phase;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// The optimizer's state makes a good part of the peak.
    LargeOptimizerState = "large-optimizer-state", Advice, Info,
    needs: [History, Stacks, Optimizer],
    summary: "the optimizer's state makes a good part of the peak",
}

/// The share of the peak that the state has to make.
const SHARE: f64 = 0.25;
/// Of four bytes one stays: 8 bits instead of 32 (Dettmers et al. 2022, "8-bit Optimizers via Block-wise Quantization"; the
/// scales of its blocks add less than a percent).
const KEPT_PART: u64 = 4;

impl LargeOptimizerState {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let state = facts.at_steady_peak(Role::OptimizerState);
        let bytes = facts.bytes(&state);
        if bytes.share_of(facts.steady().peak) < SHARE {
            return Vec::new();
        }
        vec![report(facts, &state, bytes)]
    }
}

/// State stays from the first step on, so the peak falls by what the state loses, until the moment before the first step
/// is the highest.
fn saving(facts: &Facts, bytes: Bytes) -> Bytes {
    let without = Changes::removing(facts.with_role(Role::OptimizerState).map(|(id, _)| id));
    let lost = bytes - Bytes(bytes.get() / KEPT_PART);
    lost.min(without.saving(facts.timeline))
}

fn report(facts: &Facts, state: &[AllocationId], bytes: Bytes) -> Finding {
    let share = bytes.share_of(facts.steady().peak);
    let message = format!("optimizer state is {bytes}, {} of the peak", percent(share));
    let help = "if memory is what limits you, keep the state in 8 bits, for example:\n  optimizer = \
                bitsandbytes.optim.AdamW8bit(model.parameters(), lr=lr)";
    let mut finding = LargeOptimizerState::META.finding(facts, message, help);
    let guilty = facts.guilty(state.iter().copied());
    finding.location = responsible(facts, &guilty);
    "the state is made here, in the first step".clone_into(&mut finding.label);
    finding.stack = guilty.first().map(|one| shown(facts, one.stack)).unwrap_or_default();
    finding.phase = Phase::OptimizerStep;
    finding.confidence = Confidence::Low;
    let parameters: Bytes = facts.bytes(&facts.at_steady_peak(Role::Parameter));
    finding.evidence = vec![
        measure(
            "state",
            Value::Bytes(bytes),
            format!("{bytes} in {}", count(state.len(), "tensor of state")),
        ),
        measure("parameters", Value::Bytes(parameters), format!("{parameters} of parameters")),
        measure(
            "assumption",
            Value::Text("float32".to_owned()),
            "estimate: if the state is float32 now, which a recording does not tell".to_owned(),
        ),
    ];
    finding.impact = Impact { peak: Some(saving(facts, bytes)), ..Impact::default() };
    finding
}
