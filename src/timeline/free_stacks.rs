//! Whose stacks the frees of a recording carry.
//!
//! In: allocations and events. Out: [`FreeStacks`]. With `context="alloc"` the allocator stores the allocation's stack on
//! every event of the block (`CUDACachingAllocator.cpp`, `free_locked`), so that a single free whose stack is another one proves
//! that frees have stacks of their own. Two empty stacks prove nothing: threads without Python frames have no others.

use super::{Allocation, FreeStacks};
use crate::snapshot::{Event, Stacks};
use crate::unit::{EventIndex, Index, StackId};

pub(super) fn find(allocations: &[Allocation], events: &[Event], stacks: &Stacks) -> FreeStacks {
    let at = |event: EventIndex| events.get(event.position()).and_then(|event| event.stack);
    let is_full = |stack: StackId| !stacks.get(stack).is_empty();
    let (mut copied, mut any) = (false, false);
    for one in allocations {
        // A free that completes late carries the stack of whoever noticed.
        let Some(freed) = one.free_requested.or(one.free).and_then(at) else { continue };
        any |= is_full(freed);
        match one.alloc.and_then(at) {
            Some(made) if made != freed => return FreeStacks::Own,
            Some(made) => copied |= is_full(made),
            None => {}
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
    use crate::snapshot::{Action, Frame, Snapshot};
    use crate::unit::{Bytes, Micros};

    fn event(stack: Option<StackId>) -> Event {
        Event {
            time: Micros(0),
            address: 512,
            size: Bytes(512),
            stack,
            metadata: None,
            stream: 0,
            action: Action::Alloc,
            compiled: false,
            particulars: 0,
        }
    }

    /// What allocations show that were made and given back under these stacks.
    fn found(pairs: &[(&str, &str)]) -> FreeStacks {
        let mut snapshot = Snapshot::default();
        let mut events: Vec<Event> = Vec::new();
        let mut allocations = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            for name in [pair.0, pair.1] {
                let name = snapshot.strings.intern(name).unwrap();
                let frame = snapshot.stacks.intern_frame(Frame { name, file: name, line: 1 }).unwrap();
                let is_empty = snapshot.text(name).is_empty();
                let stack = snapshot.stacks.intern(if is_empty { &[] } else { std::slice::from_ref(&frame) });
                events.push(event(stack));
            }
            allocations.push(Allocation {
                address: 512,
                bytes: Bytes(512),
                alloc: EventIndex::at(2 * at),
                free_requested: EventIndex::at(2 * at + 1),
                free: None,
                stack: None,
                stream: 0,
            });
        }
        find(&allocations, &events, &snapshot.stacks)
    }

    #[test]
    fn one_free_with_another_stack_decides() {
        assert_eq!(found(&[("a", "a"), ("b", "b"), ("c", "c"), ("d", "d"), ("e", "f")]), FreeStacks::Own);
        assert_eq!(found(&[("a", "a"), ("b", "b")]), FreeStacks::Copied);
        assert_eq!(found(&[("a", "a"), ("b", "b"), ("", "")]), FreeStacks::Copied);
        assert_eq!(found(&[("a", "a"), ("b", "")]), FreeStacks::Own);
        assert_eq!(found(&[("", ""), ("", "a")]), FreeStacks::Own);
        assert_eq!(found(&[("", ""), ("", "")]), FreeStacks::Missing);
    }
}
