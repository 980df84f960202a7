//! Memory pools that hold what nothing else can use: of CUDA graphs that each have their own, or of the program's making.

use std::collections::BTreeSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, GuiltyStack, PrivatePool};
use crate::finding::{Finding, Measure, Quantity};
use crate::frames::MemorySign;
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::unit::{Bytes, Confidence, Index, count, percent};

declare_rule! {
    /// Private pools hold more than is needed: several CUDA graphs one each where one would do, or one far more than is in use.
    PrivatePoolWaste = "private-pool-waste", Allocator, Warning,
    needs: [History],
    summary: "private memory pools hold far more than they use, or than one shared pool would",
}

/// The share of the waste that doing without a pool has to save to be the advice.
static MOST: Threshold<f64> = Threshold::new("rules::private_pool_waste::MOST", 0.5);

impl PrivatePoolWaste {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let (graphs, asked_for): (Vec<&PrivatePool>, Vec<&PrivatePool>) = facts
            .private_pools()
            .iter()
            .partition(|pool| pool.id.1 == 0 || is_asked_for_by_pytorch(facts, pool));
        // A handle that graphs were captured with is shared or kept apart on purpose, if it is the program's.
        let eager = asked_for.into_iter().filter(|pool| !pool.may_serve_graphs);
        let mut claims: Vec<Claim> = eager.map(|pool| hoarded(facts, pool)).collect();
        claims.extend((graphs.len() >= 2).then(|| unshared(facts, graphs)));
        claims
    }
}

/// Whether `make_graphed_callables` filled a pool, which asks for a handle of its own in each call unless it is given one (`torch/cuda/graphs.py`).
fn is_asked_for_by_pytorch(facts: &Facts, pool: &PrivatePool) -> bool {
    guilty(facts, &[pool]).iter().any(|one| facts.frames.shows(one.stack, MemorySign::CapturesApart))
}

/// Several graphs' pools where one would do.
fn unshared<'f>(facts: &'f Facts<'f>, pools: Vec<&'f PrivatePool>) -> Claim<'f> {
    let held: Bytes = pools.iter().map(|pool| pool.reserved).sum();
    let shared = shared(facts, &pools);
    let told = move |worth: &Worth| tell(facts, &pools, shared, worth);
    let claim = Claim::new(&PrivatePoolWaste::META, [], Mending::reserved(held - shared), told);
    claim.out_of(held).sure(Confidence::High)
}

/// A pool that holds more than the loop ever uses of it, for nobody else.
fn hoarded<'f>(facts: &'f Facts<'f>, pool: &'f PrivatePool) -> Claim<'f> {
    let (held, waste) = (pool.reserved, pool.reserved - pool.steady_peak);
    let told = move |worth: &Worth| tell_hoarded(facts, pool, worth);
    let claim = Claim::new(&PrivatePoolWaste::META, [], Mending::reserved(waste), told);
    claim.out_of(held).sure(Confidence::High)
}

fn tell_hoarded(facts: &Facts, pool: &PrivatePool, worth: &Worth) -> Finding {
    let PrivatePool { reserved, steady_peak, peak, .. } = *pool;
    let waste = reserved - steady_peak;
    // With the default pool everything else could use what lies free.
    let saved = facts.saved_by_sharing(&[pool.id], (0, 0)).filter(|_| !pool.is_older);
    let spared = saved.filter(|saved| saved.share_of(waste) >= MOST.get());
    let text = match saved {
        Some(Bytes::ZERO) => "replayed without it: the default pool would hold as much".to_owned(),
        Some(saved) => format!("replayed without it: {saved} less held at the end"),
        None => String::new(),
    };
    let telling = Telling {
        message: format!("a memory pool holds {reserved}, at most {steady_peak} of it in use"),
        help: if spared.is_some() {
            "leave `torch.cuda.use_mem_pool` out, or let go of the pool when its work is done (`del pool`): nothing else can use \
             what lies free in it"
        } else {
            "give the pool requests of a few fixed sizes, or a new pool when the sizes change: nothing else can use what lies free \
             in it"
        }
        .to_owned(),
        place: Anchor::of_guilty(facts, &takers(facts, pool), false),
        label: "most of what the pool holds was taken for this".to_owned(),
        related: Vec::new(),
        evidence: vec![
            measure("pools", Quantity::Count(1), String::new()),
            measure("pools-reserved", Quantity::Bytes(reserved), String::new()),
            measure("pools-in-use", Quantity::Bytes(peak), format!("at most {peak} in use at a time, whole blocks counted")),
            measure("steady-in-use", Quantity::Bytes(steady_peak), format!("{steady_peak} once the loop runs")),
            measure("not-shared", Quantity::Bytes(waste), format!("{waste} that nothing else can use")),
            measure("without-it-saves", Quantity::Bytes(saved.unwrap_or_default()), text),
        ],
    };
    let mut finding = telling.told(facts, &PrivatePoolWaste::META, worth);
    finding.impact.reserved = spared;
    finding
}

