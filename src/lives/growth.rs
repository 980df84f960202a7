//! The one judge of growth: does a loop leave more behind with every turn, and will it go on?
//!
//! In: what was there at the ends of a loop's turns, as intervals ([`Stay`]): tensors with the turns that they outlived, or the
//! rises of a curve. Out: a [`Growth`], or none. Rules, budgets, timelines of the profiler and comparisons all ask here.
//!
//! Levels cannot tell a leak under noise from noise, lifetimes can: what is leaked is never given back. So the judge asks
//! three questions, none of which has a size in it.
//!
//! 1. *Does it stay?* The ages at which tensors went and those that others have reached give the share that survives each
//!    age, as in any study of lifetimes with members still alive at its end (Kaplan and Meier 1958, JASA 53); every turn
//!    counts alike, however much it made, so that what a first turn sets up does not vouch for what others make. A rolling
//!    window, a saw of the garbage collector and an epoch's list survive to no age: nothing stays. Otherwise there is an
//!    age after which most stay for good ([`MOSTLY`]); what is older has stayed. What is younger is not asked about.
//! 2. *Does it go on?* What stays arrives at some turns: the rises. A cache that is full has a longer pause behind its last
//!    rise than it had before; one that fills up ever more slowly has its rises early (the test of Laplace against a trend
//!    in a series of events; Cox and Lewis 1966, "The Statistical Analysis of Series of Events"). Beginnings that fail are
//!    cut off, rise by rise: a leak beside a cache that filled up is found behind it.
//! 3. *How fast?* The median of all slopes of the sum of what stays (Sen 1968, JASA 63), with Sen's bounds at [`LEVEL`]: a
//!    single large piece does not move it, and leaks of any size and schedule do.
//!
//! Always: more turns of the same leak give more rises, larger pieces a larger slope, and tensors that come and go change
//! neither, unless they live as long as the recording.

use rustc_hash::FxHashMap;
use statrs::distribution::{ContinuousCDF, Normal};

use super::theil_sen;
use crate::threshold::Threshold;
use crate::unit::Confidence;

/// The share of those that outlive an age which has to stay for good, for the age to divide what stays from what comes and
/// goes. It lies between two errors. A window one turn shorter than the recording shows one life of two end, so more than
/// half have to stay; caches that evict at random lose the same share with every age, and at 3 in 4 what happens to be old
/// is no longer taken for what stays (in simulations of recordings of 10 to 1,000 turns with a mean life of 20 turns, 0 to 3 %
/// where it is certain, against 12 % and more at one half). The higher it is, the less is found where as many tensors
/// come and go at ages up to that of the recording.
static MOSTLY: Threshold<f64> = Threshold::new("lives::growth::MOSTLY", 0.75);

/// A share that is none but for rounding.
const NOTHING: f64 = 1e-9;

/// Rises that convince where every turn shows one: of five turns without growth all five rise in one case of 2^5, less
/// than [`LEVEL`].
static CONVINCING: Threshold<usize> = Threshold::new("lives::growth::CONVINCING", 5);

/// The level of the tests and of the bounds, one-sided, as is usual.
pub static LEVEL: Threshold<f64> = Threshold::new("lives::growth::LEVEL", 0.05);

/// Rises below which there is nothing to say: two points always lie on a line.
pub static FEWEST: Threshold<usize> = Threshold::new("lives::growth::FEWEST", 3);

/// Rises below which there is nothing to say where turns without one lie between them: two show how often it may happen, and a recording that ends before the next is due
/// does not tell whether it goes on.
const FEWEST_APART: usize = 2;

/// Rises from which growth is certain: a series without growth rises in eight turns of ten in fewer than one case in
/// eighteen (the sign test: 56 of 1,024), and each of these rises has to stay for good on top.
pub static CERTAIN: Threshold<usize> = Threshold::new("lives::growth::CERTAIN", 8);

/// Something that was there at the ends of one or more turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stay {
    /// The first turn at whose end it was there.
    pub first: usize,
    /// The turn at whose end it no longer was; `None` if it outlived the last.
    pub last: Option<usize>,
    /// Its bytes.
    pub bytes: f64,
    /// How many it stands for among those of its turn when survival is counted: 1 for a tensor, the bytes for a piece of a curve.
    pub weight: f64,
}

impl Stay {
    /// How many ends it outlived, as far as the recording shows.
    fn age(&self, turns: usize) -> usize {
        self.last.unwrap_or(turns).saturating_sub(self.first)
    }
}

