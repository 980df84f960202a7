//! Advice: activations make a good part of the peak, and no part of the forward pass is recomputed.

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Quantity};
use crate::lives::{Change, Changes};
use crate::program::Phase;
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index, IterationIndex, count, percent};

declare_rule! {
    /// Activations make a good part of the peak, and nothing is recomputed.
    UncheckpointedActivations = "uncheckpointed-activations", Advice, Info,
    needs: [History, Stacks, Iterations],
    summary: "activations make a good part of the peak, and nothing is recomputed",
}

/// The share of the peak that activations have to make.
static SHARE: Threshold<f64> = Threshold::new("rules::uncheckpointed_activations::SHARE", 0.4);
/// Fewer tensors than this are too few to leave some out.
static LEAST: Threshold<usize> = Threshold::new("rules::uncheckpointed_activations::LEAST", 16);

impl UncheckpointedActivations {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let goes = |id: &AllocationId| facts.timeline.allocation(*id).is_some_and(|one| goes(facts, one));
        let at_peak: Vec<AllocationId> =
            facts.at_steady_peak(Role::Activation).into_iter().filter(goes).collect();
        let share = facts.bytes(&at_peak).share_of(facts.steady().peak);
        if at_peak.len() < LEAST.get()
            || share < SHARE.get()
            || facts.program.phases.contains(&Phase::Recomputation)
        {
            return Vec::new();
        }
        let segment = at_peak.len().isqrt() + usize::from(at_peak.len().isqrt().pow(2) < at_peak.len());
        let (changes, recomputed) = checkpointed(facts, segment);
        let saved = facts.peak() - (changes.peak(facts.timeline) + recomputed);
        let told = move |worth: &Worth| tell(facts, &at_peak, segment, worth);
        let claim = Claim::new(&Self::META, [], Mending::estimate(saved), told);
        vec![claim.sure(Confidence::Low)]
    }
}

/// Whether it goes with its iteration: what somebody keeps is there whoever computes it again.
fn goes(facts: &Facts, one: &Allocation) -> bool {
    facts.ends_held(one) == 0
}

/// What becomes of the activations if each iteration keeps the first of every `segment` of them and makes the others
/// again (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"); and the bytes of the heaviest segment,
/// which is there as a whole while its backward pass runs.
fn checkpointed(facts: &Facts, segment: usize) -> (Changes, Bytes) {
    let mut changes = Changes::default();
    let mut heaviest = Bytes::ZERO;
    let mut current = Bytes::ZERO;
    let mut within: (Option<IterationIndex>, usize) = (None, 0);
    for (id, one) in facts.with_role(Role::Activation) {
        let kept = one.alloc.filter(|event| facts.phase(*event) == Phase::Forward);
        let given_back = one.free.is_none_or(|event| facts.phase(event) != Phase::Forward);
        let Some(born) = kept.filter(|_| given_back && goes(facts, one)) else { continue };
        let iteration = facts.born_in(one);
        if within.0 != iteration {
            within = (iteration, 0);
        }
        let first = within.1.is_multiple_of(segment);
        within.1 += 1;
        current = if first { one.bytes } else { current + one.bytes };
        heaviest = heaviest.max(current);
        if !first {
            changes.set(id, Change::EndAt(shortly_after(facts, born)));
        }
    }
    (changes, heaviest)
}

/// When the next layer has read what was made at an event: at the next allocation.
fn shortly_after(facts: &Facts, born: EventIndex) -> EventIndex {
    facts.event(born.position() + 1).unwrap_or(born)
}

fn tell(facts: &Facts, at_peak: &[AllocationId], segment: usize, worth: &Worth) -> Finding {
    let bytes = facts.bytes(at_peak);
    let share = percent(bytes.share_of(facts.steady().peak));
    let telling = Telling {
        message: format!("activations are {bytes}, {share} of the peak, and none is recomputed"),
        help: "if memory is what limits you, recompute the repeated blocks in the backward pass:\n  x = \
               torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"
            .to_owned(),
        place: Anchor::responsible(facts, at_peak, false),
        label: format!("{} made under this line", count(at_peak.len(), "activation")),
        related: Vec::new(),
        evidence: vec![
            measure(
                "activations",
                Quantity::Bytes(bytes),
                format!("{bytes} in {} at the peak", count(at_peak.len(), "activation")),
            ),
            measure(
                "segment",
                Quantity::Count(segment as u64),
                format!(
                    "estimate: one in {segment} kept, the others made again, for some third more computing"
                ),
            ),
        ],
    };
    telling.told(facts, &UncheckpointedActivations::META, worth)
}
