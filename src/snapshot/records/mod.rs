//! The tables that a snapshot's dicts and lists are folded into while the pickle is read.
//!
//! A dict that has an event's keys becomes a row of the event table, and so on for frames, blocks, segments and
//! annotations; a list of frames becomes an interned stack; a list of consecutive rows of one table (a trace, the blocks
//! of a segment) becomes a run.

mod annotations;
mod events;
mod frames;
mod segments;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use events::FieldPlaces;
use rustc_hash::FxHashMap;

use super::words::{KnownWord, word};
use super::{Annotation, Block, Event, Particulars, Segment, Stacks};
use crate::pickle::{Fold, Heap, Node, TableRow, Value};
use crate::unit::{Bytes, FrameId, Index, StackId, StringId};

/// The tables, by the number in a [`TableRow`].
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
pub(super) struct RowRun {
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

/// The keys of an event, with the places of its values where there are no others, or of a block.
#[derive(Debug)]
pub(super) enum Keys {
    Event(Vec<StringId>, Option<FieldPlaces>),
    Block(Vec<StringId>),
}

type Folded<T> = Result<T, &'static str>;

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) stacks: Stacks,
    pub(super) runs: Vec<RowRun>,
    pub(super) events: Vec<Event>,
    pub(super) blocks: Vec<Block>,
    pub(super) segments: Vec<SegmentRow>,
    pub(super) annotations: Vec<Annotation>,
    /// Annotations that PyTorch 2.4 wrote as events: the event's row, the frame that says START or END and the name.
    pub(super) inline_annotations: Vec<Annotation>,
    pub(super) unknown_keys: BTreeMap<StringId, usize>,
    pub(super) unknown_actions: BTreeMap<StringId, usize>,
    pub(super) unknown_states: BTreeMap<StringId, usize>,
    /// Whether an event has a `category`, which only PyTorch's conversion of profiles writes.
    pub(super) categorised: bool,
    /// The pointers of the streams, in the order of their numbers less one: the default stream is not among them.
    pub(super) stream_pointers: Vec<i64>,
    pub(super) particulars: Vec<Particulars>,
    occupants: Vec<Occupant>,
    streams: FxHashMap<i64, u16>,
    particular_numbers: FxHashMap<Particulars, u16>,
    last_particular: u16,
    /// The stacks of lists of frames that came in several batches and so were not folded, with their lengths.
    kept_stacks: FxHashMap<Node, (usize, StackId)>,
    scratch: Vec<FrameId>,
}

impl Fold for Records {
    type Keys = Keys;

    fn dict(&mut self, items: &[Value], heap: &Heap) -> Folded<Option<TableRow>> {
        match kind(items) {
            Some(table::EVENT) => self.event(keys(items), heap).map(Some),
            Some(table::FRAME) => self.frame(items).map(Some),
            Some(table::BLOCK) => self.block(keys(items), heap).map(Some),
            Some(table::SEGMENT) => self.segment(items, heap).map(Some),
            Some(table::ANNOTATION) => self.annotation(items).map(Some),
            Some(table::HISTORY) => self.occupant(items, heap).map(Some),
            _ => Ok(None),
        }
    }

    fn keys(&self, items: &[Value]) -> Option<Keys> {
        let names = keys(items).map(|(key, _)| key).collect();
        match kind(items)? {
            table::EVENT => Some(Keys::Event(names, FieldPlaces::of(items))),
            table::BLOCK => Some(Keys::Block(names)),
            _ => None,
        }
    }

    fn dict_alike(&mut self, keys: &Keys, values: &[Value], heap: &Heap) -> Folded<TableRow> {
        let (Keys::Event(names, _) | Keys::Block(names)) = keys;
        let items = || names.iter().copied().zip(values.iter().copied());
        match keys {
            Keys::Event(_, Some(places)) => match self.plain_event(places, values, heap) {
                Some(row) => row,
                None => self.event(items(), heap),
            },
            Keys::Event(_, None) => self.event(items(), heap),
            Keys::Block(_) => self.block(items(), heap),
        }
    }

