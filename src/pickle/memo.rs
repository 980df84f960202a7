//! The memo's entries: what MEMOIZE and PUT keep, and GET brings back.

use super::heap::{Node, Value};
use super::opcode;
use crate::unit::{Index, StringId};

/// A memo entry in four bytes: nothing, text or a container. Other values are never memoised by a pickler; a file that
/// does so anyway is refused when it asks for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Memoised(u32);

const MEMO_BITS: u32 = 30;
const MEMO_TEXT: u32 = 1;
const MEMO_NODE: u32 = 2;

impl Memoised {
    pub(super) const NOTHING: Memoised = Memoised(0);

    pub(super) fn of(value: Value) -> Memoised {
        let (tag, position) = match value {
            Value::Text(id) => (MEMO_TEXT, u32::try_from(id.position()).unwrap_or(u32::MAX)),
            Value::Container(node) => (MEMO_NODE, node.0),
            _ => return Memoised::NOTHING,
        };
        if position >> MEMO_BITS == 0 { Memoised(tag << MEMO_BITS | position) } else { Memoised::NOTHING }
    }

    #[inline]
    pub(super) fn value(self) -> Option<Value> {
        let position = self.0 & ((1 << MEMO_BITS) - 1);
        match self.0 >> MEMO_BITS {
            MEMO_TEXT => StringId::at(position as usize).map(Value::Text),
            MEMO_NODE => Some(Value::Container(Node(position))),
            _ => None,
        }
    }
}

/// The memo's entry that the first GET asks for, and what follows it.
#[inline]
pub(super) fn get(gets: &[u8]) -> Option<(usize, &[u8])> {
    match *gets {
        [opcode::BINGET, position, ref rest @ ..] => Some((usize::from(position), rest)),
        [opcode::LONG_BINGET, a, b, c, d, ref rest @ ..] => {
            Some((u32::from_le_bytes([a, b, c, d]) as usize, rest))
        }
        _ => None,
    }
}
