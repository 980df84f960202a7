//! The tables that a snapshot's dicts and lists are folded into while the pickle is read.
//!
//! A dict that has an event's keys becomes a row of the event table, and so on for frames, blocks, segments and
//! annotations; a list of frames becomes an interned stack; a list of consecutive rows of one table (a trace, the blocks
//! of a segment) becomes a run.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::words::{Word, word};
use super::{Action, Annotation, Block, BlockState, Event, Frame, Segment, Stacks};
use crate::pickle::{Fold, Heap, Row, Value};
use crate::unit::{Bytes, FrameId, Index, Micros, StackId, StringId};

/// The tables, by the number in a [`Row`].
pub(super) mod table {
    pub(crate) const FRAME: u8 = 0;
    pub(crate) const STACK: u8 = 1;
    pub(crate) const RUN: u8 = 2;
    pub(crate) const EVENT: u8 = 3;
    pub(crate) const BLOCK: u8 = 4;
    pub(crate) const SEGMENT: u8 = 5;
    pub(crate) const ANNOTATION: u8 = 6;
    pub(crate) const HISTORY: u8 = 7;
}

/// Consecutive rows of one table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) table: u8,
    pub(super) first: usize,
    pub(super) length: usize,
}

/// A segment, with its blocks still in the block table.
#[derive(Debug)]
pub(super) struct SegmentRow {
    pub(super) segment: Segment,
    pub(super) blocks: Option<Value>,
}

/// What the blocks of PyTorch 1.13 and 2.0 say of their occupants.
#[derive(Debug, Clone, Copy)]
struct Occupant {
    requested: Bytes,
    stack: Option<StackId>,
}

type Folded<T> = Result<T, &'static str>;

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) stacks: Stacks,
    pub(super) runs: Vec<Run>,
    pub(super) events: Vec<Event>,
    pub(super) blocks: Vec<Block>,
    pub(super) segments: Vec<SegmentRow>,
    pub(super) annotations: Vec<Annotation>,
    /// Annotations that PyTorch 2.4 wrote as events: the event's row, the frame that says START or END and the name.
    pub(super) inline_annotations: Vec<Annotation>,
    pub(super) unknown_keys: BTreeMap<StringId, usize>,
    pub(super) unknown_actions: BTreeMap<StringId, usize>,
    pub(super) any_frames: bool,
    occupants: Vec<Occupant>,
    streams: FxHashMap<i64, u16>,
    scratch: Vec<FrameId>,
}

impl Fold for Records {
    fn dict(&mut self, items: &[Value], heap: &Heap) -> Folded<Option<Row>> {
        match kind(items) {
            Some(table::EVENT) => self.event(items, heap).map(Some),
            Some(table::FRAME) => self.frame(items).map(Some),
            Some(table::BLOCK) => self.block(items, heap).map(Some),
            Some(table::SEGMENT) => self.segment(items, heap).map(Some),
            Some(table::ANNOTATION) => self.annotation(items).map(Some),
            Some(table::HISTORY) => self.occupant(items, heap).map(Some),
            _ => Ok(None),
        }
    }

    fn extend(&mut self, list: Option<Row>, items: &[Value], heap: &Heap) -> Folded<Option<Row>> {
        let Some(first) = items.first().and_then(|&item| heap.row(item)) else { return Ok(None) };
        match list {
            None if first.table() == table::FRAME => self.new_stack(items, heap),
            None => {
                let run = Run { table: first.table(), first: first.index(), length: 0 };
                if !continues(run, items, heap) {
                    return Ok(None);
                }
                self.runs.push(Run { length: items.len(), ..run });
                row(table::RUN, self.runs.len() - 1).map(Some)
            }
            Some(list) if list.table() == table::RUN => {
                let Some(run) = self.runs.get_mut(list.index()) else { return Ok(None) };
                if !continues(*run, items, heap) {
                    return Ok(None);
                }
                run.length += items.len();
                Ok(Some(list))
            }
            Some(_) => Ok(None),
        }
    }

    fn unfold(&self, list: Row) -> Folded<Vec<Value>> {
        if list.table() == table::STACK {
            let id = StackId::at(list.index()).ok_or(TOO_MANY)?;
            self.stacks
                .get(id)
                .iter()
                .map(|frame| row(table::FRAME, frame.position()).map(Value::Row))
                .collect()
        } else {
            let run = self.runs.get(list.index()).ok_or(TOO_MANY)?;
            (run.first..run.first + run.length).map(|at| row(run.table, at).map(Value::Row)).collect()
        }
    }
}

const TOO_MANY: &str = "more records than can be held";

fn row(table: u8, index: usize) -> Folded<Row> {
    Row::new(table, index).ok_or(TOO_MANY)
}

