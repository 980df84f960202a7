//! What a pickle's opcodes build: values, and the containers they refer to.

use crate::unit::StringId;

/// A value on the machine's stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer that fits 64 signed bits.
    Int(i64),
    /// An integer from 2^63 to 2^64 - 1 (addresses).
    Unsigned(u64),
    /// A floating point number.
    Float(f64),
    /// Text.
    Text(StringId),
    /// A dict, list or tuple of the [`Heap`].
    Container(Node),
    /// What stood in a folded list that had to be kept after all.
    Row(TableRow),
    /// Bytes, or an integer beyond 64 bits: nothing that a snapshot uses.
    Opaque,
    /// The one function of PyTorch's C++ pickler that is known and harmless: it marks a type and returns its argument.
    TypeTag,
}

/// A container's identity: every reference to it is this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node(pub(super) u32);

/// A row of a table of the [`Fold`](super::Fold) that stands for a container: which table and which row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableRow(u32);

const ROW_BITS: u32 = 28;

impl TableRow {
    /// How many rows a table may have.
    pub const MOST: u64 = 1 << ROW_BITS;

    /// Row `index` of table `table` (0 to 15); `None` beyond 2^28 rows.
    pub fn new(table: u8, index: usize) -> Option<TableRow> {
        let index = u32::try_from(index).ok().filter(|index| index >> ROW_BITS == 0)?;
        (table < 16).then_some(TableRow(u32::from(table) << ROW_BITS | index))
    }

    /// The table.
    pub fn table(self) -> u8 {
        (self.0 >> ROW_BITS) as u8
    }

    /// The row in it.
    pub fn index(self) -> usize {
        (self.0 & ((1 << ROW_BITS) - 1)) as usize
    }
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerState {
    /// A dict without items.
    NewDict,
    /// A list without items.
    NewList,
    /// Folded into a row.
    Folded(TableRow),
    /// A dict whose items are kept: keys and values in turn, in this slot of [`Heap::kept`].
    Dict(u32),
    /// A list whose items are kept.
    List(u32),
    /// A tuple.
    Tuple(u32),
}

/// The containers of a pickle, addressed by [`Node`].
#[derive(Debug, Default, PartialEq)]
pub struct Heap {
    pub(super) contents: Vec<ContainerState>,
    pub(super) kept: Vec<Vec<Value>>,
    /// The slot of the last tuple that was kept.
    pub(super) last_tuple: Option<u32>,
}

impl Heap {
    /// The keys and values (in turn) of a dict that was not folded; empty for an empty dict.
    pub fn dict(&self, value: Value) -> Option<&[Value]> {
        match self.content(value)? {
            ContainerState::NewDict => Some(&[]),
            ContainerState::Dict(slot) => self.slot(slot),
            _ => None,
        }
    }

    /// The items of a list that was not folded; empty for an empty list.
    pub fn list(&self, value: Value) -> Option<&[Value]> {
        match self.content(value)? {
            ContainerState::NewList => Some(&[]),
            ContainerState::List(slot) => self.slot(slot),
            _ => None,
        }
    }

    /// The items of a tuple.
    pub fn tuple(&self, value: Value) -> Option<&[Value]> {
        match self.content(value)? {
            ContainerState::Tuple(slot) => self.slot(slot),
            _ => None,
        }
    }

    /// The row that a container was folded into.
    pub fn row(&self, value: Value) -> Option<TableRow> {
        match (value, self.content(value)) {
            (Value::Row(row), _) | (_, Some(ContainerState::Folded(row))) => Some(row),
            _ => None,
        }
    }

    /// The slot of the last tuple, if it has these items and all of them are integers: a pool is written out for each event.
    pub(super) fn same_tuple(&self, items: &[Value]) -> Option<u32> {
        let slot = self.last_tuple?;
        let same = self.slot(slot)? == items && items.iter().all(|item| matches!(item, Value::Int(_)));
        same.then_some(slot)
    }

    fn content(&self, value: Value) -> Option<ContainerState> {
        match value {
            Value::Container(node) => self.contents.get(node.0 as usize).copied(),
            _ => None,
        }
    }

    fn slot(&self, slot: u32) -> Option<&[Value]> {
        self.kept.get(slot as usize).map(Vec::as_slice)
    }
}
