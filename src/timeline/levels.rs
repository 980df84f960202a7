//! The curve of requested bytes, event by event, and its maxima.
//!
//! In: the level after each event, against that before the first. Out: levels, the highest of a range, where it is
//! reached, and the highest as it would be with other lifetimes. Always: a level is exact below 2^63 bytes; no device holds so many,
//! and a file that says so is cut there.

use std::ops::Range;

use crate::unit::Bytes;

/// Events whose highest level is kept, so that a range is asked block by block.
const BLOCK: usize = 1024;

/// Requested bytes after each event.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    start: Bytes,
    /// After each event, against the start.
    after: Vec<i64>,
    /// The highest of each block of events.
    highest: Vec<i64>,
}

/// More or fewer bytes from one event on, as a changed lifetime has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    /// The position of the event after which it counts; `None` before all.
    pub from: Option<usize>,
    /// How many.
    pub bytes: Bytes,
    /// Whether they are more.
    pub more: bool,
}

/// Shifts in the order of their events, as a curve is walked with them.
#[derive(Debug, Clone, Default)]
pub struct Shifts {
    /// What counts before all events.
    at_once: i128,
    /// What comes to it with each event: few bytes each, there may be two for every allocation.
    later: Vec<(usize, i64)>,
}

impl Shifts {
    /// Some shifts, in any order.
    pub fn of(shifts: impl IntoIterator<Item = Shift>) -> Shifts {
        let mut all = Shifts::default();
        for shift in shifts {
            let bytes = i64::try_from(shift.bytes.get()).unwrap_or(i64::MAX);
            let by = if shift.more { bytes } else { -bytes };
            match shift.from {
                Some(from) => all.later.push((from, by)),
                None => all.at_once += i128::from(by),
            }
        }
        // The stable order finds the parts that are sorted.
        all.later.sort_by_key(|(from, _)| *from);
        all
    }

    /// Several together.
    pub fn all<'s>(each: impl IntoIterator<Item = &'s Shifts>) -> Shifts {
        let mut all = Shifts::default();
        for shifts in each {
            all.at_once += shifts.at_once;
            all.later.extend_from_slice(&shifts.later);
        }
        all.later.sort_by_key(|(from, _)| *from);
        all
    }

    /// What undoes these.
    #[must_use]
    pub fn undone(&self) -> Shifts {
        Shifts { at_once: -self.at_once, later: self.later.iter().map(|(from, by)| (*from, -by)).collect() }
    }

    /// Ranges of events one after the other until an end, each with what the shifts come to in it.
    fn between(&self, end: usize) -> impl Iterator<Item = (Range<usize>, i128)> {
        let (mut from, mut shift) = (0, self.at_once);
        self.later.iter().copied().chain([(end, 0)]).map(move |(until, by)| {
            let range = from..until.min(end);
            let moved = shift;
            (from, shift) = (until, shift + i128::from(by));
            (range, moved)
        })
    }
}

impl Levels {
    /// The levels after each event, given as differences to what stands before the first.
    pub fn of(start: Bytes, after: Vec<i64>) -> Levels {
        let highest = after.chunks(BLOCK).map(|block| block.iter().copied().max().unwrap_or(0)).collect();
        Levels { start, after, highest }
    }

    /// What stands before the event at a position; after the last, for the number of events.
    pub fn before(&self, position: usize) -> Bytes {
        let after = position.checked_sub(1).map_or(Some(0), |last| self.after.get(last).copied());
        after.map_or(Bytes::ZERO, |level| self.bytes(i128::from(level)))
    }

    /// The highest level after an event of a range, and where the range begins with the first event, before it; nothing where
    /// the range is empty. Takes time by the range alone: each of very many iterations is asked for its own.
    pub fn highest(&self, events: Range<usize>) -> Bytes {
        let before = (events.start == 0).then_some(0);
        before.max(self.highest_after(events)).map_or(Bytes::ZERO, |most| self.bytes(i128::from(most)))
    }

    /// The highest level after an event of a range, against the start.
    fn highest_after(&self, events: Range<usize>) -> Option<i64> {
        let mut most = None;
        let (mut at, end) = (events.start, events.end.min(self.after.len()));
        while at < end {
            let block = at / BLOCK;
            let next = (block + 1) * BLOCK;
            let highest = if at == block * BLOCK && next <= end {
                self.highest.get(block).copied()
            } else {
                self.after.get(at..next.min(end)).and_then(|levels| levels.iter().copied().max())
            };
            most = most.max(highest);
            at = next;
        }
        most
    }

