//! What was held from the driver: segments, and the pages of those that grow, each from its call until its return.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Bins;
use crate::facts::Facts;
use crate::replay::tiled_segments_at;
use crate::snapshot::{Action, Event, Segment};
use crate::unit::{Bytes, Index};

/// A range of addresses for as long as it was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its first byte, from the picture's base on.
    pub address: u64,
    /// How long it is.
    pub bytes: Bytes,
    /// The first bin that shows it.
    pub start: usize,
    /// The bin after the last; `None` where it is held at the end.
    pub end: Option<usize>,
    /// Its stream.
    pub stream: u16,
    /// Whether it is of a segment that grows in place: pieces that touch are one segment then.
    pub expandable: bool,
    /// Whether it belongs to a private pool, as far as that is known.
    pub private: bool,
}

/// A piece whose end is not known yet.
#[derive(Clone, Copy)]
struct Open {
    bytes: Bytes,
    moment: usize,
    stream: u16,
    expandable: bool,
    private: bool,
}

/// The pieces while the events go by.
struct SegmentPieces<'a> {
    facts: &'a Facts<'a>,
    bins: &'a Bins,
    base: u64,
    open: BTreeMap<u64, Open>,
    closed: Vec<Piece>,
}

/// The lowest address of a device.
pub(super) fn base(facts: &Facts) -> u64 {
    let held = facts.snapshot.segments_of(facts.device.position()).map(|segment| segment.address);
    let used = facts.timeline.allocations.iter().map(|one| one.address);
    held.chain(used).filter(|address| *address > 0).min().unwrap_or(0)
}

/// The pieces, in the order of their addresses; of more than `most` the largest for the longest time.
pub(super) fn pieces(facts: &Facts, bins: &Bins, base: u64, most: usize) -> Vec<Piece> {
    let (segments, _) = tiled_segments_at(facts.snapshot, facts.timeline, facts.replay, 0);
    let older = segments.into_iter().map(|segment| {
        let (stream, expandable) = (segment.stream, segment.expandable);
        let private = segment.pool != (0, 0);
        (segment.address, Open { bytes: segment.total_size, moment: 0, stream, expandable, private })
    });
    let mut pieces = SegmentPieces { facts, bins, base, open: older.collect(), closed: Vec::new() };
    for (at, event) in facts.trace.events.iter().enumerate() {
        pieces.step(at + 1, event);
    }
    let private = PrivateRanges::of(facts);
    for (address, open) in std::mem::take(&mut pieces.open) {
        let private = open.private || private.hold(address);
        pieces.close(address, Open { private, ..open }, None);
    }
    let mut closed = pieces.closed;
    let area =
        |one: &Piece| u128::from(one.bytes.get()) * (one.end.unwrap_or(bins.len()) - one.start) as u128;
    closed.sort_by_key(|one| (Reverse(area(one)), one.address, one.start));
    closed.truncate(most);
    closed.sort_unstable_by_key(|one| (one.address, one.start));
    closed
}

/// Where private pools lie at the end: the events of most versions do not say for which pool they ask.
struct PrivateRanges {
    /// By their first byte the one behind their last.
    ends: BTreeMap<u64, u64>,
}

impl PrivateRanges {
    fn of(facts: &Facts) -> PrivateRanges {
        let segments = facts.snapshot.segments_of(facts.device.position());
        let private = segments.filter(|segment| segment.pool != (0, 0));
        let range = |one: &Segment| (one.address, one.address.saturating_add(one.total_size.get()));
        PrivateRanges { ends: private.map(range).collect() }
    }

    fn hold(&self, address: u64) -> bool {
        self.ends.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    }
}

impl SegmentPieces<'_> {
    fn step(&mut self, moment: usize, event: &Event) {
        let (address, bytes) = (event.address, event.size);
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => {
                let private =
                    self.facts.snapshot.particulars_of(event).pool.is_some_and(|pool| pool != (0, 0));
                let expandable = event.action == Action::SegmentMap;
                self.open.insert(address, Open { bytes, moment, stream: event.stream, expandable, private });
            }
            Action::SegmentFree => {
                if let Some(open) = self.open.remove(&address) {
                    self.close(address, open, Some(moment));
                }
            }
            Action::SegmentUnmap => self.unmap(moment, address, address.saturating_add(bytes.get())),
            _ => {}
        }
    }

    /// Takes a range out of the pieces that hold it; what is left of them goes on.
    fn unmap(&mut self, moment: usize, from: u64, until: u64) {
        let first = self.open.range(..=from).next_back().map_or(from, |(address, _)| *address);
        let held: Vec<(u64, Open)> = self.open.range(first..until).map(|(at, open)| (*at, *open)).collect();
        for (address, open) in held {
            let end = address.saturating_add(open.bytes.get());
            if end <= from || !open.expandable {
                continue;
            }
            self.open.remove(&address);
            self.close(address, open, Some(moment));
            for (start, stop) in [(address, from), (until, end)] {
                if start < stop {
                    self.open.insert(start, Open { bytes: Bytes(stop - start), moment, ..open });
                }
            }
        }
    }

    fn close(&mut self, address: u64, open: Open, moment: Option<usize>) {
        let seen = self.bins.seen(open.moment, moment);
        let Some(address) = address.checked_sub(self.base) else { return };
        if seen.start < seen.end {
            let end = moment.map(|_| seen.end);
            let Open { bytes, stream, expandable, private, .. } = open;
            self.closed.push(Piece { address, bytes, start: seen.start, end, stream, expandable, private });
        }
    }
}
