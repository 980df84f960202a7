//! Advice: the loss over all outputs at once makes a good part of the peak.

use std::collections::BTreeSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, Maker};
use crate::finding::{Finding, Quantity};
use crate::lives::Changes;
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, Index, count};

declare_rule! {
    /// The loss over all outputs at once makes a good part of the peak.
    UnchunkedLoss = "unchunked-loss", Advice, Info,
    needs: [History, Stacks, Iterations],
    summary: "the loss over all outputs at once makes a good part of the peak",
}

/// The part of the peak from which a single tensor of the loss counts.
static LARGE: Threshold<f64> = Threshold::new("rules::unchunked_loss::LARGE", 0.05);
/// Into how many pieces the estimate cuts the loss. More save little more.
static PIECES: Threshold<u64> = Threshold::new("rules::unchunked_loss::PIECES", 8);

impl UnchunkedLoss {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let makers = facts.makers();
        let large = facts.steady().peak.get() as f64 * LARGE.get();
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
        let all = Changes::removing(alike.iter().copied()).saving(facts.timeline);
        let saved = all - Bytes(all.get() / PIECES.get());
        let made: Vec<AllocationId> = alike.into_iter().filter(|id| by_loss(*id).is_some()).collect();
        let told = move |worth: &Worth| tell(facts, &made, &sizes, worth);
        let claim = Claim::new(&Self::META, [], Mending::estimate(saved), told);
        vec![claim.sure(Confidence::Low)]
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

fn tell(facts: &Facts, made: &[AllocationId], sizes: &BTreeSet<Bytes>, worth: &Worth) -> Finding {
    let largest = sizes.last().copied().unwrap_or_default();
    let telling = Telling {
        message: format!("the loss works on {largest} of outputs at once"),
        help: "if memory is what limits you, take the loss in pieces that are recomputed in the backward pass:\n  for h, y in \
               zip(hidden.chunk(8), labels.chunk(8)): loss = loss + checkpoint(head_and_loss, h, y, use_reentrant=False)"
            .to_owned(),
        place: Anchor::responsible(facts, made, false),
        label: format!("{} of this size over the recording", count(made.len(), "tensor")),
        related: Vec::new(),
        evidence: vec![
            measure("largest", Quantity::Bytes(largest), format!("the largest tensor of the loss holds {largest}")),
            measure(
                "pieces",
                Quantity::Count(PIECES.get()),
                format!("estimate: outputs, loss and their gradients in {} pieces", PIECES.get()),
            ),
        ],
    };
    telling.told(facts, &UnchunkedLoss::META, worth)
}
