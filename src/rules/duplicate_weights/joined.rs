//! What is copied in the loop and put together again: members of an ensemble, draws of a chain.
//!
//! In: what looks like copies that the loop makes. Out: those that nothing computes with. Of members that stand side by side the loop makes tensors of all of them
//! (`torch.stack`), one for each of the weights, before it computes with all at once.

use std::collections::BTreeMap;

use super::passes::is_outside;
use super::{ALIKE, COVERED, Copied, CopySizes, FEWEST, Kind};
use crate::facts::Facts;
use crate::timeline::Allocation;
use crate::unit::{FrameId, IterationIndex};

/// Leaves out what is put together.
pub(super) fn without(facts: &Facts, copies: Vec<Copied>) -> Vec<Copied> {
    if !copies.iter().any(is_looped) {
        return copies;
    }
    let made = made_by_lines(facts);
    copies.into_iter().filter(|copy| !is_looped(copy) || !is_joined(facts, copy, &made)).collect()
}

fn is_looped(copy: &Copied) -> bool {
    copy.kind == Kind::CopiedInLoop
}

/// What each line makes outside of models in an iteration, and that does not outlive it.
fn made_by_lines(facts: &Facts) -> Vec<CopySizes> {
    let mut made: BTreeMap<(FrameId, IterationIndex), CopySizes> = BTreeMap::new();
    let is_brief = |one: &Allocation| facts.ends_held(one) == 0 && is_outside(facts, one);
    for (_, one) in facts.timeline.iter().filter(|(_, one)| is_brief(one)) {
        let line = one.stack.and_then(|stack| facts.user_frame(stack)).zip(facts.born_in(one));
        if let Some(line) = line {
            made.entry(line).or_default().add(one.bytes);
        }
    }
    made.into_values().collect()
}

/// Whether a line makes tensors each of which holds several of those that are copied.
fn is_joined(facts: &Facts, copy: &Copied, made: &[CopySizes]) -> bool {
    let members = CopySizes::of(facts, &copy.tensors);
    let joins = |made: &CopySizes| {
        let Some(scale) = members.scale(made).filter(|scale| scale.members().is_some()) else { return false };
        let joined = members.repeated(made, scale, 1);
        let covers =
            joined.original.share_of(members.bytes()) >= COVERED.get() && joined.count >= FEWEST.get();
        covers && members.akin(made, scale).share_of(made.bytes()) >= ALIKE.get()
    };
    // Of equal tensors any larger ones are so many.
    members.kinds() > 1 && made.iter().any(joins)
}
