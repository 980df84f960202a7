//! Allocations that have another size in each iteration, so that no cached block fits.

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::trial::tried;
use super::{declare_rule, measure};
use crate::facts::{Facts, Shapes, Trials, VaryingSite};
use crate::finding::{Finding, Measure, Quantity, Related, Severity};
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// The same lines allocate another size in each iteration.
    VaryingShapes = "varying-shapes", Allocator, Warning,
    needs: [History, Stacks, Iterations],
    summary: "the same lines allocate another size in each iteration",
}

/// The share of what the loop allocates that has to vary. Programs with varying batches reach 87 to 100 %, others 0 to 5 %.
static SHARE: Threshold<f64> = Threshold::new("rules::varying_shapes::SHARE", 0.5);
impl VaryingShapes {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let shapes = facts.shapes();
        let varying: Bytes = shapes.varying.iter().map(|site| site.bytes).sum();
        let share = varying.share_of(shapes.total);
        if share < SHARE.get() || shapes.varying.is_empty() {
            return Vec::new();
        }
        let pool = facts.default_pool();
        // What was held before the recording may have been in use then: it is given the benefit of the doubt.
        let idle = pool.reserved - pool.active.max(pool.held_before);
        let told = move |worth: &Worth| tell(facts, &shapes, (idle, share), worth);
        // About sizes, not about tensors: a leak may well be among them.
        let claim = Claim::new(&Self::META, [], Mending::reserved(idle), told);
        vec![claim.out_of(pool.reserved).sure(Confidence::High)]
    }
}

fn tell(facts: &Facts, shapes: &Shapes, (idle, share): (Bytes, f64), worth: &Worth) -> Finding {
    let meta = &VaryingShapes::META;
    let Some(heaviest) = shapes.varying.iter().max_by_key(|site| site.sizes.last().copied()) else {
        return Finding::of(meta.name, meta.group, Severity::Info);
    };
    // What would have become of a program that failed, nobody knows.
    let trials = facts.trials().filter(|_| facts.replay.failure.is_none());
    let help = match trials.and_then(Trials::least_reserved) {
        None => "pad batches to a few fixed lengths, so that cached blocks fit again".to_owned(),
        Some((best, _)) => {
            format!("pad batches to a few fixed lengths, or set PYTORCH_CUDA_ALLOC_CONF={}", best.conf())
        }
    };
    let allocations: Vec<AllocationId> =
        shapes.varying.iter().flat_map(|site| site.allocations.iter().copied()).collect();
    let blamed = facts.blame().responsible(&facts.guilty(allocations), false);
    let passes =
        |site: &&VaryingSite| blamed.is_some_and(|frame| facts.frames.python(site.stack).contains(&frame));
    let example = shapes.varying.iter().filter(passes).max_by_key(|site| site.bytes).unwrap_or(heaviest);
    let place = blamed.map_or(Anchor::Nowhere, |frame| Anchor::At(frame, Some(example.stack), None));
    let telling = Telling {
        message: format!(
            "{} of what the loop allocates varies in size from iteration to iteration",
            percent(share)
        ),
        help,
        label: "what this line allocates varies in size".to_owned(),
        related: entry(facts, shapes, &place).into_iter().collect(),
        evidence: evidence(heaviest, idle, share)
            .into_iter()
            .chain(trials.into_iter().flat_map(tried))
            .collect(),
        place,
    };
    telling.told(facts, meta, worth)
}

/// Where the first varying size comes in: usually the batch.
fn entry(facts: &Facts, shapes: &Shapes, place: &Anchor) -> Option<Related> {
    let line = shapes.varying.iter().find_map(|site| facts.site(site.stack));
    related(facts, line, place, "what varies first in an iteration: usually the batch")
}

fn evidence(heaviest: &VaryingSite, idle: Bytes, share: f64) -> Vec<Measure> {
    let smallest = heaviest.sizes.first().copied().unwrap_or_default();
    let largest = heaviest.sizes.last().copied().unwrap_or_default();
    vec![
        measure(
            "share",
            Quantity::Ratio(share),
            format!("{} of the bytes the loop allocates", percent(share)),
        ),
        measure(
            "sizes",
            Quantity::Count(heaviest.sizes.len() as u64),
            format!(
                "{} in {} under one stack",
                count(heaviest.sizes.len(), "different size"),
                count(heaviest.iterations, "iteration")
            ),
        ),
        measure("smallest", Quantity::Bytes(smallest), format!("from {smallest}")),
        measure("largest", Quantity::Bytes(largest), format!("to {largest}")),
        measure("idle", Quantity::Bytes(idle), format!("{idle} reserved beyond what was ever in use")),
    ]
}
