//! The keys of dicts that come again and again, and how they were written the last time.

use super::memo::{Memoised, get};
use crate::unit::StringId;

/// The most keys that a dict may have; PyTorch's events have eight to ten.
pub(super) const MOST_KEYS: usize = 16;

/// The keys of dicts that were folded, and what the fold makes of them.
pub(super) struct FoldedKeys<K> {
    pub(super) keys: Vec<KnownKey>,
    pub(super) known: K,
}

/// One of these keys.
pub(super) struct KnownKey {
    /// What its GET must bring back.
    pub(super) entry: Memoised,
    /// The GET that brought it back the last time, for as long as the memo's entries stay: the opcode with its operands in the
    /// low bytes, which of them count, and how many.
    get: u64,
    mask: u64,
    length: usize,
    /// The last text that was written out as its value (PyTorch makes a new string of each event's context), with its opcode
    /// and its length.
    pub(super) text: Option<StringId>,
    pub(super) written: Vec<u8>,
}

impl KnownKey {
    pub(super) fn of(entry: Memoised) -> KnownKey {
        KnownKey { entry, get: Self::NO_GET, mask: 0, length: 0, text: None, written: Vec::new() }
    }

    /// What no GET is while nothing counts.
    const NO_GET: u64 = 1;

    /// What follows the key's GET, if it is the same as the last time.
    #[inline]
    pub(super) fn again<'b>(&self, opcodes: &'b [u8]) -> Option<&'b [u8]> {
        let bytes = u64::from_le_bytes(*opcodes.first_chunk()?);
        if bytes & self.mask == self.get { opcodes.get(self.length..) } else { None }
    }

    /// What follows the GET of this key, which is remembered.
    #[cold]
    pub(super) fn gets<'b>(&mut self, opcodes: &'b [u8], memo: &[Memoised]) -> Option<&'b [u8]> {
        let (position, rest) = get(opcodes)?;
        if memo.get(position) != Some(&self.entry) {
            return None;
        }
        self.length = opcodes.len() - rest.len();
        let mut bytes = [0; 8];
        bytes.get_mut(..self.length)?.copy_from_slice(opcodes.get(..self.length)?);
        self.get = u64::from_le_bytes(bytes);
        self.mask = u64::MAX >> (64 - 8 * self.length);
        Some(rest)
    }
}

impl<K> FoldedKeys<K> {
    /// Forgets what GETs bring back: an entry of the memo was replaced.
    pub(super) fn forget(&mut self) {
        self.keys.iter_mut().for_each(|key| (key.get, key.mask) = (KnownKey::NO_GET, 0));
    }
}
