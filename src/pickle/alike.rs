//! Dicts of the same keys: a trace is a hundred thousand of them, written with the same opcodes but for their values. Where
//! a dict has the keys of one that came before, it is taken in one step, from `EMPTY_DICT` to SETITEMS.
//!
//! Always: either what the single steps would have done, to the last entry of the memo, or nothing at all. All that is made
//! on the way is only appended, and cut off again where something comes that is not expected here: an opcode that the
//! window's end cuts in two, text or a list that was never written before, a value that is none of an event's. The single
//! steps then take the dict, and say what is wrong with it if something is.

use super::cursor::{Cursor, ReadResult};
use super::heap::{ContainerState, Heap, Node, Value};
use super::keys::{FoldedKeys, KnownKey, MOST_KEYS};
use super::lists::WrittenLists;
use super::machine::Machine;
use super::memo::{Memoised, get};
use super::{Fold, opcode};
use crate::unit::{StringId, StringInterner};

/// How many sets of keys are remembered: those of events with and without frames, of blocks.
const MOST_SETS: usize = 4;

impl<F: Fold> Machine<'_, F> {
    /// `EMPTY_DICT`: the whole dict where it is like one before, else an empty one.
    #[inline]
    pub(super) fn new_dict(&mut self, cursor: &mut Cursor<'_>) -> ReadResult<()> {
        match self.take_alike(cursor) {
            Some((node, place)) => self.fold_alike(node, place),
            None => self.push_new(ContainerState::NewDict),
        }
    }

    /// Remembers the keys of a dict that was folded, if the fold wants to see only the values of the next.
    pub(super) fn remember_keys(&mut self, base: usize) {
        let items = self.stack.get(base..).unwrap_or_default();
        let pairs = items.as_chunks::<2>().0;
        if pairs.len() > MOST_KEYS || pairs.iter().any(|[key, _]| !matches!(key, Value::Text(_))) {
            return;
        }
        let Some(known) = self.fold.keys(items) else { return };
        let entries = || pairs.iter().map(|[key, _]| Memoised::of(*key));
        if entries().any(|entry| entry == Memoised::NOTHING)
            || self.alike.iter().any(|set| set.keys.iter().map(|key| key.entry).eq(entries()))
        {
            return;
        }
        if self.alike.len() == MOST_SETS {
            self.alike.remove(0);
        }
        let keys = entries().map(KnownKey::of).collect();
        self.alike.push(FoldedKeys { keys, known });
    }

    /// Takes a dict of remembered keys: the dict, and which keys they are. Its values are in `self.values` then.
    #[inline]
    fn take_alike(&mut self, cursor: &mut Cursor<'_>) -> Option<(Node, usize)> {
        let [opcode::MEMOIZE, opcode::MARK, opcodes @ ..] = cursor.rest() else { return None };
        let first = *self.memo.get(get(opcodes)?.0)?;
        if !self.has_room() {
            return None;
        }
        let node = Node(u32::try_from(self.heap.contents.len()).ok()?);
        let entries = self.memo.len();
        for (place, set) in self.alike.iter_mut().enumerate() {
            if set.keys.first().is_none_or(|key| key.entry != first) {
                continue;
            }
            self.heap.contents.push(ContainerState::NewDict);
            self.memo.push(Memoised::of(Value::Container(node)));
            let mut taking = Taking {
                memo: &mut self.memo,
                heap: &mut self.heap,
                lists: &mut self.lists,
                strings: &self.strings,
                most_text: self.limits.text,
            };
            if let Some(rest) = taking.items(&mut set.keys, &mut self.values, opcodes) {
                cursor.go_to(rest);
                return Some((node, place));
            }
            self.heap.contents.truncate(node.0 as usize);
            self.memo.truncate(entries);
        }
        None
    }

    /// Whether a dict of the most keys stays below all limits: each value is one container and one entry of the memo at most.
    #[inline]
    fn has_room(&self) -> bool {
        const MOST: u64 = MOST_KEYS as u64;
        let room = |held: usize, limit: u64, more: u64| held as u64 + more <= limit;
        room(self.heap.contents.len(), self.limits.nodes, 1 + MOST)
            && room(self.memo.len(), self.limits.nodes, 1 + MOST)
            && room(self.stack.len(), self.limits.stack, 2 + 2 * MOST)
            && room(self.marks.len(), self.limits.stack, 2)
    }

    /// SETITEMS of a dict that was taken whole.
    #[inline]
    fn fold_alike(&mut self, node: Node, place: usize) -> ReadResult<()> {
        if let Some(set) = self.alike.get(place) {
            let values = self.values.get(..set.keys.len()).unwrap_or_default();
            let row = self.fold.dict_alike(&set.known, values, &self.heap);
            let row = row.map_err(|what| Self::damaged(what))?;
            if let Some(content) = self.heap.contents.get_mut(node.0 as usize) {
                *content = ContainerState::Folded(row);
            }
        }
        self.push(Value::Container(node))
    }
}

