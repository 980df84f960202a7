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

impl Shift {
    fn by(&self) -> i128 {
        let bytes = i128::from(self.bytes.get());
        if self.more { bytes } else { -bytes }
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
        let mut most = (events.start == 0).then_some(0);
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
        most.map_or(Bytes::ZERO, |most| self.bytes(i128::from(most)))
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
    pub fn highest_with(&self, events: Range<usize>, shifts: &[Shift]) -> Bytes {
        let at_once: i128 = shifts.iter().filter(|shift| shift.from.is_none()).map(Shift::by).sum();
        let sorted = by_block(shifts, self.highest.len());
        let (mut shift, mut most) = (at_once, None);
        if events.start == 0 {
            most = Some(shift);
        }
        let mut steps = [0; BLOCK];
        let last_block = events.end.div_ceil(BLOCK);
        for (block, (highest, inside)) in self.highest.iter().zip(&sorted).enumerate().take(last_block) {
            let first = block * BLOCK;
            let whole = events.start <= first && first + BLOCK <= events.end;
            if inside.is_empty() && (whole || events.start >= first + BLOCK) {
                if whole {
                    most = most.max(Some(i128::from(*highest) + shift));
                }
                continue;
            }
            step_by(inside, first, &mut steps);
            for ((at, level), step) in self.after.iter().enumerate().skip(first).zip(&steps) {
                shift += step;
                if events.contains(&at) {
                    most = most.max(Some(i128::from(*level) + shift));
                }
            }
        }
        most.map_or(Bytes::ZERO, |most| self.bytes(most))
    }

    /// The curve as it would be with other lifetimes.
    #[must_use]
    pub fn shifted(&self, shifts: &[Shift]) -> Levels {
        let before: i128 = shifts.iter().filter(|shift| shift.from.is_none()).map(Shift::by).sum();
        let cut = |level: i128| i64::try_from(level).unwrap_or(if level < 0 { i64::MIN } else { i64::MAX });
        let mut after = Vec::with_capacity(self.after.len());
        // Against the start as it then stands.
        let (mut moved, mut steps) = (0, [0; BLOCK]);
        let blocks = self.after.chunks(BLOCK).zip(by_block(shifts, self.highest.len()));
        for (block, (levels, inside)) in blocks.enumerate() {
            step_by(&inside, block * BLOCK, &mut steps);
            after.extend(levels.iter().zip(&steps).map(|(level, step)| {
                moved += step;
                cut(i128::from(*level) + moved)
            }));
        }
        Levels::of(self.bytes(before), after)
    }

    fn bytes(&self, difference: i128) -> Bytes {
        let level = i128::from(self.start.get()) + difference;
        Bytes(u64::try_from(level.max(0)).unwrap_or(u64::MAX))
    }
}

/// What the shifts of a block of events come to at each of them, the first of which is `first`.
fn step_by(inside: &[Shift], first: usize, steps: &mut [i128; BLOCK]) {
    steps.fill(0);
    for one in inside {
        if let Some(step) = one.from.and_then(|from| steps.get_mut(from - first)) {
            *step += one.by();
        }
    }
}

/// The shifts of each block of events.
fn by_block(shifts: &[Shift], blocks: usize) -> Vec<Vec<Shift>> {
    let mut sorted = vec![Vec::new(); blocks];
    for shift in shifts {
        if let Some(block) = shift.from.and_then(|from| sorted.get_mut(from / BLOCK)) {
            block.push(*shift);
        }
    }
    sorted
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
        let mut plain: Vec<i128> = saw().after.into_iter().map(|level| 100 + i128::from(level)).collect();
        for one in &shifts {
            for level in plain.iter_mut().skip(one.from.unwrap()) {
                *level += one.by();
            }
        }
        for range in [0..3172, 699..701, 1500..1503, 1024..2048, 1500..3172, 2100..2101, 3000..3172] {
            let signed = |bytes: Bytes| i128::from(bytes.get());
            let expected = plain[range.clone()].iter().copied().max().unwrap();
            assert_eq!(signed(levels.highest_with(range.clone(), &shifts)), expected, "{range:?}");
            assert_eq!(levels.highest(range.clone()), levels.highest_with(range.clone(), &[]), "{range:?}");
        }
    }

    #[test]
    fn what_stands_before_the_first_event_counts_from_there_on() {
        let levels = Levels::of(Bytes(100), vec![-40, -60]);
        let gone = Shift { from: None, bytes: Bytes(30), more: false };
        assert_eq!(levels.highest_with(0..2, &[gone]), Bytes(70));
        assert_eq!(levels.highest_with(1..2, &[gone]), Bytes(10));
    }
}
