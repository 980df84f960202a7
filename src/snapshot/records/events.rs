//! Events: one row a dict.

use super::{Folded, Records, address, bytes, keys, meaningful, pool, row, signed, table, text};
use crate::pickle::{Heap, Row, Value};
use crate::snapshot::words::{Word, word};
use crate::snapshot::{Action, Event, Particulars};
use crate::unit::{Bytes, Micros, StringId};

impl Records {
    pub(super) fn event(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
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
}

fn any_text(value: Value) -> Option<StringId> {
    match value {
        Value::Text(id) => Some(id),
        _ => None,
    }
}