/// What a dict's items may add to, and what they may look up.
struct Taking<'m> {
    memo: &'m mut Vec<Memoised>,
    heap: &'m mut Heap,
    lists: &'m mut WrittenLists,
    strings: &'m StringInterner,
    most_text: u64,
}

impl Taking<'_> {
    /// Takes the opcodes of all keys and values and SETITEMS; what follows them.
    #[inline]
    fn items<'b>(
        &mut self,
        keys: &mut [KnownKey],
        values: &mut [Value],
        opcodes: &'b [u8],
    ) -> Option<&'b [u8]> {
        let mut rest = opcodes;
        for (key, place) in keys.iter_mut().zip(values) {
            let after = match key.again(rest) {
                Some(after) => after,
                None => key.gets(rest, self.memo)?,
            };
            (*place, rest) = self.value(key, after)?;
        }
        match *rest {
            [opcode::SETITEMS, ref rest @ ..] => Some(rest),
            _ => None,
        }
    }

    #[inline]
    fn value<'b>(&mut self, key: &mut KnownKey, opcodes: &'b [u8]) -> Option<(Value, &'b [u8])> {
        if let Some((position, rest)) = get(opcodes) {
            return Some((self.memo.get(position)?.value()?, rest));
        }
        if let Some((number, rest)) = integer(opcodes) {
            return match *rest {
                [opcode::BININT1, second, opcode::TUPLE2, opcode::MEMOIZE, ref rest @ ..] => {
                    Some((self.pair(number, i64::from(second))?, rest))
                }
                _ => Some((Value::Int(number), rest)),
            };
        }
        match *opcodes {
            [opcode::EMPTY_LIST, opcode::MEMOIZE, opcode::MARK, ref rest @ ..] => {
                let (row, rest) = self.lists.take(rest)?;
                Some((self.container(ContainerState::Folded(row))?, rest))
            }
            [opcode::EMPTY_LIST, opcode::MEMOIZE, ref rest @ ..] => {
                Some((self.container(ContainerState::NewList)?, rest))
            }
            [opcode::SHORT_BINUNICODE, ..] => self.text(key, opcodes),
            [opcode::NONE, ref rest @ ..] => Some((Value::None, rest)),
            [opcode::NEWTRUE, ref rest @ ..] => Some((Value::Bool(true), rest)),
            [opcode::NEWFALSE, ref rest @ ..] => Some((Value::Bool(false), rest)),
            _ => None,
        }
    }

    /// A container, and its entry of the memo.
    #[inline]
    fn container(&mut self, content: ContainerState) -> Option<Value> {
        let value = Value::Container(Node(u32::try_from(self.heap.contents.len()).ok()?));
        self.heap.contents.push(content);
        self.memo.push(Memoised::of(value));
        Some(value)
    }

    /// A tuple of two numbers, where the last one was the same.
    #[cold]
    fn pair(&mut self, first: i64, second: i64) -> Option<Value> {
        let slot = self.heap.same_tuple(&[Value::Int(first), Value::Int(second)])?;
        self.container(ContainerState::Tuple(slot))
    }

    /// Text that is known, and its entry of the memo if it has one.
    #[inline]
    fn text<'b>(&mut self, key: &mut KnownKey, opcodes: &'b [u8]) -> Option<(Value, &'b [u8])> {
        let last = key.text.zip(opcodes.strip_prefix(key.written.as_slice()));
        let (id, rest) = match last {
            Some(last) => last,
            None => self.other_text(key, opcodes)?,
        };
        if let [opcode::MEMOIZE, rest @ ..] = rest {
            self.memo.push(Memoised::of(Value::Text(id)));
            return Some((Value::Text(id), rest));
        }
        Some((Value::Text(id), rest))
    }

    /// Text that was not written the last time, but some time.
    #[cold]
    fn other_text<'b>(&self, key: &mut KnownKey, opcodes: &'b [u8]) -> Option<(StringId, &'b [u8])> {
        let [_, length, rest @ ..] = opcodes else { return None };
        if u64::from(*length) >= self.most_text {
            return None;
        }
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        let id = self.strings.find(str::from_utf8(text).ok()?)?;
        key.text = Some(id);
        key.written = opcodes.get(..opcodes.len() - rest.len())?.to_vec();
        Some((id, rest))
    }
}

/// An integer of at most 64 bits.
#[inline]
fn integer(opcodes: &[u8]) -> Option<(i64, &[u8])> {
    match *opcodes {
        [opcode::BININT1, number, ref rest @ ..] => Some((i64::from(number), rest)),
        [opcode::BININT2, a, b, ref rest @ ..] => Some((i64::from(u16::from_le_bytes([a, b])), rest)),
        [opcode::BININT, a, b, c, d, ref rest @ ..] => {
            Some((i64::from(i32::from_le_bytes([a, b, c, d])), rest))
        }
        [opcode::LONG1, length, ref rest @ ..] => {
            let unused = u32::from(8_u8.checked_sub(length).filter(|_| length > 0)?) * 8;
            let number = u64::from_le_bytes(*rest.first_chunk()?) << unused;
            Some((number.cast_signed() >> unused, rest.get(usize::from(length)..)?))
        }
        _ => None,
    }
}