    /// The first event of a range after which so many bytes are in use, of those that `counts` accepts.
    pub fn reaching(
        &self,
        events: Range<usize>,
        bytes: Bytes,
        counts: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let wanted = i128::from(bytes.get()) - i128::from(self.start.get());
        let reaches = |level: i64| i128::from(level) >= wanted;
        let blocks = self.highest.iter().enumerate().skip(events.start / BLOCK);
        blocks.filter(|(_, highest)| reaches(**highest)).find_map(|(block, _)| {
            let first = (block * BLOCK).max(events.start);
            let levels = self.after.iter().enumerate().take(events.end.min((block + 1) * BLOCK)).skip(first);
            levels.filter(|(at, level)| reaches(**level) && counts(*at)).map(|(at, _)| at).next()
        })
    }

    /// The highest level after an event of a range, shifted, and where the range begins with the first event, before it. Takes
    /// time by the shifts and the blocks: where a block has no shift its highest level is known.
    pub fn highest_with(&self, events: Range<usize>, shifts: &Shifts) -> Bytes {
        let before = (events.start == 0).then_some(shifts.at_once);
        let each = shifts.between(self.after.len()).filter_map(|(range, moved)| {
            let asked = range.start.max(events.start)..range.end.min(events.end);
            self.highest_after(asked).map(|level| i128::from(level) + moved)
        });
        before.max(each.max()).map_or(Bytes::ZERO, |most| self.bytes(most))
    }

    /// The curve as it would be with other lifetimes.
    #[must_use]
    pub fn shifted(&self, shifts: &Shifts) -> Levels {
        let cut = |level: i128| i64::try_from(level).unwrap_or(if level < 0 { i64::MIN } else { i64::MAX });
        let mut after = Vec::with_capacity(self.after.len());
        for (range, moved) in shifts.between(self.after.len()) {
            // Against the start as it then stands.
            let moved = moved - shifts.at_once;
            let levels = self.after.get(range).unwrap_or_default();
            after.extend(levels.iter().map(|level| cut(i128::from(*level) + moved)));
        }
        Levels::of(self.bytes(shifts.at_once), after)
    }

    fn bytes(&self, difference: i128) -> Bytes {
        let level = i128::from(self.start.get()) + difference;
        Bytes(u64::try_from(level.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A saw over three blocks and a bit: the level after event n is 100 + n % 7 * 10.
    fn saw() -> Levels {
        Levels::of(Bytes(100), (0..7).map(|tooth| 10 * tooth).cycle().take(3 * BLOCK + 100).collect())
    }

    fn shift(from: usize, bytes: u64, more: bool) -> Shift {
        Shift { from: Some(from), bytes: Bytes(bytes), more }
    }

    #[test]
    fn levels_and_maxima_of_ranges() {
        let levels = saw();
        assert_eq!(
            (levels.before(0), levels.before(7), levels.before(8)),
            (Bytes(100), Bytes(160), Bytes(100))
        );
        assert_eq!(levels.highest(7..9), Bytes(110));
        assert_eq!(levels.highest(0..3 * BLOCK + 100), Bytes(160));
        assert_eq!(levels.highest(2000..2000), Bytes::ZERO);
        assert_eq!(levels.reaching(7..5000, Bytes(150), |_| true), Some(12));
        assert_eq!(levels.reaching(7..5000, Bytes(150), |at| at > 2100), Some(2105));
        assert_eq!(levels.reaching(0..5000, Bytes(161), |_| true), None);
    }

    #[test]
    fn shifted_maxima_are_those_of_the_shifted_curve() {
        let levels = saw();
        let shifts =
            [shift(1500, 50, false), shift(700, 30, true), shift(1500, 5, true), shift(2100, 15, true)];
        let sorted = Shifts::of(shifts);
        let mut plain: Vec<i128> = saw().after.into_iter().map(|level| 100 + i128::from(level)).collect();
        for one in &shifts {
            for level in plain.iter_mut().skip(one.from.unwrap()) {
                *level += if one.more { 1 } else { -1 } * i128::from(one.bytes.get());
            }
        }
        for range in [0..3172, 699..701, 1500..1503, 1024..2048, 1500..3172, 2100..2101, 3000..3172] {
            let signed = |bytes: Bytes| i128::from(bytes.get());
            let expected = plain[range.clone()].iter().copied().max().unwrap();
            assert_eq!(signed(levels.highest_with(range.clone(), &sorted)), expected, "{range:?}");
            assert_eq!(signed(levels.shifted(&sorted).highest(range.clone())), expected, "{range:?}");
            let plain = levels.highest_with(range.clone(), &Shifts::default());
            assert_eq!(levels.highest(range.clone()), plain, "{range:?}");
            let back = levels.shifted(&sorted).highest_with(range.clone(), &sorted.undone());
            assert_eq!(levels.highest(range.clone()), back, "{range:?}");
        }
    }

    #[test]
    fn what_stands_before_the_first_event_counts_from_there_on() {
        let levels = Levels::of(Bytes(100), vec![-40, -60]);
        let gone = Shifts::of([Shift { from: None, bytes: Bytes(30), more: false }]);
        assert_eq!(levels.highest_with(0..2, &gone), Bytes(70));
        assert_eq!(levels.highest_with(1..2, &gone), Bytes(10));
    }
}
