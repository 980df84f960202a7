//! CUDA graphs that each hold a memory pool of their own.

use super::claim::{Claim, Mending, Place, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, Guilty, PrivatePool};
use crate::finding::{Finding, Measure, Value};
use crate::unit::{Bytes, Confidence, Index, count, percent};

declare_rule! {
    /// Several CUDA graphs hold a private pool each where one shared pool would do.
    PrivatePoolWaste = "private-pool-waste", Allocator, Warning,
    needs: [History],
    summary: "several CUDA graphs hold a memory pool each instead of sharing one",
}

impl PrivatePoolWaste {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        // A handle that the program asked for, (0, n), is shared or kept apart on purpose.
        let mut pools = facts.private_pools();
        pools.retain(|pool| pool.id.1 == 0);
        if pools.len() < 2 {
            return Vec::new();
        }
        let held: Bytes = pools.iter().map(|pool| pool.reserved).sum();
        let waste = held - shared(&pools);
        let told = move |worth: &Worth| tell(facts, &pools, worth);
        let claim = Claim::new(&Self::META, [], Mending::reserved(waste), told).out_of(held);
        vec![claim.sure(Confidence::High)]
    }
}

fn tell(facts: &Facts, pools: &[PrivatePool], worth: &Worth) -> Finding {
    let (held, shared) = (pools.iter().map(|pool| pool.reserved).sum::<Bytes>(), shared(pools));
    let guilty = guilty(facts, pools);
    let blamed = facts.blame().common(&guilty);
    let through = |one: &&Guilty| blamed.is_some_and(|frame| facts.frames.python(one.stack).contains(&frame));
    let example = guilty.iter().find(through);
    let place = blamed.map_or(Place::Nowhere, |frame| {
        Place::At(frame, example.map(|one| one.stack), example.and_then(|one| one.event))
    });
    let telling = Telling {
        message: format!(
            "{} of CUDA graphs hold {held}, one shared would hold {shared}",
            count(pools.len(), "pool")
        ),
        help:
            "capture every graph into the first one's pool: `with torch.cuda.graph(g, pool=first.pool()):`, \
               largest shape first"
                .to_owned(),
        place,
        label: "each capture takes its memory from a new private pool".to_owned(),
        related: Vec::new(),
        evidence: evidence(pools, held, shared),
    };
    telling.told(facts, &PrivatePoolWaste::META, worth)
}

/// What one pool for all of them would hold: the outputs of each, and the scratch memory of the largest once.
fn shared(pools: &[PrivatePool]) -> Bytes {
    let outputs: Bytes = pools.iter().map(|pool| pool.kept).sum();
    let scratch = pools.iter().map(|pool| pool.reserved - pool.kept).max().unwrap_or_default();
    outputs + scratch
}

/// What was allocated from the pools; where that was before the recording, the stacks of their segments.
fn guilty(facts: &Facts, pools: &[PrivatePool]) -> Vec<Guilty> {
    let allocated = facts.guilty(pools.iter().flat_map(|pool| pool.allocations.iter().copied()));
    if !allocated.is_empty() {
        return allocated;
    }
    let segments = facts.snapshot.segments_of(facts.device.position());
    let own = segments.filter(|segment| pools.iter().any(|pool| pool.id == segment.pool));
    own.filter_map(|segment| {
        Some(Guilty { stack: segment.stack?, event: None, weight: segment.total_size.get() })
    })
    .collect()
}

fn evidence(pools: &[PrivatePool], held: Bytes, shared: Bytes) -> Vec<Measure> {
    let largest = pools.iter().map(|pool| pool.reserved).max().unwrap_or_default();
    let used: Bytes = pools.iter().map(|pool| pool.peak).sum();
    let waste = held - shared;
    vec![
        measure("pools", Value::Count(pools.len() as u64), String::new()),
        measure("pools-reserved", Value::Bytes(held), format!("the largest pool alone holds {largest}")),
        measure("largest-pool", Value::Bytes(largest), String::new()),
        measure(
            "pools-in-use",
            Value::Bytes(used),
            format!("{} of what they hold was ever in use", percent(used.share_of(held))),
        ),
        measure("shared", Value::Bytes(shared), String::new()),
        measure(
            "not-shared",
            Value::Bytes(waste),
            format!("{} would be shared", percent(waste.share_of(held))),
        ),
    ]
}
