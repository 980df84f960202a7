//! What the rest of a program says of a buffer that grows, where no C++ frame names the operator.
//!
//! In: a chain of versions and all lifetimes. Out: whether everything else grows in proportion (a curriculum), and whether what is joined to the buffer
//! is there when the next version is made.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::Facts;
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Index};

/// How much of the buffer's growth the rest of the program may show.
static ALONE: Threshold<f64> = Threshold::new("facts::reallocation::rest::ALONE", 0.5);
/// Tensors of the size of what is joined that are looked at: a bound on the work in a hostile file.
const MOST_PARTS: usize = 64;

/// What is larger than all before it: the chain without copies.
pub(super) fn versions<'f>(facts: &Facts<'f>, chain: &[AllocationId]) -> Vec<&'f Allocation> {
    let mut largest = Bytes::ZERO;
    let mut versions = Vec::new();
    for one in chain.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        if one.bytes > largest {
            largest = one.bytes;
            versions.push(one);
        }
    }
    versions
}

/// What the rest of the program allocates, summed up to each event.
pub(super) struct Rest(Vec<u64>);

impl Rest {
    pub(super) fn of(facts: &Facts, growing: &FxHashSet<AllocationId>) -> Rest {
        let mut sum = 0_u64;
        let ids = facts.timeline.allocation_of.iter().zip(&facts.trace.events);
        let up_to = ids.map(|(id, event)| {
            if event.action == Action::Alloc && id.is_some_and(|id| !growing.contains(&id)) {
                sum = sum.saturating_add(event.size.get());
            }
            sum
        });
        Rest(up_to.collect())
    }

    /// Whether what is allocated between two versions grows by less than half as much as the versions do.
    pub(super) fn stands_still(&self, facts: &Facts, chain: &[AllocationId]) -> bool {
        let versions = versions(facts, chain);
        let sum =
            |one: &Allocation| one.alloc.and_then(|born| self.0.get(born.position())).copied().unwrap_or(0);
        let work: Vec<f64> = versions
            .windows(2)
            .filter_map(|pair| Some(sum(pair.last()?).saturating_sub(sum(pair.first()?)) as f64))
            .collect();
        let sizes: Vec<f64> = versions.iter().skip(1).map(|one| one.bytes.get() as f64).collect();
        growth(&work) < ALONE.get() * growth(&sizes)
    }
}

/// What may be joined to a buffer: allocations by their size, where some version exceeds the last by as much; by birth.
pub(super) struct JoinedParts(FxHashMap<Bytes, Vec<AllocationId>>);

impl JoinedParts {
    pub(super) fn of(facts: &Facts, chains: &[Vec<AllocationId>]) -> JoinedParts {
        let sizes = chains.iter().flat_map(|chain| steps(facts, chain)).map(|(_, step)| (step, Vec::new()));
        let mut parts: FxHashMap<Bytes, Vec<AllocationId>> = sizes.collect();
        for (id, one) in facts.timeline.iter().filter(|(_, one)| one.alloc.is_some()) {
            if let Some(part) = parts.get_mut(&one.bytes) {
                part.push(id);
            }
        }
        JoinedParts(parts)
    }

    /// Whether each version is as large as the one before and something of its own iteration that is there when it is made.
    pub(super) fn make_up(&self, facts: &Facts, chain: &[AllocationId]) -> bool {
        steps(facts, chain).into_iter().all(|(new, step)| self.is_there(facts, new, step) == Some(true))
    }

    fn is_there(&self, facts: &Facts, new: &Allocation, step: Bytes) -> Option<bool> {
        let (born, turn) = (new.alloc?, facts.born_in(new)?);
        let start = facts.program.iterations.get(turn.position())?.start;
        let of_size = self.0.get(&step)?;
        let until = of_size
            .partition_point(|id| facts.timeline.allocation(*id).is_some_and(|one| one.alloc < Some(born)));
        let before = of_size.get(..until)?.iter().rev().take(MOST_PARTS);
        let mut made =
            before.filter_map(|id| facts.timeline.allocation(*id)).take_while(|one| one.alloc >= Some(start));
        Some(made.any(|one| one.given_back().is_none_or(|gone| gone > born)))
    }
}

/// The versions of a chain but for the first, each with the bytes by which it exceeds the one before.
fn steps<'f>(facts: &Facts<'f>, chain: &[AllocationId]) -> Vec<(&'f Allocation, Bytes)> {
    let versions = versions(facts, chain);
    versions.iter().zip(versions.iter().skip(1)).map(|(old, new)| (*new, new.bytes - old.bytes)).collect()
}

/// By how much the median of a series' last third exceeds that of its first, as a share of the latter.
fn growth(series: &[f64]) -> f64 {
    let third = series.len().div_ceil(3);
    let median = |part: &[f64]| {
        let mut part = part.to_vec();
        part.sort_by(f64::total_cmp);
        part.get(part.len() / 2).copied().unwrap_or(0.0)
    };
    let first = median(series.get(..third).unwrap_or_default());
    let last = median(series.get(series.len() - third..).unwrap_or_default());
    if first > 0.0 { last / first - 1.0 } else { last }
}