/// Which table a dict belongs to, by the first key that only one of them has.
fn kind(items: &[Value]) -> Option<u8> {
    keys(items).find_map(|(key, _)| match word(key)? {
        Word::Action => Some(table::EVENT),
        Word::Filename => Some(table::FRAME),
        Word::State => Some(table::BLOCK),
        Word::Blocks | Word::TotalSize => Some(table::SEGMENT),
        Word::Stage => Some(table::ANNOTATION),
        Word::RealSize => Some(table::HISTORY),
        _ => None,
    })
}

/// Whether the items are the rows that follow a run.
fn continues(run: Run, items: &[Value], heap: &Heap) -> bool {
    matches!(run.table, table::EVENT | table::BLOCK | table::SEGMENT | table::ANNOTATION | table::HISTORY)
        && items.iter().zip(run.first + run.length..).all(|(&item, expected)| {
            heap.row(item).is_some_and(|row| row.table() == run.table && row.index() == expected)
        })
}

/// The keys and values of a dict's items; items whose key is no text are passed over.
fn keys(items: &[Value]) -> impl Iterator<Item = (StringId, Value)> {
    items.as_chunks::<2>().0.iter().filter_map(|pair| match *pair {
        [Value::Text(key), value] => Some((key, value)),
        _ => None,
    })
}

fn bytes(value: Value, what: &'static str) -> Folded<Bytes> {
    address(value, what).map(Bytes)
}

fn address(value: Value, what: &'static str) -> Folded<u64> {
    match value {
        Value::Int(number) => u64::try_from(number).map_err(|_| what),
        Value::Unsigned(number) => Ok(number),
        _ => Err(what),
    }
}

fn signed(value: Value, what: &'static str) -> Folded<i64> {
    match value {
        Value::Int(number) => Ok(number),
        // A pointer in the upper half, which a later version may write unsigned.
        Value::Unsigned(number) => Ok(number.cast_signed()),
        _ => Err(what),
    }
}

fn text(value: Value, what: &'static str) -> Folded<StringId> {
    match value {
        Value::Text(id) => Ok(id),
        _ => Err(what),
    }
}

