//! The bounded pickle machine: what the opcodes say, and nothing run; and a writer for what it reads.
//!
//! In: a stream of a pickle of protocol 2 to 5, of which only a window is held. Out: its top value, the containers it refers to, and whatever the
//! caller's [`Fold`] made of the dicts and lists it recognised. Always: no recursion, no import, no call, no allocation
//! whose size the file chooses without being bounded by the file's own length or by [`PickleLimits`]; shared containers stay
//! shared; every error names its byte.
//!
//! A tree of a snapshot would be many times as large as the file. So the machine offers every dict and list to the
//! `Fold` as soon as its items are set, and a folded container is one word from then on: the row that stands for it.
//! Python's pickler memoises a container before it fills it; that is why a container is a [`Node`] whose content
//! changes, and not a value.

mod alike;
mod containers;
mod cursor;
mod error;
mod heap;
mod keys;
mod lists;
mod machine;
mod memo;
mod opcode;
mod scalars;
mod steps;
mod stream;
mod walk;
mod writer;

pub use error::PickleError;
pub use heap::{Heap, Node, TableRow, Value};
pub use walk::walk;
pub use writer::{Memo, PickleWriter};

use std::io::Read;

use machine::Machine;

use crate::unit::StringInterner;

/// How much a pickle may hold. The defaults read snapshots of some 50 million events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PickleLimits {
    /// Containers, and memoised values.
    pub nodes: u64,
    /// Values on the stack at a time.
    pub stack: u64,
    /// Bytes of distinct text.
    pub text: u64,
}

impl PickleLimits {
    /// The largest sensible `nodes`: beyond, a memo entry has no room for a container's number.
    pub const MOST_NODES: u64 = 1 << 30;
    /// The largest sensible `stack`: marks are numbers of 32 bits.
    pub const MOST_STACK: u64 = u32::MAX as u64;
}

impl Default for PickleLimits {
    fn default() -> Self {
        PickleLimits { nodes: 1 << 28, stack: 1 << 26, text: 1 << 30 }
    }
}

/// What recognises containers and keeps them in its own form.
pub trait Fold: Send {
    /// A dict has got its first items (keys and values in turn): the row that stands for it from now on, or `None` to
    /// keep its items. A folded dict must not change afterwards.
    fn dict(&mut self, items: &[Value], heap: &Heap) -> Result<Option<TableRow>, &'static str>;

    /// What it knows of the keys of dicts of one kind.
    type Keys: Send;

    /// What it makes of a dict's keys, where it wants to see only the values of more dicts with them: [`Self::dict`] gives a
    /// row to each of them, and [`Self::dict_alike`] must do the same. All keys are text.
    fn keys(&self, items: &[Value]) -> Option<Self::Keys>;

    /// As [`Self::dict`], of a dict with known keys and these values.
    fn dict_alike(
        &mut self,
        keys: &Self::Keys,
        values: &[Value],
        heap: &Heap,
    ) -> Result<TableRow, &'static str>;

    /// A list gets more items: `list` is the row that stands for it (`None` while it is empty). The row that stands
    /// for it now, or `None` to keep the items.
    fn extend(
        &mut self,
        list: Option<TableRow>,
        items: &[Value],
        heap: &Heap,
    ) -> Result<Option<TableRow>, &'static str>;

    /// Whether a folded list's row stands for every list of the same items: then equal lists need not be offered again.
    fn is_shared(&self, list: TableRow) -> bool;

    /// The items of a folded list that must be kept after all.
    fn unfold(&self, list: TableRow) -> Result<Vec<Value>, &'static str>;
}

/// What a pickle holds.
#[derive(Debug)]
pub struct Loaded {
    /// The top value.
    pub top: Value,
    /// The containers that were not folded.
    pub heap: Heap,
    /// All text.
    pub strings: StringInterner,
}

/// Reads a pickle. `strings` may hold text that the caller wants to know by its ids.
///
/// # Errors
/// See [`PickleError`].
pub fn load(
    source: impl Read,
    strings: StringInterner,
    fold: &mut impl Fold,
    limits: &PickleLimits,
) -> Result<Loaded, PickleError> {
    let mut machine = Machine::new(strings, fold, limits);
    stream::feed(source, &mut machine).map_err(|error| *error)?;
    Ok(Loaded { top: machine.top, heap: machine.heap, strings: machine.strings })
}

/// Reads a pickle that comes in windows of these lengths.
#[cfg(test)]
pub(crate) fn load_in_pieces(
    bytes: &[u8],
    lengths: &[usize],
    strings: StringInterner,
    fold: &mut impl Fold,
    limits: &PickleLimits,
) -> Result<Loaded, PickleError> {
    let mut machine = Machine::new(strings, fold, limits);
    stream::feed_in_pieces(bytes, lengths, &mut machine).map_err(|error| *error)?;
    Ok(Loaded { top: machine.top, heap: machine.heap, strings: machine.strings })
}
