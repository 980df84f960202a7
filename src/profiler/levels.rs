//! How much there is of each category as the rows come: the peak, the end, and what does not add up.

use super::{Composition, Pass};
use crate::unit::{Bytes, Micros};

/// Bytes of each category; below zero where a file frees more than it made.
pub(super) type Level = [i64; 8];

/// Bytes by category, where nothing is less than nothing.
pub(super) fn composition(level: &Level) -> Composition {
    Composition(level.map(|bytes| Bytes(u64::try_from(bytes).unwrap_or(0))))
}

/// The sum of a level's categories.
fn total(level: &Level) -> Bytes {
    composition(level).total()
}

/// The running level.
#[derive(Debug, Default)]
pub(super) struct Levels {
    pub(super) now: Level,
    pub(super) rows: usize,
    pub(super) times: Option<(Micros, Micros)>,
    pub(super) peak: Level,
    pub(super) peak_time: Option<Micros>,
    pub(super) below_zero: Bytes,
    pub(super) backwards: i64,
    /// The highest total since the last pass ended.
    highest: Bytes,
    most: Bytes,
}

impl Levels {
    /// What a row leaves, and when; `None` for what was there before the recording.
    pub(super) fn set(&mut self, time: Option<Micros>, level: Level) {
        self.rows += 1;
        self.now = level;
        let now = total(&level);
        self.highest = self.highest.max(now);
        if now > self.most {
            (self.most, self.peak, self.peak_time) = (now, level, time);
        }
        let lowest = level.iter().copied().min().unwrap_or(0).min(0);
        self.below_zero = self.below_zero.max(Bytes(lowest.unsigned_abs()));
        let Some(time) = time else { return };
        let (first, last) = self.times.unwrap_or((time, time));
        self.backwards = self.backwards.max(last.0.saturating_sub(time.0));
        self.times = Some((first.min(time), last.max(time)));
    }

    /// Ends a pass here.
    pub(super) fn end_pass(&mut self, end: Option<Micros>) -> Pass {
        let peak = std::mem::replace(&mut self.highest, total(&self.now));
        Pass { end, peak, resident: composition(&self.now) }
    }
}
