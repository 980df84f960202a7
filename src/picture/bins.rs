//! The moments that are drawn: in each bin of equal width the one at which most is in use.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::snapshot::Event;
use crate::unit::{Bytes, Micros};

/// Moments in bins of equal width.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// The moments of a bin: a power of two, 1 where every event is drawn.
    pub width: usize,
    /// For each bin the moment that it shows: the first of its fullest. Ascends.
    pub shown: Vec<usize>,
    /// Bytes in use at the moment that is shown.
    pub requested: Vec<Bytes>,
    /// The highest reserved bytes of the bin.
    pub reserved: Vec<Bytes>,
    /// When the moment that is shown was, against the first event. Never descends: clocks of several threads may.
    pub times: Vec<Micros>,
}

impl Bins {
    /// At most `most` bins.
    pub(super) fn of(facts: &Facts, most: usize) -> Bins {
        let moments = facts.trace.events.len() + 1;
        let width = moments.div_ceil(most.max(1)).next_power_of_two();
        let mut bins = Bins { width, ..Bins::default() };
        let reserved = reserved(facts);
        let first = facts.trace.events.iter().map(|event| event.time.0).find(|time| *time > 0).unwrap_or(0);
        let mut latest = 0;
        for start in (0..moments).step_by(width) {
            let all = start..moments.min(start + width);
            let (shown, requested) = fullest(facts, all.clone());
            let highest = reserved.get(all).and_then(|part| part.iter().max().copied());
            let last = shown.checked_sub(1).and_then(|at| facts.trace.events.get(at));
            latest = last.map_or(0, |event| event.time.0.saturating_sub(first)).max(latest);
            bins.shown.push(shown);
            bins.requested.push(requested);
            bins.reserved.push(highest.unwrap_or_default());
            bins.times.push(Micros(latest));
        }
        bins
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// The first bin that shows a moment as late as this one, or later; the number of bins where none does.
    pub(super) fn from(&self, moment: usize) -> usize {
        let bin = moment / self.width.max(1);
        match self.shown.get(bin) {
            Some(shown) if *shown < moment => bin + 1,
            Some(_) => bin,
            None => self.len(),
        }
    }

    /// The bins in which something is seen that lives from one moment until another.
    pub(super) fn seen(&self, born: usize, died: Option<usize>) -> Range<usize> {
        self.from(born)..died.map_or(self.len(), |died| self.from(died))
    }
}

/// The first of the fullest moments of some, and what is in use there.
fn fullest(facts: &Facts, moments: Range<usize>) -> (usize, Bytes) {
    let levels = &facts.timeline.levels;
    let mut best = (moments.start, levels.before(moments.start));
    for moment in moments.skip(1) {
        let level = levels.before(moment);
        if level > best.1 {
            best = (moment, level);
        }
    }
    best
}

/// Reserved bytes at every moment.
fn reserved(facts: &Facts) -> Vec<Bytes> {
    let mut level = i128::from(facts.timeline.reserved_at_start.get());
    let bytes = |level: i128| Bytes(u64::try_from(level.max(0)).unwrap_or(u64::MAX));
    let after = |event: &Event| {
        level += event.reserves().unwrap_or(0);
        bytes(level)
    };
    let start = facts.timeline.reserved_at_start;
    std::iter::once(start).chain(facts.trace.events.iter().map(after)).collect()
}
