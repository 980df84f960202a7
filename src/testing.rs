//! Recordings made by hand, for tests.
//!
//! A [`Recorder`] writes down events and stacks; what a test of its own knows besides (`program` what PyTorch's frames look like, `role`
//! phases) stands there, around one. Tests of lifetimes need no recording: [`allocation`] and [`timeline`] make them up.

pub(crate) mod by_hand;

use crate::snapshot::{Action, DeviceTrace, Event, Frame, Snapshot};
use crate::timeline::{Agreement, Allocation, FreeStacks, Levels, Peak, Timeline};
use crate::unit::{Bytes, DeviceIndex, EventIndex, FrameId, Index, Micros, StackId};

/// A recording of one device in the making.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) snapshot: Snapshot,
    pub(crate) events: Vec<Event>,
}

impl Recorder {
    pub(crate) fn frame(&mut self, file: &str, name: &str, line: u32) -> FrameId {
        let [file, name] = [file, name].map(|text| self.snapshot.strings.intern(text).unwrap());
        self.snapshot.stacks.intern_frame(Frame { name, file, line }).unwrap()
    }

    /// A stack of frames, innermost first, each a file and a function.
    pub(crate) fn stack(&mut self, frames: &[(&str, &str)]) -> Option<StackId> {
        let frames: Vec<FrameId> = frames.iter().map(|(file, name)| self.frame(file, name, 1)).collect();
        self.snapshot.stacks.intern(&frames)
    }

    /// The position of the event.
    pub(crate) fn push(&mut self, event: Event) -> usize {
        self.events.push(event);
        self.events.len() - 1
    }

    pub(crate) fn ended(self) -> (Snapshot, Timeline) {
        let Recorder { mut snapshot, events } = self;
        snapshot.devices = vec![DeviceTrace { events }];
        let timeline = Timeline::of(&snapshot, DeviceIndex::at(0).unwrap());
        (snapshot, timeline)
    }
}

/// An event that says no more than it has to.
pub(crate) fn event(action: Action, address: u64, size: Bytes) -> Event {
    Event {
        time: Micros(0),
        address,
        size,
        stack: None,
        metadata: None,
        stream: 0,
        action,
        compiled: false,
        particulars: 0,
    }
}

pub(crate) fn at(position: usize) -> EventIndex {
    EventIndex::at(position).unwrap()
}

/// What is asked for at one event and free from another on; from before the recording, or to its end.
pub(crate) fn allocation(bytes: u64, alloc: Option<usize>, free: Option<usize>) -> Allocation {
    Allocation {
        address: 0,
        bytes: Bytes(bytes),
        alloc: alloc.map(at),
        free_requested: None,
        free: free.map(at),
        stack: None,
        stream: 0,
    }
}

/// The timeline of some allocations, with the bytes that are held before the first event and after each.
pub(crate) fn timeline(allocations: Vec<Allocation>, start: u64, after: &[u64]) -> Timeline {
    let change = |bytes: &u64| i64::try_from(*bytes).unwrap() - i64::try_from(start).unwrap();
    let last = *after.last().unwrap();
    let (highest, bytes) = after.iter().enumerate().rev().max_by_key(|(_, bytes)| **bytes).unwrap();
    Timeline {
        device: DeviceIndex::at(0).unwrap(),
        allocations,
        allocation_of: vec![None; after.len()],
        levels: Levels::of(Bytes(start), after.iter().map(change).collect()),
        requested_at_start: Bytes(start),
        reserved_at_start: Bytes::ZERO,
        peak_requested: Peak { bytes: Bytes(*bytes), event: Some(at(highest)) },
        peak_reserved: Peak::default(),
        requested_at_end: Bytes(last),
        reserved_at_end: Bytes::ZERO,
        agreement: Agreement::default(),
        free_stacks: FreeStacks::Own,
    }
}