    fn extend(&mut self, list: Option<TableRow>, items: &[Value], heap: &Heap) -> Folded<Option<TableRow>> {
        let Some(first) = items.first().and_then(|&item| heap.row(item)) else { return Ok(None) };
        match list {
            None if first.table() == table::FRAME => self.new_stack(items, heap),
            None => {
                let run = RowRun { table: first.table(), first: first.index(), length: 0 };
                if !continues(run, items, heap) {
                    return Ok(None);
                }
                self.runs.push(RowRun { length: items.len(), ..run });
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

    fn is_shared(&self, list: TableRow) -> bool {
        list.table() == table::STACK
    }

    fn unfold(&self, list: TableRow) -> Folded<Vec<Value>> {
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

/// What ends the reading where a table is full; [`Records::overfull`] then says which.
const TOO_MANY: &str = "more records than can be numbered";

/// The first of some tables that has more rows than can be numbered.
fn overfull(tables: &[(&'static str, usize)]) -> Option<&'static str> {
    tables.iter().find(|(_, rows)| *rows as u64 > TableRow::MOST).map(|(what, _)| *what)
}

fn row(table: u8, index: usize) -> Folded<TableRow> {
    TableRow::new(table, index).ok_or(TOO_MANY)
}

/// Which table a dict belongs to, by the first key that only one of them has.
fn kind(items: &[Value]) -> Option<u8> {
    keys(items).find_map(|(key, _)| match word(key)? {
        KnownWord::Action => Some(table::EVENT),
        KnownWord::Filename => Some(table::FRAME),
        KnownWord::State => Some(table::BLOCK),
        KnownWord::Blocks | KnownWord::TotalSize => Some(table::SEGMENT),
        KnownWord::Stage => Some(table::ANNOTATION),
        KnownWord::RealSize => Some(table::HISTORY),
        _ => None,
    })
}

/// Whether the items are the rows that follow a run.
fn continues(run: RowRun, items: &[Value], heap: &Heap) -> bool {
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
    /// The table that has become too long for its rows to be numbered, if there is one.
    pub(super) fn overfull(&self) -> Option<&'static str> {
        overfull(&[
            ("events", self.events.len()),
            ("blocks", self.blocks.len()),
            ("segments", self.segments.len()),
            ("annotations", self.annotations.len()),
            ("former occupants of blocks", self.occupants.len()),
            ("lists", self.runs.len()),
            ("frames", self.stacks.frame_count()),
            ("stacks", self.stacks.len()),
        ])
    }

    /// Streams are numbered as they appear; the default stream is 0.
    fn stream(&mut self, pointer: i64) -> u16 {
        if pointer == 0 {
            return 0;
        }
        if let Some(&number) = self.streams.get(&pointer) {
            return number;
        }
        // More than 2^16 streams would be a hostile file; the surplus shares the last number.
        let number = u16::try_from(self.streams.len() + 1).unwrap_or(u16::MAX);
        if number < u16::MAX {
            self.streams.insert(pointer, number);
            self.stream_pointers.push(pointer);
        }
        number
    }

    /// The number of an event's particulars; most events have those of the event before.
    fn particular(&mut self, event: Particulars) -> u16 {
        if self.particulars.get(usize::from(self.last_particular)) == Some(&event) {
            return self.last_particular;
        }
        if let Some(&number) = self.particular_numbers.get(&event) {
            self.last_particular = number;
            return number;
        }
        // Thousands of pools and compiled regions would be a hostile file; the surplus shares the last number.
        let number = u16::try_from(self.particulars.len()).unwrap_or(u16::MAX);
        if number < u16::MAX {
            self.particular_numbers.insert(event, number);
            self.particulars.push(event);
        }
        number
    }

    fn unknown(&mut self, key: StringId) {
        *self.unknown_keys.entry(key).or_insert(0) += 1;
    }
}

/// A text that says something: not empty and not `N/A`.
fn meaningful(value: Value) -> Option<StringId> {
    match value {
        Value::Text(id) if !matches!(word(id), Some(KnownWord::NotApplicable | KnownWord::Empty)) => Some(id),
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
