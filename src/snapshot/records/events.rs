//! Events: one row a dict.

use super::{Folded, Records, address, bytes, keys, meaningful, pool, row, signed, table, text};
use crate::pickle::{Heap, TableRow, Value};
use crate::snapshot::words::{KnownWord, word};
use crate::snapshot::{Action, Event, Particulars};
use crate::unit::{Bytes, Index, Micros, StackId, StringId};

impl Records {
    pub(super) fn event(
        &mut self,
        items: impl Iterator<Item = (StringId, Value)>,
        heap: &Heap,
    ) -> Folded<TableRow> {
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
                Some(KnownWord::Action) => named = Some(text(value, "an event's `action` that is no text")?),
                Some(KnownWord::Address | KnownWord::DeviceFree) => {
                    event.address = address(value, "an event's `addr` that is no address")?;
                    located = true;
                }
                Some(KnownWord::Size) => {
                    event.size = bytes(value, "an event's `size` that is no number of bytes")?;
                    sized = true;
                }
                Some(KnownWord::Stream) => {
                    event.stream = self.stream(signed(value, "an event's `stream` that is no number")?);
                }
                Some(KnownWord::Time) => {
                    event.time = Micros(signed(value, "an event's `time_us` that is no number")?);
                    particulars.timed = true;
                }
                Some(KnownWord::CompileContext) => {
                    event.compiled = meaningful(value).is_some();
                    particulars.compile_context = any_text(value);
                }
                Some(KnownWord::UserMetadata) => {
                    event.metadata = meaningful(value);
                    particulars.has_metadata = true;
                }
                Some(KnownWord::InternalMetadata) => particulars.internal_metadata = any_text(value),
                Some(KnownWord::PoolId) => particulars.pool = pool(value, heap).ok(),
                Some(KnownWord::Frames) => event.stack = Some(self.stack(value, heap)?),
                Some(KnownWord::Category) => self.categorised = true,
                Some(KnownWord::ForwardFrames | KnownWord::CppFrames | KnownWord::Device) => {}
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
        if word(named) == Some(KnownWord::UserDefined) {
            self.inline_annotation(&event);
        }
        self.events.push(event);
        row(table::EVENT, self.events.len() - 1)
    }

    fn action(&mut self, named: StringId) -> Action {
        if let Some(action) = action(named) {
            return action;
        }
        if !matches!(
            word(named),
            Some(KnownWord::Annotate | KnownWord::UserDefined | KnownWord::WorkspaceSnapshot)
        ) {
            *self.unknown_actions.entry(named).or_insert(0) += 1;
        }
        Action::Other
    }

    /// As [`Self::event`] and with nothing looked for, where every value is what it nearly always is; `None`, and nothing done,
    /// where one is not.
    #[inline]
    pub(super) fn plain_event(
        &mut self,
        places: &FieldPlaces,
        values: &[Value],
        heap: &Heap,
    ) -> Option<Folded<TableRow>> {
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
pub(in crate::snapshot) struct FieldPlaces {
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

impl FieldPlaces {
    pub(super) fn of(items: &[Value]) -> Option<FieldPlaces> {
        let names: Vec<KnownWord> = keys(items).map_while(|(key, _)| word(key)).collect();
        let place = |wanted| names.iter().position(|name| *name == wanted);
        let places = FieldPlaces {
            action: place(KnownWord::Action)?,
            address: place(KnownWord::Address)?,
            size: place(KnownWord::Size)?,
            stream: place(KnownWord::Stream)?,
            time: place(KnownWord::Time)?,
            compile_context: place(KnownWord::CompileContext),
            metadata: place(KnownWord::UserMetadata),
            pool: place(KnownWord::PoolId),
            frames: place(KnownWord::Frames),
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
        KnownWord::Alloc => Action::Alloc,
        KnownWord::FreeRequested => Action::FreeRequested,
        KnownWord::FreeCompleted | KnownWord::Free => Action::FreeCompleted,
        KnownWord::SegmentAlloc => Action::SegmentAlloc,
        KnownWord::SegmentFree => Action::SegmentFree,
        KnownWord::SegmentMap => Action::SegmentMap,
        KnownWord::SegmentUnmap => Action::SegmentUnmap,
        KnownWord::Snapshot => Action::Snapshot,
        KnownWord::Oom => Action::OutOfMemory,
        _ => return None,
    })
}

fn any_text(value: Value) -> Option<StringId> {
    match value {
        Value::Text(id) => Some(id),
        _ => None,
    }
}
