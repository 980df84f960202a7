//! Frames and stacks: a list of frames becomes an interned stack, each list once, however many events share it.

use super::{Folded, Records, TOO_MANY, keys, row, signed, table, text};
use crate::pickle::{Heap, TableRow, Value};
use crate::snapshot::Frame;
use crate::snapshot::words::{KnownWord, word};
use crate::unit::{FrameId, Index, StackId};

impl Records {
    pub(super) fn frame(&mut self, items: &[Value]) -> Folded<TableRow> {
        let (mut name, mut file, mut line) = (None, None, 0);
        for (key, value) in keys(items) {
            match word(key) {
                Some(KnownWord::Name) => name = Some(text(value, "a frame's `name` that is no text")?),
                Some(KnownWord::Filename) => {
                    file = Some(text(value, "a frame's `filename` that is no text")?);
                }
                // C++ frames carry offsets into their library, which can be larger than any line.
                Some(KnownWord::Line) => {
                    line = u32::try_from(signed(value, "a frame's `line` that is no number")?).unwrap_or(0);
                }
                Some(
                    KnownWord::FxNodeOp
                    | KnownWord::FxNodeName
                    | KnownWord::FxNodeTarget
                    | KnownWord::FxNodeInfo
                    | KnownWord::FxOriginalTrace,
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

    pub(super) fn new_stack(&mut self, items: &[Value], heap: &Heap) -> Folded<Option<TableRow>> {
        if !self.gather_frames(items, heap) {
            return Ok(None);
        }
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
    pub(super) fn stack(&mut self, value: Value, heap: &Heap) -> Folded<StackId> {
        const WHAT: &str = "`frames` that is no list of frames";
        if let Some(row) = heap.row(value) {
            return match row.table() {
                table::STACK => StackId::at(row.index()).ok_or(TOO_MANY),
                _ => Err(WHAT),
            };
        }
        let items = if value == Value::None { &[] } else { heap.list(value).ok_or(WHAT)? };
        if let Value::Container(node) = value
            && let Some(&(length, stack)) = self.kept_stacks.get(&node)
        {
            // Lists only grow. No pickler adds to a list that it has written, and one that grew with every event would
            // make stacks of the square of the file's length.
            return if length == items.len() {
                Ok(stack)
            } else {
                Err("`frames` that grew after they were used")
            };
        }
        if !self.gather_frames(items, heap) {
            return Err(WHAT);
        }
        let stack = self.stacks.intern(&self.scratch).ok_or(TOO_MANY)?;
        if let Value::Container(node) = value
            && !items.is_empty()
        {
            self.kept_stacks.insert(node, (items.len(), stack));
        }
        Ok(stack)
    }
}
