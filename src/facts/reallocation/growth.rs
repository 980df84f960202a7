//! What a buffer that is replaced by ever larger ones costs.

use super::Reallocation;
use crate::facts::Facts;
use crate::unit::{AllocationId, Bytes, Index};

impl Reallocation {
    /// What is reserved and was never in use, if that is more than the buffers themselves: no hole that one leaves fits the next. The
    /// holes that they leave are together no larger than what was copied out of them: what is more has other causes.
    pub fn holes(&self, facts: &Facts) -> Option<Bytes> {
        let pool = facts.default_pool();
        let unused = pool.reserved - pool.active.max(pool.held_before);
        Some(unused.min(self.copied(facts))).filter(|unused| *unused > self.last)
    }

    /// What all versions but the last ones hold, and leave behind.
    pub fn copied(&self, facts: &Facts) -> Bytes {
        self.links().map(|(old, _)| size(facts, old)).sum()
    }

    /// By how much all buffers together grow from iteration to iteration; nothing where none outlives the iteration that begins it, as a cache that
    /// each request fills anew.
    pub fn pace(&self, facts: &Facts) -> Option<Bytes> {
        let born = |id: &AllocationId| facts.born_in(facts.timeline.allocation(*id)?).map(Index::position);
        let of_chain = |chain: &Vec<AllocationId>| {
            let (first, last) = (chain.first()?, chain.last()?);
            let turns = born(last)?.checked_sub(born(first)?).filter(|turns| *turns > 0)?;
            Some((size(facts, *last) - size(facts, *first)).get() as f64 / turns as f64)
        };
        let all: f64 = self.chains.iter().filter_map(of_chain).sum();
        (all > 0.0).then(|| Bytes::rounded(all))
    }

    /// The median growth from one version to the next.
    pub fn step(&self, facts: &Facts) -> Bytes {
        let grown = self.links().map(|(old, new)| size(facts, new) - size(facts, old));
        let mut steps: Vec<Bytes> = grown.filter(|step| *step > Bytes::ZERO).collect();
        steps.sort_unstable();
        steps.get(steps.len() / 2).copied().unwrap_or_default()
    }
}

fn size(facts: &Facts, id: AllocationId) -> Bytes {
    facts.timeline.allocation(id).map_or(Bytes::ZERO, |one| one.bytes)
}
