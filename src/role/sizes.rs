//! How many blocks there are of each size.
//!
//! In: lifetimes. Out: counts by size. A size alone proves nothing; who asks here also asks what else has that size.

use rustc_hash::FxHashMap;

use super::scene::Life;
use crate::unit::Bytes;

/// How many blocks there are of each size. Never iterated where order could show.
#[derive(Debug, Default)]
pub(super) struct Sizes(FxHashMap<Bytes, usize>);

impl Sizes {
    /// Counts the given lives.
    pub(super) fn count<'s, R>(lives: impl Iterator<Item = (Life<'s>, R)>) -> Sizes {
        let mut sizes = Sizes::default();
        for (life, _) in lives {
            sizes.add(life.bytes());
        }
        sizes
    }

    /// Counts one more; how many there are now.
    pub(super) fn add(&mut self, bytes: Bytes) -> usize {
        let count = self.0.entry(bytes).or_default();
        *count += 1;
        *count
    }

    /// Those of which another has none.
    pub(super) fn without(self, other: &Sizes) -> Sizes {
        Sizes(self.0.into_iter().filter(|(bytes, _)| !other.has(*bytes)).collect())
    }

    /// Those sizes, with how many there are of each, that are asked for.
    pub(super) fn only(&self, is_asked_for: impl Fn(Bytes, usize) -> bool) -> Sizes {
        let asked_for = self.0.iter().filter(|&(bytes, many)| is_asked_for(*bytes, *many));
        Sizes(asked_for.map(|(bytes, many)| (*bytes, *many)).collect())
    }

    /// The bytes of all.
    pub(super) fn bytes(&self) -> Bytes {
        self.0.iter().map(|(bytes, many)| bytes.times(*many as u64)).sum()
    }

    /// How many there are of a size.
    pub(super) fn of(&self, bytes: Bytes) -> usize {
        self.0.get(&bytes).copied().unwrap_or(0)
    }

    /// Raises the count of a size to at least this.
    pub(super) fn raise(&mut self, bytes: Bytes, count: usize) {
        let highest = self.0.entry(bytes).or_default();
        *highest = (*highest).max(count);
    }

    /// Whether there is one of a size.
    pub(super) fn has(&self, bytes: Bytes) -> bool {
        self.0.contains_key(&bytes)
    }
}
