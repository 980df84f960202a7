//! A trace that is written down event by event, with its phases and iterations, and what memlint takes its blocks for.

use crate::familiar::{Familiar, Familiars};
use crate::frames::Frames;
use crate::program::{Iteration, Phase, Program, Step};
use crate::role::{Role, Roles};
use crate::snapshot::{Action, Block, BlockState, Event, Segment};
use crate::testing::{self, Recorder};
use crate::timeline::Timeline;
use crate::unit::{AllocationId, Bytes, EventIndex, Index, Micros, StackId};

pub(crate) const MODULE: &str = "/site-packages/torch/nn/modules/module.py";
pub(crate) const ADAM: &str = "/site-packages/torch/optim/adam.py";

/// Frames of a C++ stack from the allocator outwards.
pub(crate) const CUDNN: &[(&str, &str)] = &[
    ("", "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    ("", "at::native::run_conv_plan(cudnnContext*, at::Tensor const&)"),
];
pub(crate) const TENSOR: &[(&str, &str)] = &[
    ("", "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    ("", "at::detail::empty_generic(c10::ArrayRef<long>, c10::Allocator*)"),
    ("", "at::native::cudnn_convolution(at::Tensor const&)"),
];
pub(crate) const MOVE: &[(&str, &str)] =
    &[(MODULE, "convert"), (MODULE, "_apply"), (MODULE, "to"), ("train.py", "main")];
pub(crate) const USER: &[(&str, &str)] = &[("train.py", "main")];
pub(crate) const ENGINE: &[(&str, &str)] = &[];

/// A trace that is written down event by event. Each allocation has an address of its own; its name is its position.
#[derive(Default)]
pub(crate) struct HandTrace {
    pub(crate) recorder: Recorder,
    pub(crate) phases: Vec<Phase>,
    iterations: Vec<usize>,
    steps: Vec<Step>,
    next: u64,
}

impl HandTrace {
    fn push(&mut self, phase: Phase, action: Action, address: u64, mib: u64, stack: Option<StackId>) {
        let time = Micros(i64::try_from(self.recorder.events.len()).unwrap());
        self.recorder.push(Event { time, stack, ..testing::event(action, address, Bytes::MIB.times(mib)) });
        self.phases.push(phase);
    }

    /// Allocates; gives the address.
    pub(crate) fn alloc(&mut self, phase: Phase, mib: u64, frames: &[(&str, &str)]) -> u64 {
        let stack = self.recorder.stack(frames);
        self.next += 1 << 32;
        self.push(phase, Action::Alloc, self.next, mib, stack);
        self.next
    }

    pub(crate) fn free(&mut self, phase: Phase, address: u64, frames: &[(&str, &str)]) {
        let stack = self.recorder.stack(frames);
        let born = self.recorder.events.iter().find(|event| event.address == address);
        let mib = born.map_or(1, |event| event.size.get() >> 20);
        self.push(phase, Action::FreeRequested, address, mib, stack);
        self.push(phase, Action::FreeCompleted, address, mib, stack);
    }

    pub(crate) fn iteration(&mut self) {
        self.iterations.push(self.recorder.events.len());
    }

    /// An optimizer steps, and only an annotation shows it.
    pub(crate) fn step(&mut self) {
        let now = EventIndex::at(self.recorder.events.len()).unwrap();
        self.steps.push(Step { start: now, end: now });
    }

    /// A block that is there from before the recording to its end.
    pub(crate) fn earlier(&mut self, mib: u64) -> u64 {
        self.block(mib, None)
    }

    /// Such a block, with the stack that made it.
    pub(crate) fn standing(&mut self, mib: u64, frames: &[(&str, &str)]) -> u64 {
        let stack = self.recorder.stack(frames);
        self.block(mib, stack)
    }

    fn block(&mut self, mib: u64, stack: Option<StackId>) -> u64 {
        self.next += 1 << 32;
        let block = Block {
            address: self.next,
            size: Bytes::MIB.times(mib),
            requested: Bytes::MIB.times(mib),
            stack,
            state: BlockState::Allocated,
        };
        self.recorder.snapshot.segments.push(Segment {
            address: self.next,
            total_size: block.size,
            blocks: vec![block],
            ..Segment::default()
        });
        self.next
    }

    /// The roles, by address.
    pub(crate) fn roles(self) -> impl Fn(u64) -> Role {
        let (timeline, roles, _) = self.understood();
        move |address| roles.get(at(&timeline, address))
    }

    /// What people know allocations by, by address.
    pub(crate) fn familiars(self) -> impl Fn(u64) -> Option<Familiar> {
        let (timeline, _, familiars) = self.understood();
        move |address| familiars.get(at(&timeline, address))
    }

    fn understood(self) -> (Timeline, Roles, Familiars) {
        let index = |at: usize| EventIndex::at(at).unwrap();
        let ends: Vec<usize> =
            self.iterations.iter().skip(1).copied().chain([self.recorder.events.len()]).collect();
        let iterations = self.iterations.iter().zip(ends).map(|(&start, end)| Iteration {
            start: index(start),
            end: index(end),
            start_time: Micros(0),
            end_time: Micros(0),
            complete: true,
        });
        let program = Program {
            iterations: iterations.collect(),
            phases: self.phases,
            steps: self.steps,
            ..Program::default()
        };
        let (snapshot, timeline) = self.recorder.ended();
        let frames = Frames::of(&snapshot);
        let roles = Roles::infer(&snapshot, &timeline, &program, &frames);
        let familiars = Familiars::of((&snapshot, &frames), &timeline, &program, &roles);
        (timeline, roles, familiars)
    }
}

fn at(timeline: &Timeline, address: u64) -> AllocationId {
    timeline.iter().find(|(_, allocation)| allocation.address == address).map(|(id, _)| id).unwrap()
}
