//! Sets of tensors, compared by their sizes.
//!
//! In: tensors that belong together. Out: how much of one set another repeats, each tensor as large, or all of them larger or
//! smaller by one factor: another number format, all parts of a sharded tensor, all members of an ensemble in one.

use std::collections::BTreeMap;

use super::COVERED;
use crate::facts::Facts;
use crate::unit::{AllocationId, Bytes};

/// How many tensors there are of each size.
#[derive(Debug, Clone, Default)]
pub(super) struct CopySizes(BTreeMap<Bytes, usize>);

/// By what a copy is larger than the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Widening {
    copy: u64,
    original: u64,
}

/// What a set repeats of another.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repeated {
    /// Bytes of the copy.
    pub(super) copy: Bytes,
    /// Bytes of the original.
    pub(super) original: Bytes,
    /// How many tensors of the copy.
    pub(super) count: usize,
}

impl CopySizes {
    /// The sizes of some tensors.
    pub(super) fn of(facts: &Facts, tensors: &[AllocationId]) -> CopySizes {
        let mut sizes = CopySizes::default();
        for one in tensors.iter().filter_map(|id| facts.timeline.allocation(*id)) {
            sizes.add(one.bytes);
        }
        sizes
    }

    /// One more tensor.
    pub(super) fn add(&mut self, bytes: Bytes) {
        *self.0.entry(bytes).or_default() += 1;
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a tensor of this size.
    pub(super) fn has(&self, bytes: Bytes) -> bool {
        self.0.contains_key(&bytes)
    }

    /// How many sizes there are.
    pub(super) fn kinds(&self) -> usize {
        self.0.len()
    }

    /// How many tensors there are.
    pub(super) fn count(&self) -> usize {
        self.0.values().sum()
    }

    /// The largest.
    pub(super) fn largest(&self) -> Option<Bytes> {
        self.0.keys().next_back().copied()
    }

    /// The bytes of all.
    pub(super) fn bytes(&self) -> Bytes {
        self.0.iter().map(|(bytes, count)| bytes.times(*count as u64)).sum()
    }

    /// What a copy repeats of these: by a scale, and each of its tensors so many of the original's.
    pub(super) fn repeated(&self, copy: &CopySizes, scale: Widening, members: usize) -> Repeated {
        let mut repeated = Repeated::default();
        for (bytes, count) in &copy.0 {
            let Some(original) = scale.original(*bytes) else { continue };
            let there = self.0.get(&original).copied().unwrap_or_default();
            let count = (there / members.max(1)).min(*count);
            repeated.copy += bytes.times(count as u64);
            repeated.original += original.times((count * members) as u64);
            repeated.count += count;
        }
        repeated
    }

    /// The bytes of a copy that are in tensors of these sizes by a scale, however often.
    pub(super) fn akin(&self, copy: &CopySizes, scale: Widening) -> Bytes {
        let is_akin = |bytes: &Bytes| scale.original(*bytes).is_some_and(|original| self.has(original));
        let akin = copy.0.iter().filter(|(bytes, _)| is_akin(bytes));
        akin.map(|(bytes, count)| bytes.times(*count as u64)).sum()
    }

    /// Whether these have tensors of the sizes of another set, of nearly all of it.
    pub(super) fn cover(&self, other: &CopySizes) -> bool {
        let repeated = self.repeated(other, Widening::SAME, 1);
        repeated.copy.share_of(other.bytes()) >= COVERED.get()
    }

    /// The bytes of a copy that are at most so many of each of these.
    pub(super) fn at_most(&self, copy: &CopySizes, times: usize) -> Bytes {
        let within = |(bytes, count): (&Bytes, &usize)| {
            let there = self.0.get(bytes).copied().unwrap_or_default();
            bytes.times((there * times).min(*count) as u64)
        };
        copy.0.iter().map(within).sum()
    }

    /// The scale of a copy by the largest tensors of both.
    pub(super) fn scale(&self, copy: &CopySizes) -> Option<Widening> {
        let (original, copy) = (self.largest()?, copy.largest()?);
        Some(Widening { copy: copy.get(), original: original.get() })
    }
}

impl Widening {
    /// Tensor for tensor.
    pub(super) const SAME: Widening = Widening { copy: 1, original: 1 };

    /// How large the original of a copied tensor is.
    fn original(self, bytes: Bytes) -> Option<Bytes> {
        let scaled = u128::from(bytes.get()) * u128::from(self.original);
        let divisor = u128::from(self.copy);
        let whole = scaled.checked_div(divisor).filter(|_| scaled.is_multiple_of(divisor))?;
        u64::try_from(whole).ok().map(Bytes)
    }

    /// How many whole originals make one of the copy, where it is more than one.
    pub(super) fn members(self) -> Option<usize> {
        let whole = self.copy.is_multiple_of(self.original) && self.copy > self.original;
        whole.then(|| usize::try_from(self.copy / self.original).ok()).flatten()
    }

    /// Whether the tensors are as large.
    pub(super) fn is_same(self) -> bool {
        self.copy == self.original
    }

    /// The sizes to which one is as the copy to the original, or the original to the copy.
    pub(super) fn related(self, one: Bytes) -> Vec<Bytes> {
        let inverse = Widening { copy: self.original, original: self.copy };
        [self, inverse].into_iter().filter_map(|scale| scale.original(one)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: &[u64]) -> CopySizes {
        let mut sizes = CopySizes::default();
        for one in bytes {
            sizes.add(Bytes(*one));
        }
        sizes
    }

    #[test]
    fn one_factor_fits_all_tensors_or_none() {
        let weights = sizes(&[400, 200, 200, 100]);
        let half = sizes(&[200, 100, 100, 50]);
        let scale = weights.scale(&half).unwrap();
        assert_eq!(weights.repeated(&half, scale, 1).original, Bytes(900));
        assert_eq!(weights.repeated(&sizes(&[200, 90, 80, 7]), scale, 1).count, 1);
        assert_eq!((scale.members(), scale.is_same()), (None, false));
    }

    #[test]
    fn a_copy_may_hold_each_size_so_often() {
        let weights = sizes(&[400, 200]);
        let state = sizes(&[400, 400, 400, 200, 200, 200, 70]);
        assert_eq!((weights.at_most(&state, 1), weights.at_most(&state, 4)), (Bytes(600), Bytes(1800)));
    }

    #[test]
    fn each_tensor_of_a_stack_takes_as_many_members() {
        let members = sizes(&[400, 200, 400, 200]);
        let scale = members.scale(&sizes(&[800])).unwrap();
        assert_eq!(scale.members(), Some(2));
        let repeated = members.repeated(&sizes(&[800, 400, 400]), scale, 2);
        assert_eq!((repeated.count, repeated.original), (2, Bytes(1200)));
    }

    #[test]
    fn nothing_is_a_scale_of_no_bytes() {
        let scale = sizes(&[4]).scale(&sizes(&[0])).unwrap();
        assert_eq!((scale.original(Bytes(8)), scale.members()), (None, None));
    }
}
