//! Lists that were folded before, by the bytes that wrote them: PyTorch writes out every event's list of frames, and
//! most of a file is the same few thousand lists again and again.
//!
//! Always: a list's bytes are GETs alone, so that they say what the list holds for as long as the memo's entries stay.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::heap::Row;

/// Bytes of distinct lists that are remembered; recordings of the corpus have less than a hundredth of it.
const MOST_BYTES: usize = 1 << 24;

/// The rows of lists, by the opcodes between MARK and APPENDS.
#[derive(Default)]
pub(super) struct WrittenLists {
    bytes: Vec<u8>,
    table: HashTable<(Range<usize>, Row)>,
}

impl WrittenLists {
    /// The row of a list that was written with the same bytes.
    #[inline]
    pub(super) fn find(&self, written: &[u8]) -> Option<Row> {
        let hash = FxBuildHasher.hash_one(written);
        let found = self.table.find(hash, |(range, _)| self.bytes.get(range.clone()) == Some(written));
        found.map(|(_, row)| *row)
    }

    /// Remembers a list that [`Self::find`] does not know.
    pub(super) fn remember(&mut self, written: &[u8], row: Row) {
        if self.bytes.len() + written.len() > MOST_BYTES {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(written);
        let bytes = &self.bytes;
        let hash = |written: Option<&[u8]>| FxBuildHasher.hash_one(written.unwrap_or_default());
        let entry = (start..bytes.len(), row);
        self.table.insert_unique(hash(Some(written)), entry, |(range, _)| hash(bytes.get(range.clone())));
    }

    /// Forgets all: an entry of the memo was replaced.
    pub(super) fn forget(&mut self) {
        if !self.bytes.is_empty() {
            *self = WrittenLists::default();
        }
    }
}