impl Records {
    fn event(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
        let mut event = Event {
            time: Micros(0),
            address: 0,
            size: Bytes::ZERO,
            stack: None,
            metadata: None,
            stream: 0,
            action: Action::Other,
            compiled: false,
        };
        let (mut named, mut located, mut sized) = (None, false, false);
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::Action) => named = Some(text(value, "an event's `action` that is no text")?),
                Some(Word::Address | Word::DeviceFree) => {
                    event.address = address(value, "an event's `addr` that is no address")?;
                    located = true;
                }
                Some(Word::Size) => {
                    event.size = bytes(value, "an event's `size` that is no number of bytes")?;
                    sized = true;
                }
                Some(Word::Stream) => {
                    event.stream = self.stream(signed(value, "an event's `stream` that is no number")?);
                }
                Some(Word::Time) => {
                    event.time = Micros(signed(value, "an event's `time_us` that is no number")?);
                }
                Some(Word::CompileContext) => event.compiled = meaningful(value).is_some(),
                Some(Word::UserMetadata) => event.metadata = meaningful(value),
                Some(Word::Frames) => event.stack = Some(self.stack(value, heap)?),
                Some(
                    Word::PoolId
                    | Word::InternalMetadata
                    | Word::ForwardFrames
                    | Word::CppFrames
                    | Word::Category
                    | Word::Device,
                ) => {}
                _ => self.unknown(key),
            }
        }
        let named = named.ok_or("an event without `action`")?;
        event.action = self.action(named);
        if event.action != Action::Other && !(located && sized) {
            return Err("an event without `addr` or `size`");
        }
        if word(named) == Some(Word::UserDefined) {
            self.inline_annotation(&event);
        }
        self.events.push(event);
        row(table::EVENT, self.events.len() - 1)
    }

    fn action(&mut self, named: StringId) -> Action {
        match word(named) {
            Some(Word::Alloc) => Action::Alloc,
            Some(Word::FreeRequested) => Action::FreeRequested,
            Some(Word::FreeCompleted | Word::Free) => Action::FreeCompleted,
            Some(Word::SegmentAlloc) => Action::SegmentAlloc,
            Some(Word::SegmentFree) => Action::SegmentFree,
            Some(Word::SegmentMap) => Action::SegmentMap,
            Some(Word::SegmentUnmap) => Action::SegmentUnmap,
            Some(Word::Snapshot) => Action::Snapshot,
            Some(Word::Oom) => Action::OutOfMemory,
            Some(Word::Annotate | Word::UserDefined | Word::WorkspaceSnapshot) => Action::Other,
            _ => {
                *self.unknown_actions.entry(named).or_insert(0) += 1;
                Action::Other
            }
        }
    }

    /// PyTorch 2.4: an event whose one frame is named START or END and whose file is the annotation's name.
    fn inline_annotation(&mut self, event: &Event) {
        let frame = event.stack.and_then(|id| self.stacks.get(id).first().copied());
        if let Some(frame) = frame.and_then(|id| self.stacks.frame(id)) {
            let start = word(frame.name) == Some(Word::Start);
            self.inline_annotations.push(Annotation { name: frame.file, start, time: event.time, device: 0 });
        }
    }

    fn frame(&mut self, items: &[Value]) -> Folded<Row> {
        let (mut name, mut file, mut line) = (None, None, 0);
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::Name) => name = Some(text(value, "a frame's `name` that is no text")?),
                Some(Word::Filename) => file = Some(text(value, "a frame's `filename` that is no text")?),
                // C++ frames carry offsets into their library, which can be larger than any line.
                Some(Word::Line) => {
                    line = u32::try_from(signed(value, "a frame's `line` that is no number")?).unwrap_or(0);
                }
                Some(
                    Word::FxNodeOp
                    | Word::FxNodeName
                    | Word::FxNodeTarget
                    | Word::FxNodeInfo
                    | Word::FxOriginalTrace,
                ) => {}
                _ => self.unknown(key),
            }
        }
        let (Some(name), Some(file)) = (name, file) else {
            return Err("a frame without `name` or `filename`");
        };
        let id = self.stacks.intern_frame(Frame { name, file, line }).ok_or(TOO_MANY)?;
        row(table::FRAME, id.position())
    }

    fn new_stack(&mut self, items: &[Value], heap: &Heap) -> Folded<Option<Row>> {
        if !self.gather_frames(items, heap) {
            return Ok(None);
        }
        self.any_frames = true;
        let id = self.stacks.intern(&self.scratch).ok_or(TOO_MANY)?;
        row(table::STACK, id.position()).map(Some)
    }

    /// Puts the frames of a list into `scratch`; false where an item is no frame.
    fn gather_frames(&mut self, items: &[Value], heap: &Heap) -> bool {
        self.scratch.clear();
        self.scratch.reserve(items.len());
        for &item in items {
            match heap.row(item) {
                Some(row) if row.table() == table::FRAME => self.scratch.extend(FrameId::at(row.index())),
                _ => return false,
            }
        }
        true
    }

    /// The stack that a `frames` value stands for.
    fn stack(&mut self, value: Value, heap: &Heap) -> Folded<StackId> {
        const WHAT: &str = "`frames` that is no list of frames";
        if let Some(row) = heap.row(value) {
            return match row.table() {
                table::STACK => StackId::at(row.index()).ok_or(TOO_MANY),
                _ => Err(WHAT),
            };
        }
        if value == Value::None {
            self.scratch.clear();
        } else if !self.gather_frames(heap.list(value).ok_or(WHAT)?, heap) {
            return Err(WHAT);
        }
        self.any_frames |= !self.scratch.is_empty();
        self.stacks.intern(&self.scratch).ok_or(TOO_MANY)
    }

    fn block(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
        let mut block = Block {
            address: 0,
            size: Bytes::ZERO,
            requested: Bytes::ZERO,
            stack: None,
            state: BlockState::Inactive,
        };
        let (mut sized, mut requested, mut occupant) = (false, false, None);
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::BlockAddress | Word::Address) => {
                    block.address = address(value, "a block's `address` that is no address")?;
                }
                Some(Word::Size) => {
                    block.size = bytes(value, "a block's `size` that is no number of bytes")?;
                    sized = true;
                }
                Some(Word::RequestedSize) => {
                    block.requested = bytes(value, "a block's `requested_size` that is no number of bytes")?;
                    requested = true;
                }
                Some(Word::State) => {
                    block.state = match word(text(value, "a block's `state` that is no text")?) {
                        Some(Word::ActiveAllocated) => BlockState::Allocated,
                        Some(Word::ActivePendingFree | Word::ActiveAwaitingFree) => BlockState::PendingFree,
                        _ => BlockState::Inactive,
                    };
                }
                Some(Word::Frames) => block.stack = Some(self.stack(value, heap)?),
                Some(Word::History) => occupant = self.newest_occupant(value, heap),
                Some(Word::ForwardFrames | Word::CppFrames) => {}
                _ => self.unknown(key),
            }
        }
        if !sized {
            return Err("a block without `size`");
        }
        if let Some(occupant) = occupant {
            block.stack = block.stack.or(occupant.stack);
        }
        if !requested {
            block.requested = occupant.map_or(block.size, |occupant| occupant.requested);
        }
        self.blocks.push(block);
        row(table::BLOCK, self.blocks.len() - 1)
    }

    /// `history` lists the newest occupant first (`torch/cuda/_memory_viz.py` reads `history[0]`).
    fn newest_occupant(&self, value: Value, heap: &Heap) -> Option<Occupant> {
        let run = heap.row(value).filter(|row| row.table() == table::RUN)?;
        let run = self.runs.get(run.index()).filter(|run| run.table == table::HISTORY)?;
        self.occupants.get(run.first).copied()
    }

    fn occupant(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
        let mut occupant = Occupant { requested: Bytes::ZERO, stack: None };
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::RealSize) => {
                    occupant.requested = bytes(value, "a `real_size` that is no number of bytes")?;
                }
                Some(Word::Frames) => occupant.stack = Some(self.stack(value, heap)?),
                _ => {}
            }
        }
        self.occupants.push(occupant);
        row(table::HISTORY, self.occupants.len() - 1)
    }

    fn segment(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
        let mut segment = Segment::default();
        let mut blocks = None;
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::Device) => {
                    let device = signed(value, "a segment's `device` that is no number")?;
                    segment.device =
                        i32::try_from(device).map_err(|_| "a segment's `device` that is no ordinal")?;
                }
                Some(Word::BlockAddress) => {
                    segment.address = address(value, "a segment's `address` that is no address")?;
                }
                Some(Word::TotalSize) => {
                    segment.total_size = bytes(value, "a segment's `total_size` that is no number of bytes")?;
                }
                Some(Word::Stream) => {
                    segment.stream = self.stream(signed(value, "a segment's `stream` that is no number")?);
                }
                Some(Word::SegmentType) => {
                    segment.small_pool = matches!(value, Value::Text(id) if word(id) == Some(Word::Small));
                }
                Some(Word::SegmentPoolId) => segment.pool = pool(value, heap)?,
                Some(Word::IsExpandable) => segment.expandable = value == Value::Bool(true),
                Some(Word::Frames) => segment.stack = Some(self.stack(value, heap)?),
                Some(Word::Blocks) => blocks = Some(value),
                Some(Word::AllocatedSize | Word::ActiveSize | Word::RequestedSize | Word::ForwardFrames) => {}
                _ => self.unknown(key),
            }
        }
        self.segments.push(SegmentRow { segment, blocks });
        row(table::SEGMENT, self.segments.len() - 1)
    }

    fn annotation(&mut self, items: &[Value]) -> Folded<Row> {
        let (mut name, mut start, mut time, mut device) = (None, false, Micros(0), 0);
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::Name) => name = Some(text(value, "an annotation's `name` that is no text")?),
                Some(Word::Stage) => {
                    start = matches!(value, Value::Text(id) if word(id) == Some(Word::Start));
                }
                Some(Word::Time) => {
                    time = Micros(signed(value, "an annotation's `time_us` that is no number")?);
                }
                Some(Word::Device) => {
                    let ordinal = signed(value, "an annotation's `device` that is no number")?;
                    device = i32::try_from(ordinal).unwrap_or(-1);
                }
                // The format leaves an annotation's keys open.
                _ => {}
            }
        }
        let name = name.ok_or("an annotation without `name`")?;
        self.annotations.push(Annotation { name, start, time, device });
        row(table::ANNOTATION, self.annotations.len() - 1)
    }

    /// Streams are numbered as they appear; the default stream is 0.
    fn stream(&mut self, pointer: i64) -> u16 {
        if pointer == 0 {
            return 0;
        }
        // More than 2^16 streams would be a hostile file; the surplus shares the last number.
        let next = u16::try_from(self.streams.len() + 1).unwrap_or(u16::MAX);
        if next == u16::MAX {
            return self.streams.get(&pointer).copied().unwrap_or(next);
        }
        *self.streams.entry(pointer).or_insert(next)
    }

    fn unknown(&mut self, key: StringId) {
        *self.unknown_keys.entry(key).or_insert(0) += 1;
    }
}

/// A text that says something: not empty and not `N/A`.
fn meaningful(value: Value) -> Option<StringId> {
    match value {
        Value::Text(id) if !matches!(word(id), Some(Word::NotApplicable | Word::Empty)) => Some(id),
        _ => None,
    }
}

fn pool(value: Value, heap: &Heap) -> Folded<(u64, u64)> {
    const WHAT: &str = "a `segment_pool_id` that is no pair of numbers";
    match heap.tuple(value).or_else(|| heap.list(value)) {
        Some(&[first, second]) => Ok((address(first, WHAT)?, address(second, WHAT)?)),
        _ => Err(WHAT),
    }
}
