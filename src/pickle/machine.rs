//! The machine's state: a stack of values with marks, a memo, and the containers. What the opcodes do with it stands in
//! `steps`, `scalars` and `containers`.

use super::cursor::{Cursor, ReadResult};
use super::error::PickleError;
use super::heap::{Heap, Value};
use super::keys::{FoldedKeys, MOST_KEYS};
use super::lists::WrittenLists;
use super::memo::Memoised;
use super::stream::Consumer;
use super::{Fold, PickleLimits, opcode};
use crate::unit::{StringId, StringInterner};

pub(super) struct Machine<'a, F: Fold> {
    /// Whether the protocol's mark has been seen.
    pub(super) begun: bool,
    pub(super) fold: &'a mut F,
    pub(super) limits: PickleLimits,
    pub(super) strings: StringInterner,
    pub(super) stack: Vec<Value>,
    /// Heights of the stack at the open marks.
    pub(super) marks: Vec<u32>,
    pub(super) memo: Vec<Memoised>,
    pub(super) heap: Heap,
    pub(super) lists: WrittenLists,
    /// The keys of dicts that came before, and room for the values of one that is like them.
    pub(super) alike: Vec<FoldedKeys<F::Keys>>,
    pub(super) values: [Value; MOST_KEYS],
    pub(super) text_bytes: u64,
    /// The text that came last: `compile_context` is written out for each event, and is nearly always the same.
    pub(super) last_text: Option<StringId>,
    /// What the pickle holds, once all of it is read.
    pub(super) top: Value,
}

impl<'a, F: Fold> Machine<'a, F> {
    pub(super) fn new(strings: StringInterner, fold: &'a mut F, limits: &PickleLimits) -> Self {
        Machine {
            begun: false,
            fold,
            limits: *limits,
            strings,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            heap: Heap::default(),
            lists: WrittenLists::default(),
            alike: Vec::new(),
            values: [Value::None; MOST_KEYS],
            text_bytes: 0,
            last_text: None,
            top: Value::None,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Value) -> ReadResult<()> {
        Self::check(self.stack.len() as u64, self.limits.stack, "values at a time", "--max-stack")?;
        self.stack.push(value);
        Ok(())
    }

    pub(super) fn pop(&mut self) -> ReadResult<Value> {
        let floor = self.marks.last().map_or(0, |&mark| mark as usize);
        if self.stack.len() <= floor {
            return Err(Self::damaged("a value is missing"));
        }
        self.stack.pop().ok_or_else(|| Self::damaged("a value is missing"))
    }

    pub(super) fn drop_top(&mut self) -> ReadResult<()> {
        if self.marks.last().is_some_and(|&mark| mark as usize == self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    #[inline]
    pub(super) fn mark(&mut self) -> ReadResult<()> {
        Self::check(self.marks.len() as u64, self.limits.stack, "open marks", "--max-stack")?;
        self.marks.push(u32::try_from(self.stack.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    #[inline]
    pub(super) fn pop_mark(&mut self) -> ReadResult<usize> {
        match self.marks.pop() {
            Some(mark) if mark as usize <= self.stack.len() => Ok(mark as usize),
            _ => Err(Self::damaged("a mark is missing")),
        }
    }

    /// The height of the stack below its `count` topmost values, which must all lie above the last mark.
    pub(super) fn below(&self, count: usize) -> ReadResult<usize> {
        let floor = self.marks.last().map_or(0, |&mark| mark as usize);
        match self.stack.len().checked_sub(count) {
            Some(base) if base >= floor => Ok(base),
            _ => Err(Self::damaged("a value is missing")),
        }
    }

    #[inline]
    pub(super) fn recalled(&self, position: usize) -> Option<Value> {
        self.memo.get(position).and_then(|entry| entry.value())
    }

    #[inline]
    pub(super) fn recall(&mut self, position: usize) -> ReadResult<()> {
        match self.recalled(position) {
            Some(value) => self.push(value),
            None => Err(Self::damaged("a memo entry is asked for that was never made")),
        }
    }

    #[inline]
    pub(super) fn memoise_next(&mut self, cursor: &Cursor<'_>) -> ReadResult<()> {
        self.memoise(self.memo.len(), cursor)
    }

    #[inline]
    pub(super) fn memoise(&mut self, position: usize, cursor: &Cursor<'_>) -> ReadResult<()> {
        let entry = Memoised::of(*self.stack.last().ok_or_else(|| Self::damaged("nothing to memoise"))?);
        if position == self.memo.len() {
            Self::check(position as u64, self.limits.nodes, "memoised values", "--max-nodes")?;
            self.memo.push(entry);
            return Ok(());
        }
        // A pickler numbers its entries from 0; a gap chosen by the file may not make the memo larger than the file.
        if position > cursor.offset() {
            return Err(Self::damaged("a memo entry far beyond the others"));
        }
        if position >= self.memo.len() {
            Self::check(position as u64, self.limits.nodes, "memoised values", "--max-nodes")?;
            self.memo.resize(position + 1, Memoised::NOTHING);
        }
        if let Some(place) = self.memo.get_mut(position) {
            *place = entry;
            self.lists.forget();
            self.alike.iter_mut().for_each(FoldedKeys::forget);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn check(count: u64, limit: u64, what: &'static str, flag: &'static str) -> ReadResult<()> {
        if count < limit { Ok(()) } else { Err(Self::too_much(limit, what, flag)) }
    }

    #[cold]
    fn too_much(limit: u64, what: &'static str, flag: &'static str) -> Box<PickleError> {
        Box::new(PickleError::Limit { what, limit, flag, offset: 0 })
    }

    #[cold]
    pub(super) fn damaged(what: &'static str) -> Box<PickleError> {
        Box::new(PickleError::Damaged { what, offset: 0 })
    }
}

impl<F: Fold> Consumer for Machine<'_, F> {
    #[inline]
    fn take(&mut self, cursor: &mut Cursor<'_>) -> ReadResult<bool> {
        if !self.begun {
            return self.begin(cursor).map(|()| false);
        }
        let code = cursor.byte()?;
        if code == opcode::STOP {
            self.top = self.pop().map_err(|error| error.located(cursor.offset()))?;
            return Ok(true);
        }
        match self.step(code, cursor) {
            Ok(()) => Ok(false),
            Err(error) => Err(error.located(cursor.offset())),
        }
    }
}
