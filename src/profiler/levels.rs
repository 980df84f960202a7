//! How much there is of each category as the rows come: the peak, the end, and what does not add up.

use super::{Composition, ProfiledPass};
use crate::unit::{Bytes, Micros};

/// Bytes of each category; below zero where a file frees more than it made.
pub(super) type CategoryBytes = [i64; 8];

/// Bytes by category, where nothing is less than nothing.
pub(super) fn composition(level: &CategoryBytes) -> Composition {
    Composition(level.map(|bytes| Bytes(u64::try_from(bytes).unwrap_or(0))))
}

/// The sum of a level's categories.
fn total(level: &CategoryBytes) -> Bytes {
    composition(level).total()
}

/// The running level.
#[derive(Debug, Default)]
pub(super) struct RunningLevel {
    pub(super) now: CategoryBytes,
    pub(super) rows: usize,
    pub(super) times: Option<(Micros, Micros)>,
    pub(super) peak: CategoryBytes,
    pub(super) peak_time: Option<Micros>,
    pub(super) below_zero: Bytes,
    pub(super) backwards: i64,
    /// The highest total since the last pass ended.
    highest: Bytes,
    most: Bytes,
}

impl RunningLevel {
    /// What a row leaves, and when; `None` for what was there before the recording.
    pub(super) fn set(&mut self, time: Option<Micros>, level: CategoryBytes) {
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
    pub(super) fn end_pass(&mut self, end: Option<Micros>) -> ProfiledPass {
        let peak = std::mem::replace(&mut self.highest, total(&self.now));
        ProfiledPass { end, peak, resident: composition(&self.now) }
    }
}
