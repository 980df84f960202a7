//! Gradients that a function returned, and a name holds until it is bound to the next ones.
//!
//! In: gradients, and the lines that had them made. Out: whether one goes only when its successor is there. A backward pass adds to a `.grad`
//! that it finds, so nothing that `zero_grad` clears outlives the next gradient of its parameter: what does was returned
//! (`torch.func.grad`, `torch.autograd.grad`), and a variable keeps it.

use rustc_hash::FxHashMap;

use super::Facts;
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{Bytes, EventIndex, FrameId};

/// Gradients of one size that one line of the user's had made.
type SameSource = (Bytes, Option<FrameId>);

/// When gradients that are alike are made, ascending.
#[derive(Debug, Default)]
pub(super) struct Successors(FxHashMap<SameSource, Vec<EventIndex>>);

impl Successors {
    pub(super) fn of(facts: &Facts) -> Successors {
        let mut births: FxHashMap<SameSource, Vec<EventIndex>> = FxHashMap::default();
        // They stand in the order in which they were made.
        for (_, one) in facts.with_role(Role::Gradient) {
            if let Some(born) = one.alloc {
                births.entry(alike(facts, one.bytes, born)).or_default().push(born);
            }
        }
        Successors(births)
    }

    /// Whether the program lets go of one, by no `zero_grad`, only when the line that had it made has made another after an event.
    fn replace(&self, facts: &Facts, one: &Allocation, after: EventIndex) -> bool {
        let Some((born, freed)) = one.alloc.zip(one.free_requested) else { return false };
        let births = self.0.get(&alike(facts, one.bytes, born)).map(Vec::as_slice).unwrap_or_default();
        let next = births.get(births.partition_point(|event| *event < after));
        facts.phase(freed) != Phase::ZeroGrad && next.is_some_and(|next| *next < freed)
    }
}

impl Facts<'_> {
    /// Whether the program lets go of a gradient, by no `zero_grad`, only when the line that had it made has made the like of it after an event.
    pub fn is_bound_anew(&self, gradient: &Allocation, after: EventIndex) -> bool {
        self.successors.get_or_init(|| Successors::of(self)).replace(self, gradient, after)
    }
}

fn alike(facts: &Facts, bytes: Bytes, born: EventIndex) -> SameSource {
    (bytes, facts.seen_stack(born).and_then(|stack| facts.site(stack)))
}
