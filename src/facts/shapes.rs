//! Lines that allocate another size in each iteration.
//!
//! In: allocations made inside iterations, by stack. Out: the stacks whose sizes vary, with what they allocate, and the
//! bytes of all stacks. A stack varies if its largest allocation of an iteration takes more than half as many different
//! sizes as it has iterations (a smaller last batch, evaluation between training, lengths rounded to a few buckets all take
//! fewer), and falls back often enough not to be growth (a cache that gets longer), or goes with its iteration.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Facts;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, IterationIndex, StackId};

/// The iterations in which a stack has to allocate before its sizes say anything.
static FEWEST: Threshold<usize> = Threshold::new("facts::shapes::FEWEST", 5);
/// Of this many changes from one iteration to the next one at least has to go down. Sizes drawn at random go down in
/// every second; growth in the corpus never does.
static CHANGES_A_FALL: Threshold<usize> = Threshold::new("facts::shapes::CHANGES_A_FALL", 4);

/// What the loop allocates, by whether its sizes repeat.
#[derive(Debug, Default)]
pub struct Shapes {
    /// The stacks with varying sizes, in the order of their first allocation in the loop.
    pub varying: Vec<VaryingSite>,
    /// What all stacks allocated inside iterations.
    pub total: Bytes,
}

/// A stack whose sizes vary.
#[derive(Debug)]
pub struct VaryingSite {
    /// The stack.
    pub stack: StackId,
    /// What was allocated under it in the loop, oldest first.
    pub allocations: Vec<AllocationId>,
    /// All of that.
    pub bytes: Bytes,
    /// The different sizes of the largest allocation in each iteration.
    pub sizes: BTreeSet<Bytes>,
    /// In how many iterations it allocates.
    pub iterations: usize,
}

#[derive(Default)]
struct Series {
    allocations: Vec<AllocationId>,
    bytes: Bytes,
    /// The largest of each iteration, in their order.
    largest: Vec<(IterationIndex, Bytes)>,
    /// Whether any of it is there at the end of an iteration.
    stays: bool,
}

impl Series {
    fn varies(&self) -> bool {
        let sizes: Vec<Bytes> = self.largest.iter().map(|(_, bytes)| *bytes).collect();
        let different: BTreeSet<Bytes> = sizes.iter().copied().collect();
        let falls = sizes.windows(2).filter(|pair| matches!(pair, [before, after] if after < before)).count();
        sizes.len() >= FEWEST.get()
            && different.len() * 2 > sizes.len()
            && (!self.stays || falls * CHANGES_A_FALL.get() >= sizes.len() - 1)
    }
}

pub(super) fn shapes(facts: &Facts) -> Shapes {
    let mut by_stack: BTreeMap<StackId, Series> = BTreeMap::new();
    let mut total = Bytes::default();
    for (id, one) in facts.timeline.iter() {
        let Some(event) = one.alloc else { continue };
        let stack = facts.trace.event(event).and_then(|event| event.stack);
        // The autograd engine's thread has no stack that tells one operator from another.
        let stack = stack.filter(|stack| !facts.frames.python(*stack).is_empty());
        let Some((stack, iteration)) = stack.zip(facts.iteration_of(event)) else { continue };
        total += one.bytes;
        let series = by_stack.entry(stack).or_default();
        series.allocations.push(id);
        series.bytes += one.bytes;
        series.stays |= facts.ends_held(one) > 0;
        match series.largest.last_mut() {
            Some((last, largest)) if *last == iteration => *largest = one.bytes.max(*largest),
            _ => series.largest.push((iteration, one.bytes)),
        }
    }
    let varying = by_stack.into_iter().filter(|(_, series)| series.varies());
    let mut varying: Vec<VaryingSite> = varying
        .map(|(stack, series)| VaryingSite {
            stack,
            iterations: series.largest.len(),
            sizes: series.largest.into_iter().map(|(_, bytes)| bytes).collect(),
            allocations: series.allocations,
            bytes: series.bytes,
        })
        .collect();
    varying.sort_by_key(|site| site.allocations.first().copied());
    Shapes { varying, total }
}
