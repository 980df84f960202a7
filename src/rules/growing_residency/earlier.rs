//! What had piled up already when the recording began.
//!
//! In: a line that grows. Out: the tensors of before the recording that were made under the same stacks, and the iterations that they stand for.
//! They count only if the recording lets go of none of them: each is then a rise as those that were recorded are, and a short recording tells as much as a
//! long one.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, Growing};
use crate::timeline::Allocation;
use crate::unit::{Bytes, Index, StackId};

/// What stands of before the recording.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PiledUpBefore {
    /// How much.
    pub(super) bytes: Bytes,
    /// In how many iterations as large as the largest recorded one it was made, at least.
    pub(super) iterations: usize,
}

/// What had piled up before a line was seen to grow; nothing where some of it goes.
pub(super) fn earlier(facts: &Facts, growing: &Growing) -> PiledUpBefore {
    let stays = growing.stays.iter().filter_map(|id| facts.timeline.allocation(*id));
    let (mut stacks, mut turns): (BTreeSet<StackId>, BTreeMap<usize, Bytes>) = Default::default();
    for one in stays.filter(|one| one.alloc.is_some()) {
        stacks.extend(one.stack);
        if let Some(turn) = facts.born_in(one) {
            *turns.entry(turn.position()).or_default() += one.bytes;
        }
    }
    let Some(most) = turns.into_values().max().filter(|most| *most > Bytes::ZERO) else {
        return PiledUpBefore::default();
    };
    let alike = |one: &Allocation| one.stack.is_some_and(|stack| stacks.contains(&stack));
    let older = || facts.timeline.older().map(|(_, one)| one).filter(|one| alike(one));
    if older().any(|one| one.given_back().is_some()) {
        return PiledUpBefore::default();
    }
    let bytes: Bytes = older().map(|one| one.bytes).sum();
    PiledUpBefore { bytes, iterations: usize::try_from(bytes.get() / most.get()).unwrap_or(usize::MAX) }
}
