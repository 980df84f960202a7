//! A loaded checkpoint beside the model, in a recording that shows no loop from its beginning on: a snapshot of the state alone, one pass, a late
//! start.
//!
//! In: what stands at the end, by the lines that made it. Out: what files were read into that stands beside weights of the same sizes, which a
//! module made or moved; and copies of a model into which adapters were put, of what they leave frozen. Always: nothing else. Of copies of
//! another making a moment does not tell whether somebody computes with them.

use std::collections::{BTreeMap, BTreeSet};

use super::sizes::{CopySizes, Widening};
use super::source::{self, MadeBy};
use super::{COVERED, Copied, FEWEST, Kind};
use crate::facts::Facts;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, FrameId, Index};

/// The copies that stand at the end, by the lines that made them.
pub(super) fn copies(facts: &Facts) -> Vec<Copied> {
    let sources = source::sources(facts);
    let trained = trained(facts).filter(|_| sources.iter().any(|source| source.adapts));
    let is_frozen = |bytes: Bytes| trained.as_ref().is_some_and(|trained| !trained.contains(&bytes));
    let mut weights = CopySizes::default();
    let mut standing: BTreeMap<(Kind, FrameId), Vec<AllocationId>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter().filter(|(_, one)| one.given_back().is_none()) {
        let Some(source) = one.stack.and_then(|stack| sources.get(stack.position())) else { continue };
        let kind = match source.made {
            MadeBy::Moved | MadeBy::Built => {
                weights.add(one.bytes);
                continue;
            }
            MadeBy::Loaded => Kind::LoadedByTheEnd,
            MadeBy::Copied if is_frozen(one.bytes) => Kind::Base,
            _ => continue,
        };
        if let Some(line) = source.line {
            standing.entry((kind, line)).or_default().push(id);
        }
    }
    let copy = |((kind, frame), tensors): ((Kind, FrameId), Vec<AllocationId>)| {
        let repeated = weights.repeated(&CopySizes::of(facts, &tensors), Widening::SAME, 1);
        let covered = repeated.original.share_of(weights.bytes());
        let bytes = facts.bytes(&tensors);
        let repeats = covered >= COVERED.get() && repeated.count >= FEWEST.get();
        repeats.then_some(Copied { kind, frame, tensors, bytes, covered })
    };
    standing.into_iter().filter_map(copy).collect()
}

/// The sizes of what is trained, by the gradients and the optimizer's state; none where there is neither.
fn trained(facts: &Facts) -> Option<BTreeSet<Bytes>> {
    let of = |role: Role| facts.with_role(role).map(|(_, one)| one.bytes);
    let trained: BTreeSet<Bytes> = of(Role::Gradient).chain(of(Role::OptimizerState)).collect();
    (!trained.is_empty()).then_some(trained)
}
