//! The typed snapshot: what a file says, in one shape for every PyTorch version.
//!
//! In: the stream of a pickle. Out: events, stacks, segments, blocks, annotations and settings, each distinct string,
//! frame and stack once. What a file lacks or what does not add up becomes a [`Gap`], never a guess.
//!
//! The pickle is read in one pass. Dicts that look like an event, a frame, a block, a segment or an annotation are
//! folded into rows of flat tables the moment they are complete (`records`), so that no tree of the file is ever
//! built; at the end `assemble` puts the tables in place.

mod assemble;
mod collections;
mod ended;
mod error;
mod excerpt;
mod gaps;
mod listed;
mod modelled;
mod profile;
mod records;
mod stacks;
mod words;
mod write;

pub use collections::Collections;
pub use ended::Ended;
pub use error::SnapshotError;
pub use excerpt::{
    DEEPEST as DEEPEST_INHERITED, Excerpt, Inherited, InheritedPlace, MOST_FINDINGS as MOST_INHERITED,
};
pub use modelled::{Branch, Modelled};
pub use stacks::{Frame, Stacks};

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::pickle::PickleLimits;
use crate::unit::{Bytes, DeviceIndex, EventIndex, Index, Micros, StackId, StringId, StringInterner};

/// One memory snapshot.
#[derive(Debug, Default, Clone)]
pub struct Snapshot {
    /// Every string of the file that is kept: function names, files, annotation names.
    pub strings: StringInterner,
    /// Every distinct frame and stack.
    pub stacks: Stacks,
    /// One trace a device, in the order of device ordinals; devices that did nothing have an empty one.
    pub devices: Vec<DeviceTrace>,
    /// The allocator's segments when the snapshot was taken, all devices.
    pub segments: Vec<Segment>,
    /// `record_function` ranges, oldest first.
    pub annotations: Vec<Annotation>,
    /// What the file says of the allocator's settings.
    pub settings: AllocatorSettings,
    /// The pointers of the streams by number, from number 1 on; number 0 is the default stream, whose pointer is 0.
    pub streams: Vec<i64>,
    /// The distinct particulars of events, by [`Event::particulars`].
    pub particulars: Vec<Particulars>,
    /// Where memlint cut this out of a longer recording: which part it is, and what was found in the whole. What was
    /// allocated before is then missing on purpose, and not for want of a larger buffer.
    pub excerpt: Option<Excerpt>,
    /// Whether there was a GPU: what stood in for it, where there was none.
    pub modelled: Option<Modelled>,
    /// How the program ended, where it did not come to its own end.
    pub ended: Option<Ended>,
    /// When Python's garbage collector freed something, where that was recorded.
    pub collections: Option<Collections>,
    /// What is missing or does not add up.
    pub gaps: Vec<Gap>,
}

/// The recorded events of one device, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceTrace {
    /// The events; their order is the order in which the allocator acted (times may tie).
    pub events: Vec<Event>,
}

impl DeviceTrace {
    /// Whether anything was recorded that moves memory. Markers, and actions of later versions, do not.
    pub fn has_history(&self) -> bool {
        let moves = |event: &Event| !matches!(event.action, Action::Snapshot | Action::Other);
        self.events.iter().any(moves)
    }

    /// Whether any event has a stack with a frame. Recorded with `context=None`, events have none, or empty ones.
    pub fn has_stacks(&self, stacks: &Stacks) -> bool {
        let has_frames = |stack: StackId| !stacks.get(stack).is_empty();
        self.events.iter().any(|event| event.stack.is_some_and(has_frames))
    }

    /// The event at an index.
    pub fn event(&self, index: EventIndex) -> Option<&Event> {
        self.events.get(index.position())
    }
}

