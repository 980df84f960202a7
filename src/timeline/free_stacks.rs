//! Whose stacks the frees of a recording carry.
//!
//! In: allocations and events. Out: [`FreeStacks`]. With `context="alloc"` the allocator stores the allocation's stack on
//! every event of the block (`CUDACachingAllocator.cpp`, `free_locked`), so that a single free whose stack is another one proves
//! that frees have stacks of their own. Two empty stacks prove nothing: threads without Python frames have no others. Where none of the
//! frees has a frame they say nothing, whatever the allocations say.

use super::{Allocation, FreeStacks};
use crate::snapshot::{Event, Stacks};
use crate::unit::{EventIndex, Index, StackId};

pub(super) fn find(allocations: &[Allocation], events: &[Event], stacks: &Stacks) -> FreeStacks {
    let at = |event: EventIndex| events.get(event.position()).and_then(|event| event.stack);
    let is_full = |stack: StackId| !stacks.get(stack).is_empty();
    let (mut copied, mut own, mut any) = (false, false, false);
    for one in allocations {
        // A free that completes late carries the stack of whoever noticed.
        let Some(freed) = one.free_requested.or(one.free).and_then(at) else { continue };
        any |= is_full(freed);
        match one.alloc.and_then(at) {
            Some(made) if made != freed => own = true,
            Some(made) => copied |= is_full(made),
            None => {}
        }
        if own && any {
            return FreeStacks::Own;
        }
    }
    match (any, copied) {
        (false, _) => FreeStacks::Missing,
        (true, true) => FreeStacks::Copied,
        // Nothing to compare with: PyTorch's default is `context="all"`.
        (true, false) => FreeStacks::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Action;
    use crate::testing::{self, Recorder, allocation};
    use crate::unit::Bytes;

    /// What allocations show that were made and given back under these stacks.
    fn found(pairs: &[(&str, &str)]) -> FreeStacks {
        let mut recorder = Recorder::default();
        let mut allocations = Vec::new();
        for pair in pairs {
            let [made, freed] = [pair.0, pair.1].map(|name| {
                let stack = recorder.stack(&[("train.py", name)][usize::from(name.is_empty())..]);
                recorder.push(Event { stack, ..testing::event(Action::Alloc, 512, Bytes(512)) })
            });
            allocations.push(Allocation {
                free_requested: EventIndex::at(freed),
                ..allocation(512, Some(made), None)
            });
        }
        find(&allocations, &recorder.events, &recorder.snapshot.stacks)
    }

    #[test]
    fn one_free_with_another_stack_decides() {
        assert_eq!(found(&[("a", "a"), ("b", "b"), ("c", "c"), ("d", "d"), ("e", "f")]), FreeStacks::Own);
        assert_eq!(found(&[("a", "a"), ("b", "b")]), FreeStacks::Copied);
        assert_eq!(found(&[("a", "a"), ("b", "b"), ("", "")]), FreeStacks::Copied);
        assert_eq!(found(&[("a", "a"), ("b", "")]), FreeStacks::Own);
        assert_eq!(found(&[("", ""), ("", "a")]), FreeStacks::Own);
        assert_eq!(found(&[("", ""), ("", "")]), FreeStacks::Missing);
        assert_eq!(found(&[("a", ""), ("b", "")]), FreeStacks::Missing);
    }
}
