//! What has the sizes of weights and is no copy of them: the state of an optimizer of the program's own.
//!
//! In: what looks like copies that the loop makes. Out: those that are. Copying makes one tensor of each, and one set of
//! them; an expression makes temporaries of the same size on the way (`b * old + (1 - b) * p.grad`), and an optimizer makes
//! two sets at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{TensorSource, made_by};
use super::{Copied, Kind};
use crate::facts::Facts;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FunctionId, IterationIndex, StackId};

/// Leaves out what is computed.
pub(super) fn without(facts: &Facts, sources: &[TensorSource], mut copies: Vec<Copied>) -> Vec<Copied> {
    let temporaries = temporaries(facts, &copies);
    let mut sets: BTreeMap<ComputedTogether, usize> = BTreeMap::new();
    for copy in copies.iter().filter(|copy| is_plain(facts, sources, copy)) {
        *sets.entry(set(facts, copy)).or_default() += 1;
    }
    let computed = |copy: &Copied| {
        let beside_temporaries = |id: &AllocationId| {
            let one = facts.timeline.allocation(*id);
            one.and_then(|one| Some((one.stack?, one.bytes))).is_some_and(|one| temporaries.contains(&one))
        };
        let beside: Vec<AllocationId> = copy.tensors.iter().copied().filter(beside_temporaries).collect();
        let several = sets.get(&set(facts, copy)).is_some_and(|sets| *sets >= 2);
        is_plain(facts, sources, copy) && (several || facts.bytes(&beside).times(2) > copy.bytes)
    };
    copies.retain(|copy| !computed(copy));
    copies
}

/// A function in an iteration.
type ComputedTogether = (Option<FunctionId>, Option<IterationIndex>);

fn set(facts: &Facts, copy: &Copied) -> ComputedTogether {
    let first = copy.tensors.first().and_then(|id| facts.timeline.allocation(*id));
    (facts.frames.function(copy.frame), first.and_then(|one| facts.born_in(one)))
}

/// Whether a line of the loop makes it, and nothing that is known to copy.
fn is_plain(facts: &Facts, sources: &[TensorSource], copy: &Copied) -> bool {
    let made = made_by(facts, sources, &copy.tensors);
    matches!(copy.kind, Kind::CopiedInLoop | Kind::BuiltInLoop) && made.is_some_and(|made| !made.copies())
}

/// Where tensors of such sizes are made that die in their iteration.
fn temporaries(facts: &Facts, copies: &[Copied]) -> BTreeSet<(StackId, Bytes)> {
    let tensors = copies.iter().flat_map(|copy| &copy.tensors);
    let tensors = tensors.filter_map(|id| facts.timeline.allocation(*id));
    let sought: BTreeSet<(StackId, Bytes)> =
        tensors.filter_map(|one| Some((one.stack?, one.bytes))).collect();
    // What the last iteration leaves to the recording's end does not die.
    let is_brief = |one: &Allocation| one.alloc.is_some() && one.free.is_some() && facts.ends_held(one) == 0;
    let dies = facts.timeline.iter().filter(|(_, one)| is_brief(one));
    dies.filter_map(|(_, one)| Some((one.stack?, one.bytes))).filter(|one| sought.contains(one)).collect()
}