/// One event of a trace, 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in microseconds since the epoch; 0 where the version did not record it.
    pub time: Micros,
    /// The block's or segment's address; for [`Action::OutOfMemory`] the free bytes of the device.
    pub address: u64,
    /// Requested bytes of an allocation or free, real bytes of a segment event.
    pub size: Bytes,
    /// The stack; `None` where no context was recorded, an *empty* stack where the thread had no Python frames.
    pub stack: Option<StackId>,
    /// `user_metadata`, where it was set.
    pub metadata: Option<StringId>,
    /// The stream, numbered in the order of first appearance; 0 is the default stream.
    pub stream: u16,
    /// What happened.
    pub action: Action,
    /// Whether `compile_context` says that compiled code was running.
    pub compiled: bool,
    /// What else it says: a number for [`Snapshot::particulars`].
    pub particulars: u16,
}

impl Event {
    /// By how much it changes the bytes held from the driver; `None` for what asks the driver for nothing.
    pub fn reserves(&self) -> Option<i128> {
        let bytes = i128::from(self.size.get());
        match self.action {
            Action::SegmentAlloc | Action::SegmentMap => Some(bytes),
            Action::SegmentFree | Action::SegmentUnmap => Some(-bytes),
            _ => None,
        }
    }
}

/// What an event says that no analysis needs for every event. A file has few distinct ones, so an event holds a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Particulars {
    /// The action's name as written, where it is [`Action::Other`].
    pub action: Option<StringId>,
    /// `compile_context` as written (`N/A` outside compiled code), where the version has the key.
    pub compile_context: Option<StringId>,
    /// `internal_metadata`, where it was set.
    pub internal_metadata: Option<StringId>,
    /// The private pool, (0, 0) for the default one, where the version has the key (2.12 on).
    pub pool: Option<(u64, u64)>,
    /// Whether the version has the key `user_metadata` (2.10 on).
    pub has_metadata: bool,
    /// Whether the version has the key `time_us`.
    pub timed: bool,
}

/// What an event records (FORMAT of `torch.cuda.memory._snapshot`, `TraceEntry::Action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A block was handed out.
    Alloc,
    /// The program gave a block back.
    FreeRequested,
    /// The block went back to the pool.
    FreeCompleted,
    /// cudaMalloc.
    SegmentAlloc,
    /// cudaFree.
    SegmentFree,
    /// Pages were mapped into an expandable segment.
    SegmentMap,
    /// Pages were unmapped.
    SegmentUnmap,
    /// An earlier snapshot was taken here.
    Snapshot,
    /// Every retry failed; an exception follows.
    OutOfMemory,
    /// Anything else (`annotate`, `user_defined`, actions of later versions): kept in place, without effect.
    Other,
}

/// One contiguous range that the allocator holds from the driver, as it was when the snapshot was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Device ordinal; -1 for pinned host memory.
    pub device: i32,
    /// First byte.
    pub address: u64,
    /// Bytes held from the driver.
    pub total_size: Bytes,
    /// The stream, numbered as in [`Event::stream`].
    pub stream: u16,
    /// Whether it belongs to the pool of requests up to 1 MiB.
    pub small_pool: bool,
    /// Private pool; (0, 0) is the default pool.
    pub pool: (u64, u64),
    /// Whether it can grow in place.
    pub expandable: bool,
    /// The stack that made the driver call.
    pub stack: Option<StackId>,
    /// The blocks that tile it, by address.
    pub blocks: Vec<Block>,
}

/// A block of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub address: u64,
    /// Bytes it occupies, after rounding.
    pub size: Bytes,
    /// Bytes that were asked for; meaningful while the block is in use.
    pub requested: Bytes,
    /// The allocation's stack, where one was recorded.
    pub stack: Option<StackId>,
    /// Whether it is in use.
    pub state: BlockState,
}

/// Whether a block is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// Handed out and not given back.
    Allocated,
    /// Given back, but another stream may still be using it.
    PendingFree,
    /// Free for the next request.
    Inactive,
}

/// One end of a `record_function` range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    /// The range's name, such as `Optimizer.step#SGD.step`.
    pub name: StringId,
    /// Whether the range begins here (otherwise it ends).
    pub start: bool,
    /// When, on the clock of [`Event::time`].
    pub time: Micros,
    /// The current device of the thread.
    pub device: i32,
}

