//! Blocks, and which lies beside which.
//!
//! Always: a block's neighbours point back at it, and blocks of one segment follow one another without a gap.

use std::ops::{Index, IndexMut};

use rustc_hash::FxHashSet;

/// A block, by its place in [`Blocks`]; places of blocks that are gone are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::replay) struct BlockId(u32);

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::replay) enum State {
    /// Handed out, or given back while a stream still uses it.
    Taken,
    /// Free for the next request.
    Free,
    /// Addresses of an expandable segment without memory behind them.
    Unmapped,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy)]
pub(in crate::replay) struct ModelBlock {
    pub(in crate::replay) address: u64,
    pub(in crate::replay) size: u64,
    pub(in crate::replay) state: State,
    /// The neighbours in the same segment.
    pub(super) before: Option<BlockId>,
    pub(super) after: Option<BlockId>,
    /// The pool that it belongs to, by its place in the allocator.
    pub(super) pool: usize,
    pub(super) stream: u64,
    /// The number of its segment in the order in which memory was got from the driver.
    pub(super) age: u32,
    /// How often its pool had been searched when it became free.
    pub(super) free_since: u64,
    /// The range of addresses that it was cut from, where its segment is expandable.
    pub(super) reservation: Option<usize>,
}

impl ModelBlock {
    /// Whether it is a segment of its own.
    pub(super) fn is_whole(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }
}

/// All blocks of an allocator.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    all: Vec<ModelBlock>,
    vacant: Vec<BlockId>,
}

impl Blocks {
    /// Adds a block; its neighbours are as it says, and are not told.
    pub(super) fn add(&mut self, block: ModelBlock) -> BlockId {
        if let Some(id) = self.vacant.pop() {
            self[id] = block;
            return id;
        }
        // There are never more blocks than events and blocks in the file, and both are counted in 32 bits.
        let id = BlockId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(block);
        id
    }

    /// Every block that there is, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ModelBlock> {
        let vacant: FxHashSet<u32> = self.vacant.iter().map(|id| id.0).collect();
        let there = self.all.iter().zip(0..).filter(move |(_, at)| !vacant.contains(at));
        there.map(|(block, _)| block)
    }

    /// Adds a block behind another and before that one's neighbour.
    pub(super) fn add_after(&mut self, id: BlockId, block: ModelBlock) -> BlockId {
        let after = self[id].after;
        let new = self.add(ModelBlock { before: Some(id), after, ..block });
        self[id].after = Some(new);
        if let Some(after) = after {
            self[after].before = Some(new);
        }
        new
    }

    /// Adds a block in front of another and behind that one's neighbour.
    pub(super) fn add_before(&mut self, id: BlockId, block: ModelBlock) -> BlockId {
        let before = self[id].before;
        let new = self.add(ModelBlock { before, after: Some(id), ..block });
        self[id].before = Some(new);
        if let Some(before) = before {
            self[before].after = Some(new);
        }
        new
    }

    /// Takes a block out; its neighbours become each other's.
    pub(super) fn remove(&mut self, id: BlockId) {
        let ModelBlock { before, after, .. } = self[id];
        if let Some(before) = before {
            self[before].after = after;
        }
        if let Some(after) = after {
            self[after].before = before;
        }
        self.vacant.push(id);
    }

    /// Makes one block of two neighbours; `gone` is no more.
    pub(super) fn merge(&mut self, kept: BlockId, gone: BlockId) {
        let other = self[gone];
        let block = &mut self[kept];
        block.address = block.address.min(other.address);
        block.size += other.size;
        self.remove(gone);
    }
}

impl Index<BlockId> for Blocks {
    type Output = ModelBlock;

    fn index(&self, id: BlockId) -> &ModelBlock {
        &self.all[id.0 as usize]
    }
}

impl IndexMut<BlockId> for Blocks {
    fn index_mut(&mut self, id: BlockId) -> &mut ModelBlock {
        &mut self.all[id.0 as usize]
    }
}
