//! What had piled up already when the recording began.
//!
//! In: a line that grows. Out: the tensors of before the recording that were made under the same stacks, and the iterations that they stand for.
//! They count only if the recording lets go of none of them: each is then a rise as those that were recorded are, and a short recording tells as much as a
//! long one.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::facts::{Facts, Growing};
use crate::unit::{Bytes, Index, StackId};

/// What is older than the recording, by the stack that made it: how much, or nothing where some of it goes.
pub(super) struct OlderByStack(FxHashMap<StackId, Option<Bytes>>);

/// What stands of before the recording.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PiledUpBefore {
    /// How much.
    pub(super) bytes: Bytes,
    /// In how many iterations as large as the largest recorded one it was made, at least.
    pub(super) iterations: usize,
}

impl OlderByStack {
    pub(super) fn of(facts: &Facts) -> OlderByStack {
        let mut older = FxHashMap::default();
        for (_, one) in facts.timeline.older() {
            let Some(stack) = one.stack else { continue };
            let bytes = older.entry(stack).or_insert(Some(Bytes::ZERO));
            *bytes = bytes.filter(|_| one.given_back().is_none()).map(|bytes| bytes + one.bytes);
        }
        OlderByStack(older)
    }

    /// What had piled up before a line was seen to grow; nothing where some of it goes.
    pub(super) fn piled_up(&self, facts: &Facts, growing: &Growing) -> PiledUpBefore {
        let stays = growing.stays.iter().filter_map(|id| facts.timeline.allocation(*id));
        let (mut stacks, mut turns): (BTreeSet<StackId>, BTreeMap<usize, Bytes>) = Default::default();
        for one in stays.filter(|one| one.alloc.is_some()) {
            stacks.extend(one.stack);
            if let Some(turn) = facts.born_in(one) {
                *turns.entry(turn.position()).or_default() += one.bytes;
            }
        }
        let most = turns.into_values().max().unwrap_or_default();
        let bytes: Option<Bytes> = stacks.iter().filter_map(|stack| self.0.get(stack).copied()).sum();
        let bytes = bytes.unwrap_or_default();
        let iterations = bytes.get().checked_div(most.get()).and_then(|many| usize::try_from(many).ok());
        PiledUpBefore { bytes, iterations: iterations.unwrap_or(0) }
    }
}
