//! Lists that were folded before, by the bytes that wrote them: PyTorch writes out every event's list of frames, and
//! most of a file is the same few thousand lists again and again, in the order in which the program's loop comes by.
//!
//! Always: a list's bytes are GETs alone, so that they say what the list holds for as long as the memo's entries stay.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::cursor::Cursor;
use super::heap::TableRow;
use super::opcode;

/// Bytes of distinct lists that are remembered; recordings of the corpus have less than a hundredth of it.
const MOST_BYTES: usize = 1 << 24;

/// The rows of lists, by the opcodes between MARK and APPENDS.
#[derive(Default)]
pub(super) struct WrittenLists {
    bytes: Vec<u8>,
    lists: Vec<WrittenList>,
    /// Places in `lists`.
    table: HashTable<usize>,
    /// The place of the list that came last.
    last: usize,
}

struct WrittenList {
    bytes: Range<usize>,
    row: TableRow,
    /// The place of the list that followed the last time.
    next: usize,
}

impl WrittenLists {
    /// The row of the list that comes next, if it was written with the same bytes before, and what follows its APPENDS.
    #[inline]
    pub(super) fn take<'b>(&mut self, opcodes: &'b [u8]) -> Option<(TableRow, &'b [u8])> {
        if let Some(foretold) = self.foretold(opcodes) {
            return Some(foretold);
        }
        let written = Cursor::new(opcodes, 0).written_list()?;
        let row = self.find(written)?;
        Some((row, opcodes.get(written.len() + 1..)?))
    }

    /// The list that followed the one before the last time, if it follows again: nothing is searched then.
    #[inline]
    fn foretold<'b>(&mut self, opcodes: &'b [u8]) -> Option<(TableRow, &'b [u8])> {
        let place = self.lists.get(self.last)?.next;
        let list = self.lists.get(place)?;
        match opcodes.strip_prefix(self.bytes.get(list.bytes.clone())?)? {
            [opcode::APPENDS, rest @ ..] => {
                self.last = place;
                Some((list.row, rest))
            }
            _ => None,
        }
    }

    /// The row of a list that was written with the same bytes.
    fn find(&mut self, written: &[u8]) -> Option<TableRow> {
        let hash = FxBuildHasher.hash_one(written);
        let same = |place: &usize| self.written(*place) == Some(written);
        let place = *self.table.find(hash, same)?;
        if let Some(last) = self.lists.get_mut(self.last) {
            last.next = place;
        }
        self.last = place;
        self.lists.get(place).map(|list| list.row)
    }

    fn written(&self, place: usize) -> Option<&[u8]> {
        self.bytes.get(self.lists.get(place)?.bytes.clone())
    }

    /// Remembers a list that [`Self::take`] does not know.
    pub(super) fn remember(&mut self, written: &[u8], row: TableRow) {
        if written.is_empty() || self.bytes.len() + written.len() > MOST_BYTES {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(written);
        let place = self.lists.len();
        // Until it is known better, the next list is the one that is remembered next.
        self.lists.push(WrittenList { bytes: start..self.bytes.len(), row, next: place + 1 });
        let (bytes, lists) = (&self.bytes, &self.lists);
        let hash = |place: &usize| {
            let written = lists.get(*place).and_then(|list| bytes.get(list.bytes.clone()));
            FxBuildHasher.hash_one(written.unwrap_or_default())
        };
        self.table.insert_unique(FxBuildHasher.hash_one(written), place, hash);
        self.last = place;
    }

    /// Forgets all: an entry of the memo was replaced.
    pub(super) fn forget(&mut self) {
        if !self.bytes.is_empty() {
            *self = WrittenLists::default();
        }
    }
}
