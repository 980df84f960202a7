//! Which requests grew with the batch in the recording itself.
//!
//! In: roles and iterations. Out: for each stack what share of its requests grows with the batch, where iterations of different
//! batches show it. The batch of an iteration is as large as the largest
//! input made in it: labels and boxes may vary in number while the images do not. A stack counts where it asks as
//! often in each iteration, and for the same in iterations of equal batches: then its sizes depend on the batch, or on nothing.
//! Of these, those that ask for the same whatever the batch stay as they are; those that ask for more with every larger batch
//! grow: all of it where they do so in proportion, else the part that the line through the smallest and the largest batch gives.
//!
//! Where it can fail: lengths vary as batches do, and more so; what grows with the square of a length grows in proportion here, as it would with
//! the number of samples.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::engine::Device;
use crate::facts::Facts;
use crate::role::Role;
use crate::unit::{Bytes, Index, IterationIndex, StackId};

/// How far two ratios may be apart and still be one: what is made of a batch may have a part of its own, a mask or a last column.
const ALIKE: f64 = 0.02;

/// What the iterations of a recording show.
#[derive(Debug, Default)]
pub(super) struct BatchSizes {
    /// How many different batches there are.
    pub(super) batches: usize,
    /// The share of each stack's requests that grows with the batch.
    shares: FxHashMap<StackId, f64>,
}

impl BatchSizes {
    pub(super) fn of(device: &Device, facts: &Facts) -> BatchSizes {
        let complete = |iteration: &IterationIndex| {
            facts.program.iterations.get(iteration.position()).is_some_and(|one| one.complete)
        };
        let mut batches: BTreeMap<IterationIndex, Bytes> = BTreeMap::new();
        let mut stacks: FxHashMap<StackId, BTreeMap<IterationIndex, (usize, Bytes)>> = FxHashMap::default();
        for (id, one) in device.timeline.iter() {
            let Some(event) = one.alloc else { continue };
            let Some(iteration) = facts.iteration_of(event).filter(complete) else { continue };
            if device.roles.get(id) == Role::Input {
                let largest = batches.entry(iteration).or_default();
                *largest = one.bytes.max(*largest);
            }
            // The autograd engine's thread has no stack that tells one operator from another.
            let stack = facts.trace.event(event).and_then(|event| event.stack);
            if let Some(stack) = stack.filter(|stack| !facts.frames.python(*stack).is_empty()) {
                let asked = stacks.entry(stack).or_default().entry(iteration).or_default();
                *asked = (asked.0 + 1, asked.1 + one.bytes);
            }
        }
        let different: BTreeSet<Bytes> = batches.values().copied().collect();
        if different.len() < 2 {
            return BatchSizes { batches: different.len(), shares: FxHashMap::default() };
        }
        let share = |(stack, asked): (StackId, BTreeMap<IterationIndex, (usize, Bytes)>)| {
            Some((stack, share(&asked, &batches)?))
        };
        BatchSizes { batches: different.len(), shares: stacks.into_iter().filter_map(share).collect() }
    }

    /// The share of a stack's requests that grows; nothing where the recording does not show it.
    pub(super) fn share(&self, stack: Option<StackId>) -> Option<f64> {
        self.shares.get(&stack?).copied()
    }
}

/// What share of a stack's requests grows with the batch; nothing where its iterations do not agree on it.
fn share(
    asked: &BTreeMap<IterationIndex, (usize, Bytes)>,
    batches: &BTreeMap<IterationIndex, Bytes>,
) -> Option<f64> {
    let mut by_batch: BTreeMap<Bytes, (usize, Bytes)> = BTreeMap::new();
    for (iteration, asked) in asked {
        let Some(batch) = batches.get(iteration) else { continue };
        if by_batch.insert(*batch, *asked).is_some_and(|earlier| earlier != *asked) {
            return None;
        }
    }
    let points: Vec<(Bytes, usize, Bytes)> =
        by_batch.into_iter().map(|(batch, (count, bytes))| (batch, count, bytes)).collect();
    let ((small, often, little), (large, _, much)) = (*points.first()?, *points.last()?);
    if points.len() < 2 || points.iter().any(|(_, count, _)| *count != often) {
        return None;
    }
    if points.iter().all(|(.., bytes)| *bytes == little) {
        return Some(0.0);
    }
    let rises = points.windows(2).all(|pair| matches!(pair, [(.., before), (.., after)] if before < after));
    if !rises {
        return None;
    }
    if (little.share_of(much) - small.share_of(large)).abs() <= ALIKE {
        return Some(1.0);
    }
    let slope = (much - little).share_of(large - small);
    Some((slope * large.share_of(much)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[u64]) -> BTreeMap<IterationIndex, Bytes> {
        values.iter().enumerate().map(|(at, one)| (IterationIndex::at(at).unwrap(), Bytes(*one))).collect()
    }

    fn share_of(asked: &[u64], batches: &[u64]) -> Option<f64> {
        let asked = series(asked).into_iter().map(|(at, bytes)| (at, (1, bytes))).collect();
        share(&asked, &series(batches))
    }

    #[test]
    fn what_follows_the_batch_grows_with_it() {
        let batches = [400, 400, 400, 100];
        assert_eq!(share_of(&[800, 800, 800, 200], &batches), Some(1.0));
        assert_eq!(share_of(&[64, 64, 64, 64], &batches), Some(0.0));
        // Of 800 at the largest batch, 400 are there whatever the batch.
        assert_eq!(share_of(&[800, 800, 800, 500], &batches), Some(0.5));
    }

    #[test]
    fn what_varies_by_itself_says_nothing() {
        assert_eq!(share_of(&[800, 700, 800, 200], &[400, 400, 400, 100]), None);
        assert_eq!(share_of(&[200, 800, 300], &[100, 200, 300]), None, "not with every larger batch");
        assert_eq!(share_of(&[800, 800], &[400, 400]), None, "one batch only");
    }
}
