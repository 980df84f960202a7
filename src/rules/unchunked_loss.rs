//! Advice: the loss over all outputs at once makes a good part of the peak.

use std::collections::BTreeSet;

use super::{declare_rule, measure, responsible, shown};
use crate::facts::{Changes, Facts, Maker};
use crate::finding::{Finding, Impact, Value};
use crate::program::Phase;
use crate::unit::{AllocationId, Bytes, Confidence, Index, count};

declare_rule! {
    /// The loss over all outputs at once makes a good part of the peak.
    UnchunkedLoss = "unchunked-loss", Advice, Info,
    needs: [History, Stacks, Iterations],
    summary: "the loss over all outputs at once makes a good part of the peak",
}

/// The part of the peak from which a single tensor of the loss counts.
const LARGE: f64 = 0.05;
/// The share of the peak that has to be saved.
const SAVED: f64 = 0.1;
/// Into how many pieces the estimate cuts the loss. More save little more.
const PIECES: u64 = 8;

impl UnchunkedLoss {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let makers = facts.makers();
        let large = facts.steady().peak.get() as f64 * LARGE;
        let by_loss = |id: AllocationId| {
            let one = facts.timeline.allocation(id)?;
            let made = one.stack.and_then(|stack| makers.get(stack.position()).copied().flatten());
            (made == Some(Maker::Loss) && facts.born_in(one).is_some()).then_some(one.bytes)
        };
        let sizes: BTreeSet<Bytes> = facts
            .timeline
            .iter()
            .filter(|(_, one)| one.bytes.get() as f64 >= large)
            .filter_map(|(id, _)| by_loss(id))
            .collect();
        if sizes.is_empty() {
            return Vec::new();
        }
        let alike = alike(facts, &sizes);
        let without = Changes::removing(alike.iter().copied());
        let all = without.saving(facts.timeline);
        let saved = all - Bytes(all.get() / PIECES);
        let made: Vec<AllocationId> = alike.into_iter().filter(|id| by_loss(*id).is_some()).collect();
        if saved.share_of(facts.peak()) < SAVED {
            return Vec::new();
        }
        vec![report(facts, &made, &sizes, saved)]
    }
}

/// What the loop makes in the sizes of the loss, and in half of them: the outputs in their own precision, and the
/// gradients of both.
fn alike(facts: &Facts, sizes: &BTreeSet<Bytes>) -> Vec<AllocationId> {
    let fits = |bytes: Bytes| sizes.contains(&bytes) || sizes.contains(&bytes.times(2));
    facts
        .timeline
        .iter()
        .filter(|(_, one)| fits(one.bytes) && facts.born_in(one).is_some())
        .filter(|(_, one)| {
            one.alloc.is_some_and(|at| matches!(facts.phase(at), Phase::Forward | Phase::Backward))
        })
        .map(|(id, _)| id)
        .collect()
}

fn report(facts: &Facts, made: &[AllocationId], sizes: &BTreeSet<Bytes>, saved: Bytes) -> Finding {
    let largest = sizes.last().copied().unwrap_or_default();
    let message = format!("the loss works on {largest} of outputs at once");
    let help = "if memory is what limits you, take the loss in pieces that are recomputed in the backward pass:\n  for h, y in \
                zip(hidden.chunk(8), labels.chunk(8)): loss = loss + checkpoint(head_and_loss, h, y, use_reentrant=False)";
    let mut finding = UnchunkedLoss::META.finding(facts, message, help);
    let guilty = facts.guilty(made.iter().copied());
    finding.location = responsible(facts, &guilty);
    finding.label = format!("{} of this size over the recording", count(made.len(), "tensor"));
    finding.stack = guilty.first().map(|one| shown(facts, one.stack)).unwrap_or_default();
    finding.phase = Phase::Forward;
    finding.confidence = Confidence::Low;
    finding.evidence = vec![
        measure("largest", Value::Bytes(largest), format!("the largest tensor of the loss holds {largest}")),
        measure(
            "pieces",
            Value::Count(PIECES),
            format!("estimate: outputs, loss and their gradients in {PIECES} pieces"),
        ),
    ];
    finding.impact = Impact { peak: Some(saved), ..Impact::default() };
    finding
}