/// `allocator_settings`, as far as it bears on memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllocatorSettings {
    /// The configuration string as given, if the file has one.
    pub conf: Option<String>,
    /// Blocks from this size on are never split; `None` is unlimited.
    pub max_split_size: Option<Bytes>,
    /// Reserved share from which free blocks are collected; 0 is off.
    pub garbage_collection_threshold: f64,
    /// Whether segments grow in place.
    pub expandable_segments: bool,
    /// Divisions between powers of two to which sizes are rounded, for sizes from 1 MiB, 2 MiB, 4 MiB, ... 32 GiB; 0
    /// is off.
    pub roundup_power2_divisions: [u32; 16],
}

/// Something that the file lacks, or that does not add up: a limit on what can be concluded from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Gap {
    /// The file holds segments only.
    NoTraces,
    /// No event has a stack: recorded with `context=None`.
    NoStacks,
    /// Events carry no times.
    NoTimes,
    /// Times run backwards by this many microseconds at most.
    TimesOutOfOrder(i64),
    /// Keys that this version does not know, with how often they occur.
    UnknownKeys(Vec<(String, usize)>),
    /// Actions that this version does not know, with how often they occur.
    UnknownActions(Vec<(String, usize)>),
    /// States of blocks that this version does not know, with how often they occur: such blocks are taken for free.
    UnknownStates(Vec<(String, usize)>),
    /// Segments whose blocks overlap, leave them or do not fill them, counted.
    InconsistentSegments(usize),
    /// The file also describes pinned host memory (PyTorch 2.14 on), which no analysis looks at.
    HostMemory {
        /// Blocks held from the system at the end; each is a segment of its own, and may be in use or cached.
        blocks: usize,
        /// Their bytes.
        bytes: Bytes,
        /// Bytes of blocks that were in use at the end, or given back while a stream may still read them.
        used: Bytes,
        /// Events in the history of host memory, which is not kept.
        events: usize,
    },
    /// PyTorch's `_memory_viz.py profile_plot` made it from a profile: lifetimes of tensors, not of blocks, and one
    /// segment a device that is none. What it says of the CPU is left out.
    FromProfiler,
}

impl Snapshot {
    /// Reads a pickled snapshot.
    ///
    /// # Errors
    /// Where the bytes are no pickle, a pickle that wants to run code, or no memory snapshot.
    pub fn read(pickle: impl Read, limits: &PickleLimits) -> Result<Snapshot, SnapshotError> {
        assemble::read(pickle, limits)
    }

    /// Writes the snapshot as a pickle in PyTorch's layout, which [`Snapshot::read`], CPython's `pickle.load` and
    /// PyTorch's viewer read.
    ///
    /// # Errors
    /// Where `out` fails.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        write::write(self, out)
    }

    /// The devices that recorded events or hold segments, with their traces.
    pub fn active_devices(&self) -> impl Iterator<Item = (DeviceIndex, &DeviceTrace)> {
        self.devices.iter().enumerate().filter_map(|(ordinal, trace)| {
            let used = !trace.events.is_empty() || self.segments_of(ordinal).next().is_some();
            used.then(|| DeviceIndex::at(ordinal).map(|device| (device, trace))).flatten()
        })
    }

    /// The segments of a device, by address.
    pub fn segments_of(&self, ordinal: usize) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| usize::try_from(segment.device) == Ok(ordinal))
    }

    /// What an event says beside its fields; nothing where the snapshot was not read from a file.
    pub fn particulars_of(&self, event: &Event) -> Particulars {
        self.particulars.get(usize::from(event.particulars)).copied().unwrap_or_default()
    }

    /// The pointer of a stream, as the file has it.
    pub fn stream_pointer(&self, stream: u16) -> i64 {
        let known = usize::from(stream).checked_sub(1).and_then(|at| self.streams.get(at));
        known.copied().unwrap_or(i64::from(stream))
    }

    /// The text of an interned string.
    pub fn text(&self, id: StringId) -> &str {
        self.strings.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_takes_40_bytes() {
        assert_eq!(size_of::<Event>(), 40);
    }
}
