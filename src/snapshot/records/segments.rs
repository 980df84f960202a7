//! Segments and their blocks, with the occupants that PyTorch 1.13 and 2.0 list.

use super::{Folded, Occupant, Records, SegmentRow, address, bytes, keys, pool, row, signed, table, text};
use crate::pickle::{Heap, TableRow, Value};
use crate::snapshot::words::{KnownWord, word};
use crate::snapshot::{Block, BlockState, Segment};
use crate::unit::{Bytes, StringId};

impl Records {
    pub(super) fn block(
        &mut self,
        items: impl Iterator<Item = (StringId, Value)>,
        heap: &Heap,
    ) -> Folded<TableRow> {
        let mut block = Block {
            address: 0,
            size: Bytes::ZERO,
            requested: Bytes::ZERO,
            stack: None,
            state: BlockState::Inactive,
        };
        let (mut sized, mut requested, mut occupant) = (false, false, None);
        for (key, value) in items {
            match word(key) {
                Some(KnownWord::BlockAddress | KnownWord::Address) => {
                    block.address = address(value, "a block's `address` that is no address")?;
                }
                Some(KnownWord::Size) => {
                    block.size = bytes(value, "a block's `size` that is no number of bytes")?;
                    sized = true;
                }
                Some(KnownWord::RequestedSize) => {
                    block.requested = bytes(value, "a block's `requested_size` that is no number of bytes")?;
                    requested = true;
                }
                Some(KnownWord::State) => {
                    let state = text(value, "a block's `state` that is no text")?;
                    block.state = match word(state) {
                        Some(KnownWord::ActiveAllocated) => BlockState::Allocated,
                        Some(KnownWord::ActivePendingFree | KnownWord::ActiveAwaitingFree) => {
                            BlockState::PendingFree
                        }
                        Some(KnownWord::Inactive) => BlockState::Inactive,
                        _ => {
                            *self.unknown_states.entry(state).or_insert(0) += 1;
                            BlockState::Inactive
                        }
                    };
                }
                Some(KnownWord::Frames) => block.stack = Some(self.stack(value, heap)?),
                Some(KnownWord::History) => occupant = self.newest_occupant(value, heap),
                Some(KnownWord::ForwardFrames | KnownWord::CppFrames) => {}
                _ => self.unknown(key),
            }
        }
        if !sized {
            return Err("a block without `size`");
        }
        if let Some(occupant) = occupant {
            block.stack = block.stack.or(occupant.stack);
        }
        if !requested {
            block.requested = occupant.map_or(block.size, |occupant| occupant.requested);
        }
        self.blocks.push(block);
        row(table::BLOCK, self.blocks.len() - 1)
    }

    /// `history` lists the newest occupant first (`torch/cuda/_memory_viz.py` reads `history[0]`).
    fn newest_occupant(&self, value: Value, heap: &Heap) -> Option<Occupant> {
        let run = heap.row(value).filter(|row| row.table() == table::RUN)?;
        let run = self.runs.get(run.index()).filter(|run| run.table == table::HISTORY)?;
        self.occupants.get(run.first).copied()
    }

    pub(super) fn occupant(&mut self, items: &[Value], heap: &Heap) -> Folded<TableRow> {
        let mut occupant = Occupant { requested: Bytes::ZERO, stack: None };
        for (key, value) in keys(items) {
            match word(key) {
                Some(KnownWord::RealSize) => {
                    occupant.requested = bytes(value, "a `real_size` that is no number of bytes")?;
                }
                Some(KnownWord::Frames) => occupant.stack = Some(self.stack(value, heap)?),
                _ => {}
            }
        }
        self.occupants.push(occupant);
        row(table::HISTORY, self.occupants.len() - 1)
    }

    pub(super) fn segment(&mut self, items: &[Value], heap: &Heap) -> Folded<TableRow> {
        let mut segment = Segment::default();
        let mut blocks = None;
        for (key, value) in keys(items) {
            match word(key) {
                Some(KnownWord::Device) => {
                    let device = signed(value, "a segment's `device` that is no number")?;
                    segment.device =
                        i32::try_from(device).map_err(|_| "a segment's `device` that is no ordinal")?;
                }
                // PyTorch's conversion of profiles writes None where it saw no block.
                Some(KnownWord::BlockAddress) if value == Value::None => {}
                Some(KnownWord::BlockAddress) => {
                    segment.address = address(value, "a segment's `address` that is no address")?;
                }
                Some(KnownWord::TotalSize) => {
                    segment.total_size = bytes(value, "a segment's `total_size` that is no number of bytes")?;
                }
                Some(KnownWord::Stream) => {
                    segment.stream = self.stream(signed(value, "a segment's `stream` that is no number")?);
                }
                Some(KnownWord::SegmentType) => {
                    segment.small_pool =
                        matches!(value, Value::Text(id) if word(id) == Some(KnownWord::Small));
                }
                Some(KnownWord::SegmentPoolId) => segment.pool = pool(value, heap)?,
                Some(KnownWord::IsExpandable) => segment.expandable = value == Value::Bool(true),
                Some(KnownWord::Frames) => segment.stack = Some(self.stack(value, heap)?),
                Some(KnownWord::Blocks) => blocks = Some(value),
                Some(
                    KnownWord::AllocatedSize
                    | KnownWord::ActiveSize
                    | KnownWord::RequestedSize
                    | KnownWord::ForwardFrames,
                ) => {}
                _ => self.unknown(key),
            }
        }
        self.segments.push(SegmentRow { segment, blocks });
        row(table::SEGMENT, self.segments.len() - 1)
    }
}
