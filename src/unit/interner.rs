//! Each distinct string once, each distinct sequence of ids once.
//!
//! Both interners keep their contents in one flat arena and a table of positions into it: no allocation for each entry,
//! and equality of contents becomes equality of ids. Ids count from zero in the order of first sight, so equal inputs
//! give equal ids.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::index::{Index, StringId};

/// Interned strings.
#[derive(Debug, Default, Clone)]
pub struct StringInterner {
    text: String,
    ends: Vec<u32>,
    table: HashTable<StringId>,
}

impl StringInterner {
    /// The id of `text`; `None` once 4 GiB of distinct text are stored.
    pub fn intern(&mut self, text: &str) -> Option<StringId> {
        let hash = FxBuildHasher.hash_one(text);
        let (all, ends) = (&self.text, &self.ends);
        if let Some(&id) = self.table.find(hash, |&id| slice(all, ends, id) == text) {
            return Some(id);
        }
        let id = StringId::at(self.ends.len())?;
        let end = u32::try_from(self.text.len() + text.len()).ok()?;
        self.text.push_str(text);
        self.ends.push(end);
        let (all, ends) = (&self.text, &self.ends);
        self.table.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(slice(all, ends, id)));
        Some(id)
    }

    /// The id of `text` if it was interned before.
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.table.find(FxBuildHasher.hash_one(text), |&id| self.get(id) == text).copied()
    }

    /// The text of an id; empty for an id of another interner.
    pub fn get(&self, id: StringId) -> &str {
        slice(&self.text, &self.ends, id)
    }

    /// How many distinct strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether nothing was interned.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn slice<'a>(all: &'a str, ends: &[u32], id: StringId) -> &'a str {
    let position = id.position();
    let start = position.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(position).copied().unwrap_or(start);
    all.get(start as usize..end as usize).unwrap_or_default()
}

/// Interned sequences of small values (stacks as sequences of frames), addressed by the index type `I`.
#[derive(Debug, Clone)]
pub struct SequenceInterner<I, T> {
    items: Vec<T>,
    ends: Vec<u32>,
    table: HashTable<I>,
}

impl<I, T> Default for SequenceInterner<I, T> {
    fn default() -> Self {
        SequenceInterner { items: Vec::new(), ends: Vec::new(), table: HashTable::new() }
    }
}

impl<I: Index, T: Copy + Eq + Hash> SequenceInterner<I, T> {
    /// The id of the sequence; `None` once 2^32 items are stored.
    pub fn intern(&mut self, sequence: &[T]) -> Option<I> {
        let hash = FxBuildHasher.hash_one(sequence);
        let (items, ends) = (&self.items, &self.ends);
        if let Some(&id) = self.table.find(hash, |&id| run(items, ends, id) == sequence) {
            return Some(id);
        }
        let id = I::at(self.ends.len())?;
        let end = u32::try_from(self.items.len() + sequence.len()).ok()?;
        self.items.extend_from_slice(sequence);
        self.ends.push(end);
        let (items, ends) = (&self.items, &self.ends);
        self.table.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(run(items, ends, id)));
        Some(id)
    }

    /// The sequence of an id; empty for an id of another interner.
    pub fn get(&self, id: I) -> &[T] {
        run(&self.items, &self.ends, id)
    }

    /// How many distinct sequences there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether nothing was interned.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

fn run<'a, I: Index, T>(items: &'a [T], ends: &[u32], id: I) -> &'a [T] {
    let position = id.position();
    let start = position.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let end = ends.get(position).copied().unwrap_or(start);
    items.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{FrameId, StackId};

    #[test]
    fn equal_text_has_one_id() {
        let mut interner = StringInterner::default();
        let first = interner.intern("alloc").unwrap();
        let empty = interner.intern("").unwrap();
        assert_eq!(interner.intern("alloc"), Some(first));
        assert_eq!(interner.find("alloc"), Some(first));
        assert_eq!(interner.find("free"), None);
        assert_eq!((interner.get(first), interner.get(empty)), ("alloc", ""));
        assert_eq!(interner.len(), 2);
    }

    #[test]
    fn a_sequence_is_told_from_its_prefix() {
        let frames: Vec<FrameId> = (0..3).filter_map(FrameId::at).collect();
        let mut stacks = SequenceInterner::<StackId, FrameId>::default();
        let whole = stacks.intern(&frames).unwrap();
        let prefix = stacks.intern(&frames[..2]).unwrap();
        assert_ne!(whole, prefix);
        assert_eq!(stacks.intern(&frames), Some(whole));
        assert_eq!(stacks.get(prefix), &frames[..2]);
    }
}