/// Growth that goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// The turns in which something arrived that stayed, from the turn on with which steady growth begins.
    pub rises: usize,
    /// That turn.
    pub from: usize,
    /// The turns from there on that could be judged.
    pub turns: usize,
    /// More ends than this a tensor has to outlive to be counted among what stays.
    pub horizon: usize,
    /// Bytes a turn: the median slope.
    pub slope: f64,
    /// Its bounds.
    pub bounds: (f64, f64),
    /// What arrived in all, in bytes.
    pub net: f64,
}

impl Growth {
    /// What arrived, but no more than steady growth explains, in bytes: one large piece among small ones (a workspace that the
    /// first turn makes at the same line) does not grow.
    pub fn steadily(&self) -> f64 {
        self.net.min(self.bounds.1 * self.turns as f64)
    }

    /// The same growth, with rises of as many turns before the first that was seen.
    #[must_use]
    pub fn with_earlier(&self, turns: usize) -> Growth {
        Growth { rises: self.rises + turns, turns: self.turns + turns, ..self.clone() }
    }

    /// How sure it is that it goes on: beyond doubt from many rises on; fewer convince if the first turns are seen (what fills up
    /// to a bound has a beginning), there was one from these on, and nothing ever went.
    pub fn confidence(&self, begins_here: bool) -> Confidence {
        let throughout = begins_here && self.from <= 1 && self.horizon == 0 && self.rises == self.turns;
        match self.rises {
            rises if rises >= CERTAIN.get() => Confidence::High,
            rises if rises >= CONVINCING.get() && throughout => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

/// Judges what was there at the ends of so many turns.
pub fn judge(stays: &[Stay], turns: usize) -> Option<Growth> {
    let horizon = horizon(stays, turns)?;
    let judged = turns.saturating_sub(horizon);
    let arrivals = arrivals(stays, turns, horizon);
    let from = steady_from(&arrivals, judged)?;
    let steady = arrivals.get(from..).unwrap_or_default();
    let first = steady.first()?.0;
    let net: f64 = steady.iter().map(|(_, bytes)| bytes).sum();
    let (median, bounds) = slope(steady, judged);
    // Of few rises with long pauses between them most slopes may be none.
    let slope = if median > 0.0 { median } else { net / (judged - first) as f64 };
    Some(Growth { rises: steady.len(), from: first, turns: judged - first, horizon, slope, bounds, net })
}

/// Whether something stays, and arrived as late as what goes on arrives. Of so many rises spread evenly over all turns, every
/// one lies in the first part of the recording with a probability that is the part's share to their power; a cache that
/// filled up has one below [`LEVEL`].
pub fn may_go_on(stays: &[Stay], turns: usize) -> bool {
    let arrivals = arrivals(stays, turns, 0);
    let last = arrivals.last().map_or(turns, |(turn, _)| turn + 1);
    let by_chance = (last as f64 / turns as f64).powf(arrivals.len() as f64);
    horizon(stays, turns).is_some() && (arrivals.len() < FEWEST.get() || by_chance >= LEVEL.get())
}

/// The least number of ends after which most stay for good; `None` where nothing does.
fn horizon(stays: &[Stay], turns: usize) -> Option<usize> {
    let mut made: FxHashMap<usize, f64> = FxHashMap::default();
    for stay in stays.iter().filter(|stay| stay.age(turns) > 0) {
        *made.entry(stay.first).or_default() += stay.weight;
    }
    // Age, whether it is gone, and its share of what its turn made.
    let share = |stay: &Stay| stay.weight / made.get(&stay.first).copied().unwrap_or(1.0);
    let mut ages: Vec<(usize, bool, f64)> = stays
        .iter()
        .map(|stay| (stay.age(turns), stay.last.is_some(), share(stay)))
        .filter(|(age, _, _)| *age > 0)
        .collect();
    ages.sort_unstable_by_key(|(age, _, _)| *age);
    let mut at_risk = made.len() as f64;
    let mut surviving = 1.0;
    let mut after: Vec<(usize, f64)> = Vec::new();
    for group in ages.chunk_by(|a, b| a.0 == b.0) {
        let gone: f64 = group.iter().filter(|(_, gone, _)| *gone).map(|(_, _, share)| share).sum();
        if gone > 0.0 {
            surviving *= (1.0 - gone / at_risk).max(0.0);
            after.extend(group.first().map(|(age, _, _)| (*age, surviving)));
        }
        at_risk -= group.iter().map(|(_, _, share)| share).sum::<f64>();
    }
    if made.is_empty() || surviving <= NOTHING {
        return None;
    }
    if surviving > MOSTLY.get() {
        return Some(0);
    }
    after.iter().find(|(_, share)| surviving > MOSTLY.get() * share).map(|(age, _)| *age)
}

/// The turns in which something arrived that stays, ascending, with its bytes.
fn arrivals(stays: &[Stay], turns: usize, horizon: usize) -> Vec<(usize, f64)> {
    let stayed = |stay: &&Stay| stay.last.is_none() && stay.age(turns) > horizon;
    let mut arrived: Vec<(usize, f64)> =
        stays.iter().filter(stayed).map(|stay| (stay.first, stay.bytes)).collect();
    arrived.sort_unstable_by_key(|(turn, _)| *turn);
    let sum = |turn: &[(usize, f64)]| Some((turn.first()?.0, turn.iter().map(|(_, bytes)| bytes).sum()));
    arrived.chunk_by(|a, b| a.0 == b.0).filter_map(sum).collect()
}

/// The position of the rise with which steady growth up to the end begins; the first that will do.
fn steady_from(arrivals: &[(usize, f64)], judged: usize) -> Option<usize> {
    let last = arrivals.last()?.0;
    let pause = (judged - 1).saturating_sub(last);
    let limit = -Normal::new(0.0, 1.0).map_or(f64::INFINITY, |normal| normal.inverse_cdf(1.0 - LEVEL.get()));
    let mut begin = None;
    let (mut sum, mut longest) = (0.0, 0);
    // From the last rise backward: how many follow, the sum of their turns, and the longest pause between two of them.
    for (at, (turn, _)) in arrivals.iter().enumerate().rev() {
        let following = arrivals.len() - 1 - at;
        if let Some((next, _)) = arrivals.get(at + 1) {
            longest = longest.max(next - turn);
        }
        let span = (judged - turn) as f64;
        let many = following as f64;
        // Of events spread evenly over a span, the mean has the variance of the uniform distribution over their number.
        let early = if following == 0 {
            0.0
        } else {
            (sum / many - *turn as f64 - span / 2.0) * (12.0 * many).sqrt() / span
        };
        let fewest = if longest > 1 { FEWEST_APART } else { FEWEST.get() };
        if following + 1 >= fewest && pause <= longest && early >= limit {
            begin = Some(at);
        }
        sum += *turn as f64;
    }
    begin
}

/// The median slope of the sum of what arrived, with its bounds.
fn slope(steady: &[(usize, f64)], judged: usize) -> (f64, (f64, f64)) {
    let first = steady.first().map_or(0, |(turn, _)| *turn);
    let mut rest = steady.iter().peekable();
    let mut sum = 0.0;
    let mut values = Vec::with_capacity(judged - first);
    for turn in first..judged {
        while let Some((_, bytes)) = rest.next_if(|(arrived, _)| *arrived <= turn) {
            sum += bytes;
        }
        values.push(sum);
    }
    theil_sen::slope(&values, LEVEL.get())
}

/// Judges a curve by its levels at the ends of turns.
pub fn of_levels(levels: &[f64]) -> Option<Growth> {
    judge(&pieces(levels), levels.len())
}

/// A curve as stays: every rise is a piece, and every fall takes from the youngest pieces first, so that as much as can be is
/// taken to stay. Pieces are weighed by their bytes.
fn pieces(levels: &[f64]) -> Vec<Stay> {
    let steps = levels.windows(2).enumerate();
    changes(steps.filter_map(|(turn, pair)| Some((turn + 1, pair.last()? - pair.first()?))))
}

/// The same from the changes of a curve: ascending turns, each with what it adds (or takes).
fn changes(changes: impl Iterator<Item = (usize, f64)>) -> Vec<Stay> {
    let mut open: Vec<(usize, f64)> = Vec::new();
    let mut stays = Vec::new();
    for (turn, change) in changes {
        let mut falls = -change;
        if change > 0.0 {
            open.push((turn, change));
        }
        while falls > 0.0
            && let Some((first, bytes)) = open.pop()
        {
            let taken = bytes.min(falls);
            stays.push(Stay { first, last: Some(turn), bytes: taken, weight: taken });
            falls -= taken;
            if bytes > taken {
                open.push((first, bytes - taken));
            }
        }
    }
    stays.extend(open.into_iter().map(|(first, bytes)| Stay { first, last: None, bytes, weight: bytes }));
    stays
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of a MiB, counted as one.
    fn tensor(first: usize, last: Option<usize>) -> Stay {
        Stay { first, last, bytes: 1024.0 * 1024.0, weight: 1.0 }
    }

    /// One leaked in each of these turns.
    fn leak(turns: impl IntoIterator<Item = usize>) -> Vec<Stay> {
        turns.into_iter().map(|turn| tensor(turn, None)).collect()
    }

    /// One made in each turn and given back so many ends later.
    fn window(turns: usize, length: usize) -> Vec<Stay> {
        (0..turns).map(|turn| tensor(turn, Some(turn + length).filter(|gone| *gone < turns))).collect()
    }

    #[test]
    fn an_even_leak_is_certain_however_long_the_run() {
        for turns in [10, 50, 51, 52, 100, 1000, 20_000] {
            let growth = judge(&leak(0..turns), turns).unwrap();
            assert!(
                growth.confidence(true) == Confidence::High && growth.rises == turns,
                "{turns}: {growth:?}"
            );
            assert!((growth.slope - 1024.0 * 1024.0).abs() < 1.0, "{turns}: {growth:?}");
        }
    }

    #[test]
    fn windows_and_saws_and_lists_of_epochs_are_silent() {
        for turns in [10, 30, 51, 200, 1000] {
            for length in [1, 2, 3, 5, 9, 20, 48, 150, 600].into_iter().filter(|length| length + 1 < turns) {
                let found = judge(&window(turns, length), turns);
                assert_eq!(found, None, "a window of {length} in {turns} turns");
                let list: Vec<Stay> = (0..turns)
                    .map(|turn| tensor(turn, Some((turn / length + 1) * length).filter(|end| *end < turns)))
                    .collect();
                let whole_epochs = turns / length >= 2;
                assert!(!whole_epochs || judge(&list, turns).is_none(), "lists of {length} in {turns} turns");
            }
        }
    }

    #[test]
    fn what_the_first_turn_sets_up_does_not_vouch_for_a_window() {
        for turns in [12, 15, 40, 300] {
            for length in [1, 3, 6, 9] {
                let mut stays = window(turns, length);
                stays.extend((0..50).map(|_| tensor(0, None)));
                assert_eq!(judge(&stays, turns), None, "a window of {length} in {turns} turns");
            }
        }
        let saw: Vec<f64> = (0..15).map(|turn: u32| f64::from(10 + turn % 6)).collect();
        assert_eq!(of_levels(&saw), None);
    }

    #[test]
    fn a_cache_that_fills_up_and_stops_is_silent() {
        for turns in [12, 50, 300, 1000] {
            for filled in [3, 5, turns / 2, turns * 9 / 10] {
                assert_eq!(judge(&leak(0..filled), turns), None, "{filled} of {turns}");
            }
        }
    }

    #[test]
    fn a_leak_is_found_beside_a_window_a_filled_cache_and_at_any_interval() {
        for turns in [50, 52, 100, 1000] {
            for every in [1, 2, 5, turns / 10] {
                let mut stays = leak((0..turns).step_by(every));
                let alone = judge(&stays, turns).unwrap();
                assert!(alone.rises >= CERTAIN.get(), "every {every} of {turns}: {alone:?}");
                stays.extend(window(turns, 7));
                stays.extend(leak(0..turns / 4));
                let beside = judge(&stays, turns).unwrap();
                assert!(beside.rises >= FEWEST.get(), "every {every} of {turns}: {beside:?}");
            }
        }
    }

    #[test]
    fn two_rises_apart_may_go_on_until_the_next_is_overdue() {
        for turns in 11..=15 {
            let growth = judge(&leak([5, 10]), turns).unwrap();
            assert!(growth.confidence(true) == Confidence::Low, "{turns}: {growth:?}");
        }
        assert_eq!(judge(&leak([5, 10]), 17), None, "the third did not come");
        assert_eq!(judge(&leak([0, 1]), 2), None, "one after the other, as a setup does");
    }

    #[test]
    fn one_large_piece_does_not_move_the_slope() {
        let mut stays = leak(0..40);
        stays.push(Stay { bytes: 1e12, ..tensor(9, None) });
        let growth = judge(&stays, 40).unwrap();
        assert!((growth.slope - 1024.0 * 1024.0).abs() < 0.1 * 1024.0 * 1024.0, "{growth:?}");
    }

    #[test]
    fn curves_are_judged_by_what_never_falls_back() {
        let level = |level: &dyn Fn(usize) -> usize, turns: usize| -> Option<Growth> {
            let levels: Vec<f64> = (0..turns).map(|turn| level(turn) as f64).collect();
            of_levels(&levels)
        };
        assert!(level(&|turn| 10 * turn, 30).unwrap().confidence(true) == Confidence::High);
        assert!(level(&|turn| 10 * turn + 7 * (turn % 2), 30).is_some());
        assert_eq!(level(&|turn| 10 * (turn % 6), 60), None);
        assert_eq!(level(&|turn| 10 * turn.min(20), 60), None);
        assert_eq!(level(&|_| 5, 60), None);
    }
}
