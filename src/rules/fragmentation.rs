//! Reserved memory far above what was ever in use.

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::trial::{GROWING, tried};
use super::{declare_rule, measure};
use crate::facts::{Facts, GuiltyStack, PoolPeaks, Trials};
use crate::finding::{Finding, Measure, Quantity, Related};
use crate::unit::{Bytes, Confidence, count, percent};

declare_rule! {
    /// Reserved memory is far larger than what was ever in use, because free blocks do not fit.
    Fragmentation = "fragmentation", Allocator, Warning,
    needs: [History, Segments],
    summary: "reserved memory is far larger than what was ever in use",
}

impl Fragmentation {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let pool = facts.default_pool();
        // What was held before the recording may have been in use then: it is given the benefit of the doubt.
        let unused = pool.reserved - pool.active.max(pool.held_before);
        let told = move |worth: &Worth| tell(facts, pool, unused, worth);
        let claim = Claim::new(&Self::META, [], Mending::reserved(unused), told);
        vec![claim.out_of(pool.reserved).sure(Confidence::High)]
    }
}

fn tell(facts: &Facts, pool: PoolPeaks, unused: Bytes, worth: &Worth) -> Finding {
    let share = percent(unused.share_of(pool.reserved));
    // What would have become of a program that failed, nobody knows.
    let trials = facts.trials().filter(|_| facts.replay.failure.is_none());
    let place = Anchor::of_guilty(facts, &misses(facts), false);
    let telling = Telling {
        message: format!("{unused} of {} reserved are holes ({share})", pool.reserved),
        help: help(trials),
        label: "these requests fit into none of the free blocks".to_owned(),
        related: outgrown(facts, &place),
        evidence: evidence(facts, pool, unused)
            .into_iter()
            .chain(trials.into_iter().flat_map(tried))
            .collect(),
        place,
    };
    let mut finding = telling.told(facts, &Fragmentation::META, worth);
    // No more than the best setting was seen to save; where none helps, requests that are alike may still fill the holes.
    finding.impact.reserved = trials.and_then(Trials::least_reserved).map(|(_, saved)| saved);
    finding
}

/// What the replay shows to help most; where it cannot tell, what helps under any settings.
fn help(trials: Option<&Trials>) -> String {
    let alike = "make the requests alike: pad to a few fixed lengths, or allocate a growing buffer once at its final size";
    match trials.and_then(Trials::least_reserved) {
        None => alike.to_owned(),
        Some((best, _)) if best.conf() == GROWING => {
            format!("let segments grow: PYTORCH_CUDA_ALLOC_CONF={GROWING}")
        }
        Some((best, _)) => format!("set PYTORCH_CUDA_ALLOC_CONF={}, or {alike}", best.conf()),
    }
}

/// The buffers that leave holes because they are re-allocated ever larger.
fn outgrown(facts: &Facts, place: &Anchor) -> Vec<Related> {
    let message = "a cause: a buffer re-allocated ever larger (growing-reallocation)";
    let sites = facts.reallocations().iter().map(|one| Some(one.site));
    sites.filter_map(|site| related(facts, site, place, message)).collect()
}

/// The requests that made the allocator ask the driver although enough lay free, weighed by what they cost.
fn misses(facts: &Facts) -> Vec<GuiltyStack> {
    let one = |miss: &crate::replay::Miss| {
        let stack = facts.seen_stack(miss.event)?;
        Some(GuiltyStack { stack, event: None, weight: miss.segment.min(miss.free).get() })
    };
    facts.replay.misses.iter().filter_map(one).collect()
}

fn evidence(facts: &Facts, pool: PoolPeaks, unused: Bytes) -> Vec<Measure> {
    let PoolPeaks { reserved, active, .. } = pool;
    let misses = facts.replay.misses.len();
    vec![
        measure("reserved-peak", Quantity::Bytes(reserved), format!("at most {reserved} reserved")),
        measure(
            "in-use-peak",
            Quantity::Bytes(active),
            format!("at most {active} in use, whole blocks counted"),
        ),
        measure("holes", Quantity::Bytes(unused), String::new()),
        measure("holes-share", Quantity::Ratio(unused.share_of(reserved)), String::new()),
        measure(
            "misses",
            Quantity::Count(misses as u64),
            format!("{} although enough lay free in smaller pieces", count(misses, "driver call")),
        ),
    ]
}
