//! A trace that is written down event by event.

use super::super::{Familiar, Familiars, Role, Roles};
use crate::frames::Frames;
use crate::program::{Iteration, Phase, Program};
use crate::snapshot::{Action, Block, BlockState, DeviceTrace, Event, Frame, Segment, Snapshot};
use crate::timeline::Timeline;
use crate::unit::{AllocationId, Bytes, DeviceIndex, EventIndex, FrameId, Index, Micros, StackId};

pub(super) const MODULE: &str = "/site-packages/torch/nn/modules/module.py";
pub(super) const ADAM: &str = "/site-packages/torch/optim/adam.py";

/// Frames of a C++ stack from the allocator outwards.
pub(super) const CUDNN: &[(&str, &str)] = &[
    ("", "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    ("", "at::native::run_conv_plan(cudnnContext*, at::Tensor const&)"),
];
pub(super) const REDUCTION: &[(&str, &str)] = &[
    ("", "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    ("", "void at::native::gpu_reduce_kernel<float, float>(at::TensorIterator&)"),
];
pub(super) const TENSOR: &[(&str, &str)] = &[
    ("", "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"),
    ("", "at::detail::empty_generic(c10::ArrayRef<long>, c10::Allocator*)"),
    ("", "at::native::cudnn_convolution(at::Tensor const&)"),
];
pub(super) const MOVE: &[(&str, &str)] =
    &[(MODULE, "convert"), (MODULE, "_apply"), (MODULE, "to"), ("train.py", "main")];
pub(super) const USER: &[(&str, &str)] = &[("train.py", "main")];
pub(super) const ENGINE: &[(&str, &str)] = &[];

/// A trace that is written down event by event. Each allocation has an address of its own; its name is its position.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) snapshot: Snapshot,
    pub(super) events: Vec<Event>,
    pub(super) phases: Vec<Phase>,
    iterations: Vec<usize>,
    next: u64,
}

impl Trace {
    fn stack(&mut self, frames: &[(&str, &str)]) -> Option<StackId> {
        let ids: Vec<FrameId> = frames
            .iter()
            .map(|(file, name)| {
                let (file, name) = (
                    self.snapshot.strings.intern(file).unwrap(),
                    self.snapshot.strings.intern(name).unwrap(),
                );
                self.snapshot.stacks.intern_frame(Frame { name, file, line: 1 }).unwrap()
            })
            .collect();
        self.snapshot.stacks.intern(&ids)
    }

    fn push(&mut self, phase: Phase, action: Action, address: u64, mib: u64, stack: Option<StackId>) {
        let time = Micros(i64::try_from(self.events.len()).unwrap());
        let size = Bytes::MIB.times(mib);
        self.events.push(Event {
            time,
            address,
            size,
            stack,
            metadata: None,
            stream: 0,
            action,
            compiled: false,
            particulars: 0,
        });
        self.phases.push(phase);
    }

    /// Allocates; gives the address.
    pub(super) fn alloc(&mut self, phase: Phase, mib: u64, frames: &[(&str, &str)]) -> u64 {
        let stack = self.stack(frames);
        self.next += 1 << 32;
        self.push(phase, Action::Alloc, self.next, mib, stack);
        self.next
    }

    pub(super) fn free(&mut self, phase: Phase, address: u64, frames: &[(&str, &str)]) {
        let stack = self.stack(frames);
        let born = self.events.iter().find(|event| event.address == address);
        let mib = born.map_or(1, |event| event.size.get() >> 20);
        self.push(phase, Action::FreeRequested, address, mib, stack);
        self.push(phase, Action::FreeCompleted, address, mib, stack);
    }

    /// A request of the engine's fails.
    pub(super) fn runs_out(&mut self, mib: u64) {
        let stack = self.stack(ENGINE);
        self.push(Phase::Backward, Action::OutOfMemory, 0, mib, stack);
    }

    pub(super) fn iteration(&mut self) {
        self.iterations.push(self.events.len());
    }

    /// A block that is there from before the recording to its end.
    pub(super) fn earlier(&mut self, mib: u64) -> u64 {
        self.block(mib, None)
    }

    /// Such a block, with the stack that made it.
    pub(super) fn standing(&mut self, mib: u64, frames: &[(&str, &str)]) -> u64 {
        let stack = self.stack(frames);
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
        self.snapshot.segments.push(Segment {
            address: self.next,
            total_size: block.size,
            blocks: vec![block],
            ..Segment::default()
        });
        self.next
    }

    /// The roles, by address.
    pub(super) fn roles(self) -> impl Fn(u64) -> Role {
        let (timeline, roles, _) = self.understood();
        move |address| roles.get(at(&timeline, address))
    }

    /// What people know allocations by, by address.
    pub(super) fn familiars(self) -> impl Fn(u64) -> Option<Familiar> {
        let (timeline, _, familiars) = self.understood();
        move |address| familiars.get(at(&timeline, address))
    }

    fn understood(mut self) -> (Timeline, Roles, Familiars) {
        let index = |at: usize| EventIndex::at(at).unwrap();
        let ends: Vec<usize> = self.iterations.iter().skip(1).copied().chain([self.events.len()]).collect();
        let iterations = self.iterations.iter().zip(ends).map(|(&start, end)| Iteration {
            start: index(start),
            end: index(end),
            start_time: Micros(0),
            end_time: Micros(0),
            complete: true,
        });
        let program = Program { iterations: iterations.collect(), phases: self.phases, ..Program::default() };
        self.snapshot.devices = vec![DeviceTrace { events: self.events }];
        let timeline = Timeline::of(&self.snapshot, DeviceIndex::at(0).unwrap());
        let frames = Frames::of(&self.snapshot);
        let roles = Roles::infer(&self.snapshot, &timeline, &program, &frames);
        let familiars = Familiars::of((&self.snapshot, &frames), &timeline, &program, &roles);
        (timeline, roles, familiars)
    }
}

fn at(timeline: &Timeline, address: u64) -> AllocationId {
    timeline.iter().find(|(_, allocation)| allocation.address == address).map(|(id, _)| id).unwrap()
}
