//! What stacks say of a device: the lines to show, and the line to blame.
//!
//! In: events and allocations. Out: stacks as a person would see them, frames, and what the finder of responsible lines takes.

use super::{Blame, Facts, GuiltyStack};
use crate::frames::GraphSign;
use crate::program::{Phase, Step};
use crate::timeline::Allocation;
use crate::unit::{AllocationId, EventIndex, FrameId, Index, StackId};

impl Facts<'_> {
    /// The innermost user frame of a stack.
    pub fn user_frame(&self, stack: StackId) -> Option<FrameId> {
        self.frames.user(stack).next()
    }

    /// The stack that a person would see for an event: its own, or, on the autograd engine's thread, the one under
    /// which the backward pass was entered.
    pub fn seen_stack(&self, event: EventIndex) -> Option<StackId> {
        let own = self.trace.event(event).and_then(|event| event.stack);
        match own {
            Some(stack) if !self.frames.python(stack).is_empty() => Some(stack),
            _ if self.phase(event) == Phase::Backward => self.calls.backward_before(event),
            _ => None,
        }
    }

    /// The stack under which an allocation was given back, where frees have stacks of their own.
    pub fn freed_under(&self, one: &Allocation) -> Option<StackId> {
        let freed = one.free_requested.filter(|_| self.timeline.frees_have_stacks())?;
        self.trace.event(freed)?.stack
    }

    /// The first of some allocations that the program gives back.
    pub fn first_to_go(&self, allocations: impl IntoIterator<Item = AllocationId>) -> Option<&Allocation> {
        let all = allocations.into_iter().filter_map(|id| self.timeline.allocation(id));
        all.min_by_key(|one| one.given_back())
    }

    /// The stack that a person would see for an allocation, be it older than the recording.
    pub fn stack_of(&self, one: &Allocation) -> Option<StackId> {
        match one.alloc {
            Some(event) => self.seen_stack(event),
            None => one.stack,
        }
    }

    /// The line that an allocation counts for wherever bytes are told by line; nothing where none is known. What the autograd engine
    /// makes on a thread of its own counts for the line that entered the backward pass.
    pub fn line_of(&self, one: &Allocation) -> Option<FrameId> {
        self.site(self.stack_of(one)?)
    }

    /// The first stack that a person would see in a step; none where it makes nothing and lets go of nothing.
    pub fn step_stack(&self, step: Step) -> Option<StackId> {
        let mut events = (step.start.position()..step.end.position()).filter_map(EventIndex::at);
        events.find_map(|event| self.seen_stack(event))
    }

    /// Whether C++ frames name an operator that makes one tensor of several, or a larger one of one; never where the recording has none.
    pub fn joins(&self, stack: StackId) -> bool {
        let frames = self.snapshot.stacks.get(stack);
        frames.iter().any(|frame| self.frames.graph(*frame) == GraphSign::Joins)
    }

    /// The finder of responsible lines.
    pub fn blame(&self) -> Blame<'_> {
        let looping = self.program.main_loop.map(|main| main.frame);
        Blame { snapshot: self.snapshot, trace: self.trace, frames: self.frames, looping }
    }

    /// Allocations as guilty stacks, weighed by their bytes.
    pub fn guilty(&self, allocations: impl IntoIterator<Item = AllocationId>) -> Vec<GuiltyStack> {
        let one = |id| {
            let allocation = self.timeline.allocation(id)?;
            let stack = self.stack_of(allocation)?;
            Some(GuiltyStack { stack, event: allocation.alloc, weight: allocation.bytes.get() })
        };
        allocations.into_iter().filter_map(one).collect()
    }

    /// The line that stands for a stack.
    pub fn site(&self, stack: StackId) -> Option<FrameId> {
        self.frames.site(stack)
    }
}
