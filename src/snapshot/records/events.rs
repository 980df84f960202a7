//! Events: one row a dict.

use super::{Folded, Records, address, bytes, keys, meaningful, pool, row, signed, table, text};
use crate::pickle::{Heap, Row, Value};
use crate::snapshot::words::{Word, word};
use crate::snapshot::{Action, Event, Particulars};
use crate::unit::{Bytes, Index, Micros, StackId, StringId};

impl Records {
    pub(super) fn event(
        &mut self,
        items: impl Iterator<Item = (StringId, Value)>,
        heap: &Heap,
    ) -> Folded<Row> {
        let mut event = Event {
            time: Micros(0),
            address: 0,
            size: Bytes::ZERO,
            stack: None,
            metadata: None,
            stream: 0,
            action: Action::Other,
            compiled: false,
            particulars: 0,
        };
        let mut particulars = Particulars::default();
        let (mut named, mut located, mut sized) = (None, false, false);
        for (key, value) in items {
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
                    particulars.timed = true;
                }
                Some(Word::CompileContext) => {
                    event.compiled = meaningful(value).is_some();
                    particulars.compile_context = any_text(value);
                }
                Some(Word::UserMetadata) => {
                    event.metadata = meaningful(value);
                    particulars.has_metadata = true;
                }
                Some(Word::InternalMetadata) => particulars.internal_metadata = any_text(value),
                Some(Word::PoolId) => particulars.pool = pool(value, heap).ok(),
                Some(Word::Frames) => event.stack = Some(self.stack(value, heap)?),
                Some(Word::Category) => self.categorised = true,
                Some(Word::ForwardFrames | Word::CppFrames | Word::Device) => {}
                _ => self.unknown(key),
            }
        }
        let named = named.ok_or("an event without `action`")?;
        event.action = self.action(named);
        if event.action != Action::Other && !(located && sized) {
            return Err("an event without `addr` or `size`");
        }
        particulars.action = (event.action == Action::Other).then_some(named);
        event.particulars = self.particular(particulars);
        if word(named) == Some(Word::UserDefined) {
            self.inline_annotation(&event);
        }
        self.events.push(event);
        row(table::EVENT, self.events.len() - 1)
    }

    fn action(&mut self, named: StringId) -> Action {
        if let Some(action) = action(named) {
            return action;
        }
        if !matches!(word(named), Some(Word::Annotate | Word::UserDefined | Word::WorkspaceSnapshot)) {
            *self.unknown_actions.entry(named).or_insert(0) += 1;
        }
        Action::Other
    }

    /// As [`Self::event`] and with nothing looked for, where every value is what it nearly always is; `None`, and nothing done,
    /// where one is not.
    #[inline]
    pub(super) fn plain_event(
        &mut self,
        places: &Places,
        values: &[Value],
        heap: &Heap,
    ) -> Option<Folded<Row>> {
        let value = |place: usize| values.get(place).copied();
        let Value::Text(named) = value(places.action)? else { return None };
        let action = action(named)?;
        let number = |place: usize| match value(place) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        };
        let address = u64::try_from(number(places.address)?).ok()?;
        let size = Bytes(u64::try_from(number(places.size)?).ok()?);
        let stream = number(places.stream)?;
        let time = Micros(number(places.time)?);
        let stack = match places.frames.and_then(value) {
            Some(frames) => {
                let row = heap.row(frames).filter(|row| row.table() == table::STACK)?;
                Some(StackId::at(row.index())?)
            }
            None => None,
        };
        let compile_context = places.compile_context.and_then(value);
        let particulars = Particulars {
            compile_context: compile_context.and_then(any_text),
            pool: places.pool.and_then(value).and_then(|value| pool(value, heap).ok()),
            has_metadata: places.metadata.is_some(),
            timed: true,
            ..Particulars::default()
        };
        let event = Event {
            time,
            address,
            size,
            stack,
            metadata: places.metadata.and_then(value).and_then(meaningful),
            stream: self.stream(stream),
            action,
            compiled: compile_context.and_then(meaningful).is_some(),
            particulars: self.particular(particulars),
        };
        self.events.push(event);
        Some(row(table::EVENT, self.events.len() - 1))
    }
}

/// Where the values of an event stand whose keys are these and no others, each once: those that PyTorch writes.
#[derive(Debug)]
pub(in crate::snapshot) struct Places {
    action: usize,
    address: usize,
    size: usize,
    stream: usize,
    time: usize,
    compile_context: Option<usize>,
    metadata: Option<usize>,
    pool: Option<usize>,
    frames: Option<usize>,
}

impl Places {
    pub(super) fn of(items: &[Value]) -> Option<Places> {
        let names: Vec<Word> = keys(items).map_while(|(key, _)| word(key)).collect();
        let place = |wanted| names.iter().position(|name| *name == wanted);
        let places = Places {
            action: place(Word::Action)?,
            address: place(Word::Address)?,
            size: place(Word::Size)?,
            stream: place(Word::Stream)?,
            time: place(Word::Time)?,
            compile_context: place(Word::CompileContext),
            metadata: place(Word::UserMetadata),
            pool: place(Word::PoolId),
            frames: place(Word::Frames),
        };
        let more = [places.compile_context, places.metadata, places.pool, places.frames];
        let all = 5 + more.iter().flatten().count();
        // Each is found at its first place: where none is left over, none came twice.
        (2 * all == items.len()).then_some(places)
    }
}

/// What happened, by the names that stand for one thing alone.
fn action(named: StringId) -> Option<Action> {
    Some(match word(named)? {
        Word::Alloc => Action::Alloc,
        Word::FreeRequested => Action::FreeRequested,
        Word::FreeCompleted | Word::Free => Action::FreeCompleted,
        Word::SegmentAlloc => Action::SegmentAlloc,
        Word::SegmentFree => Action::SegmentFree,
        Word::SegmentMap => Action::SegmentMap,
        Word::SegmentUnmap => Action::SegmentUnmap,
        Word::Snapshot => Action::Snapshot,
        Word::Oom => Action::OutOfMemory,
        _ => return None,
    })
}

fn any_text(value: Value) -> Option<StringId> {
    match value {
        Value::Text(id) => Some(id),
        _ => None,
    }
}
