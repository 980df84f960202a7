//! Segments and their blocks, with the occupants that PyTorch 1.13 and 2.0 list.

use super::{Folded, Occupant, Records, SegmentRow, address, bytes, keys, pool, row, signed, table, text};
use crate::pickle::{Heap, Row, Value};
use crate::snapshot::words::{Word, word};
use crate::snapshot::{Block, BlockState, Segment};
use crate::unit::{Bytes, StringId};

impl Records {
    pub(super) fn block(
        &mut self,
        items: impl Iterator<Item = (StringId, Value)>,
        heap: &Heap,
    ) -> Folded<Row> {
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
                Some(Word::BlockAddress | Word::Address) => {
                    block.address = address(value, "a block's `address` that is no address")?;
                }
                Some(Word::Size) => {
                    block.size = bytes(value, "a block's `size` that is no number of bytes")?;
                    sized = true;
                }
                Some(Word::RequestedSize) => {
                    block.requested = bytes(value, "a block's `requested_size` that is no number of bytes")?;
                    requested = true;
                }
                Some(Word::State) => {
                    let state = text(value, "a block's `state` that is no text")?;
                    block.state = match word(state) {
                        Some(Word::ActiveAllocated) => BlockState::Allocated,
                        Some(Word::ActivePendingFree | Word::ActiveAwaitingFree) => BlockState::PendingFree,
                        Some(Word::Inactive) => BlockState::Inactive,
                        _ => {
                            *self.unknown_states.entry(state).or_insert(0) += 1;
                            BlockState::Inactive
                        }
                    };
                }
                Some(Word::Frames) => block.stack = Some(self.stack(value, heap)?),
                Some(Word::History) => occupant = self.newest_occupant(value, heap),
                Some(Word::ForwardFrames | Word::CppFrames) => {}
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

    pub(super) fn occupant(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
        let mut occupant = Occupant { requested: Bytes::ZERO, stack: None };
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::RealSize) => {
                    occupant.requested = bytes(value, "a `real_size` that is no number of bytes")?;
                }
                Some(Word::Frames) => occupant.stack = Some(self.stack(value, heap)?),
                _ => {}
            }
        }
        self.occupants.push(occupant);
        row(table::HISTORY, self.occupants.len() - 1)
    }

    pub(super) fn segment(&mut self, items: &[Value], heap: &Heap) -> Folded<Row> {
        let mut segment = Segment::default();
        let mut blocks = None;
        for (key, value) in keys(items) {
            match word(key) {
                Some(Word::Device) => {
                    let device = signed(value, "a segment's `device` that is no number")?;
                    segment.device =
                        i32::try_from(device).map_err(|_| "a segment's `device` that is no ordinal")?;
                }
                // PyTorch's conversion of profiles writes None where it saw no block.
                Some(Word::BlockAddress) if value == Value::None => {}
                Some(Word::BlockAddress) => {
                    segment.address = address(value, "a segment's `address` that is no address")?;
                }
                Some(Word::TotalSize) => {
                    segment.total_size = bytes(value, "a segment's `total_size` that is no number of bytes")?;
                }
                Some(Word::Stream) => {
                    segment.stream = self.stream(signed(value, "a segment's `stream` that is no number")?);
                }
                Some(Word::SegmentType) => {
                    segment.small_pool = matches!(value, Value::Text(id) if word(id) == Some(Word::Small));
                }
                Some(Word::SegmentPoolId) => segment.pool = pool(value, heap)?,
                Some(Word::IsExpandable) => segment.expandable = value == Value::Bool(true),
                Some(Word::Frames) => segment.stack = Some(self.stack(value, heap)?),
                Some(Word::Blocks) => blocks = Some(value),
                Some(Word::AllocatedSize | Word::ActiveSize | Word::RequestedSize | Word::ForwardFrames) => {}
                _ => self.unknown(key),
            }
        }
        self.segments.push(SegmentRow { segment, blocks });
        row(table::SEGMENT, self.segments.len() - 1)
    }
}