/// The requests for which a pool took memory of the driver.
fn takers(facts: &Facts, pool: &PrivatePool) -> Vec<GuiltyStack> {
    let segments = facts.snapshot.segments_of(facts.device.position());
    let bases: BTreeSet<u64> =
        segments.filter(|segment| segment.pool == pool.id).map(|segment| segment.address).collect();
    let taken = facts.trace.events.iter().filter(|event| {
        matches!(event.action, Action::SegmentAlloc | Action::SegmentMap) && bases.contains(&event.address)
    });
    let guilty: Vec<GuiltyStack> = taken
        .filter_map(|event| Some(GuiltyStack { stack: event.stack?, event: None, weight: event.size.get() }))
        .collect();
    if guilty.is_empty() { facts.guilty(pool.allocations.iter().copied()) } else { guilty }
}

fn tell(facts: &Facts, pools: &[&PrivatePool], shared: Bytes, worth: &Worth) -> Finding {
    let held = pools.iter().map(|pool| pool.reserved).sum::<Bytes>();
    let guilty = guilty(facts, pools);
    let blamed = facts.blame().common(&guilty);
    let through =
        |one: &&GuiltyStack| blamed.is_some_and(|frame| facts.frames.python(one.stack).contains(&frame));
    let example = guilty.iter().find(through);
    let place = blamed.map_or(Anchor::Nowhere, |frame| {
        Anchor::At(frame, example.map(|one| one.stack), example.and_then(|one| one.event))
    });
    let telling = Telling {
        message: format!(
            "{} of CUDA graphs hold {held}, one shared would hold {shared}",
            count(pools.len(), "pool")
        ),
        help: if pools.iter().all(|pool| pool.id.1 == 0) {
            "capture every graph into the first one's pool: `with torch.cuda.graph(g, pool=first.pool()):`, \
             largest shape first"
        } else {
            "capture all into one pool: `pool = torch.cuda.graph_pool_handle()` once, `make_graphed_callables(..., pool=pool)` \
             each time, largest shape first"
        }
        .to_owned(),
        place,
        label: "each capture takes its memory from a new private pool".to_owned(),
        related: Vec::new(),
        evidence: evidence(pools, held, shared),
    };
    telling.told(facts, &PrivatePoolWaste::META, worth)
}

/// What one pool for all of them would hold: as the replay shows. Where it cannot tell, the outputs of each, and the scratch
/// memory of the largest once.
fn shared(facts: &Facts, pools: &[&PrivatePool]) -> Bytes {
    let held: Bytes = pools.iter().map(|pool| pool.reserved).sum();
    let ids: Vec<(u64, u64)> = pools.iter().map(|pool| pool.id).collect();
    let all_seen = pools.iter().all(|pool| !pool.is_older);
    let with = ids.first().copied().filter(|_| all_seen);
    if let Some(saved) = with.and_then(|with| facts.saved_by_sharing(&ids, with)) {
        return held - saved;
    }
    let outputs: Bytes = pools.iter().map(|pool| pool.kept).sum();
    let scratch = pools.iter().map(|pool| pool.reserved - pool.kept).max().unwrap_or_default();
    outputs + scratch
}

/// What was allocated from the pools; where that was before the recording, the stacks of their segments.
fn guilty(facts: &Facts, pools: &[&PrivatePool]) -> Vec<GuiltyStack> {
    let allocated = facts.guilty(pools.iter().flat_map(|pool| pool.allocations.iter().copied()));
    if !allocated.is_empty() {
        return allocated;
    }
    let segments = facts.snapshot.segments_of(facts.device.position());
    let own = segments.filter(|segment| pools.iter().any(|pool| pool.id == segment.pool));
    own.filter_map(|segment| {
        Some(GuiltyStack { stack: segment.stack?, event: None, weight: segment.total_size.get() })
    })
    .collect()
}

fn evidence(pools: &[&PrivatePool], held: Bytes, shared: Bytes) -> Vec<Measure> {
    let largest = pools.iter().map(|pool| pool.reserved).max().unwrap_or_default();
    let used: Bytes = pools.iter().map(|pool| pool.peak).sum();
    let waste = held - shared;
    vec![
        measure("pools", Quantity::Count(pools.len() as u64), String::new()),
        measure("pools-reserved", Quantity::Bytes(held), format!("the largest pool alone holds {largest}")),
        measure("largest-pool", Quantity::Bytes(largest), String::new()),
        measure(
            "pools-in-use",
            Quantity::Bytes(used),
            format!("{} of what they hold was ever in use", percent(used.share_of(held))),
        ),
        measure("shared", Quantity::Bytes(shared), String::new()),
        measure(
            "not-shared",
            Quantity::Bytes(waste),
            format!("{} would be shared", percent(waste.share_of(held))),
        ),
    ]
}
