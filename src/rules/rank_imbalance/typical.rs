//! What is typical of all ranks but one, for each of a thousand without asking the others each time.
//!
//! In: the ranks of a job. Out: medians over the ranks but one, of their peaks, roles, lines and growths. Always: exact, and in time by
//! the ranks and what they hold, each once.

use std::collections::BTreeMap;

use crate::facts::Peer;
use crate::finding::Location;
use crate::lives::growth::of_levels;
use crate::role::Role;
use crate::unit::Bytes;

/// One number of each rank.
#[derive(Debug, Default)]
pub(super) struct Typical {
    /// Those above zero, ascending.
    some: Vec<Bytes>,
    /// How many ranks there are.
    ranks: usize,
}

impl Typical {
    /// The numbers of some of so many ranks; the others have nothing.
    pub(super) fn of(some: impl IntoIterator<Item = Bytes>, ranks: usize) -> Typical {
        let mut some: Vec<Bytes> = some.into_iter().filter(|bytes| *bytes > Bytes::ZERO).collect();
        some.sort_unstable();
        Typical { some, ranks }
    }

    /// The median over all ranks but one, whose own number this is.
    pub(super) fn without(&self, own: Bytes) -> Bytes {
        let others = self.ranks.saturating_sub(1);
        let zeros = self.ranks - self.some.len();
        let left_out =
            if own == Bytes::ZERO { 0 } else { zeros + self.some.partition_point(|bytes| *bytes < own) };
        let at = |position: usize| {
            let position = if position < left_out { position } else { position + 1 };
            position.checked_sub(zeros).and_then(|place| self.some.get(place)).copied().unwrap_or_default()
        };
        if others == 0 {
            return Bytes::ZERO;
        }
        if others % 2 == 1 {
            return at(others / 2);
        }
        Bytes::rounded(f64::midpoint(at(others / 2 - 1).get() as f64, at(others / 2).get() as f64))
    }

    /// How many ranks have something, but for one whose own number this is.
    pub(super) fn some_without(&self, own: Bytes) -> usize {
        self.some.len() - usize::from(own > Bytes::ZERO)
    }
}

/// A line as ranks share it: by the file's bare name, since a job's hosts may keep the program in different folders.
type Line<'a> = (&'a str, u32, &'a str);

fn line(location: &Location) -> Line<'_> {
    let bare = location.file.rsplit(['/', '\\']).next().unwrap_or_default();
    (bare, location.line, &location.function)
}

/// The ranks of a job and what is typical of them.
pub(super) struct Job<'a> {
    pub(super) ranks: &'a [Peer],
    peaks: Typical,
    /// How far each peak lies from a median: there are two or three medians of all but one.
    deviations: BTreeMap<Bytes, Typical>,
}

impl<'a> Job<'a> {
    pub(super) fn of(ranks: &'a [Peer]) -> Job<'a> {
        let peaks = Typical::of(ranks.iter().map(|rank| rank.peak), ranks.len());
        let mut deviations = BTreeMap::new();
        for rank in ranks {
            let median = peaks.without(rank.peak);
            deviations.entry(median).or_insert_with(|| {
                Typical::of(ranks.iter().map(|other| apart(other.peak, median)), ranks.len())
            });
        }
        Job { ranks, peaks, deviations }
    }

    /// The median of the peaks of the others.
    pub(super) fn median(&self, rank: &Peer) -> Bytes {
        self.peaks.without(rank.peak)
    }

    /// The median absolute deviation of the peaks of the others.
    pub(super) fn deviation(&self, rank: &Peer) -> Bytes {
        let median = self.median(rank);
        let deviations = self.deviations.get(&median);
        deviations.map_or(Bytes::ZERO, |all| all.without(apart(rank.peak, median)))
    }
}

pub(super) fn apart(one: Bytes, other: Bytes) -> Bytes {
    (one - other).max(other - one)
}

/// What the ranks hold, for those that stand out.
pub(super) struct Holdings<'a> {
    roles: BTreeMap<Role, Typical>,
    lines: BTreeMap<Line<'a>, Typical>,
    growths: Typical,
}

impl<'a> Holdings<'a> {
    pub(super) fn of(ranks: &'a [Peer]) -> Holdings<'a> {
        let mut roles: BTreeMap<Role, Vec<Bytes>> = BTreeMap::new();
        let mut lines: BTreeMap<Line<'a>, Vec<Bytes>> = BTreeMap::new();
        for rank in ranks {
            for (role, bytes) in sums(rank.roles.iter().map(|(role, bytes)| (*role, *bytes))) {
                roles.entry(role).or_default().push(bytes);
            }
            for (line, bytes) in sums(rank.lines.iter().map(|(place, bytes)| (line(place), *bytes))) {
                lines.entry(line).or_default().push(bytes);
            }
        }
        let all = ranks.len();
        Holdings {
            roles: roles.into_iter().map(|(role, some)| (role, Typical::of(some, all))).collect(),
            lines: lines.into_iter().map(|(line, some)| (line, Typical::of(some, all))).collect(),
            growths: Typical::of(ranks.iter().map(growth), all),
        }
    }

    /// What the others have of a role at their peaks.
    pub(super) fn role(&self, role: Role, own: Bytes) -> Bytes {
        self.roles.get(&role).map_or(Bytes::ZERO, |all| all.without(own))
    }

    /// What the others have at a line.
    pub(super) fn line(&self, place: &Location, own: Bytes) -> Bytes {
        self.lines.get(&line(place)).map_or(Bytes::ZERO, |all| all.without(own))
    }

    /// Whether any other has something at a line.
    pub(super) fn has(&self, place: &Location, own: Bytes) -> bool {
        self.lines.get(&line(place)).is_some_and(|all| all.some_without(own) > 0)
    }

    /// By how much the others grow.
    pub(super) fn growth(&self, own: Bytes) -> Bytes {
        self.growths.without(own)
    }
}

/// One sum for each key.
fn sums<K: Ord>(all: impl Iterator<Item = (K, Bytes)>) -> BTreeMap<K, Bytes> {
    let mut sums = BTreeMap::new();
    for (key, bytes) in all {
        *sums.entry(key).or_default() += bytes;
    }
    sums
}

/// By how much a rank grows from iteration to iteration, where it does so steadily.
pub(super) fn growth(peer: &Peer) -> Bytes {
    let series: Vec<f64> = peer.resident.iter().map(|bytes| bytes.get() as f64).collect();
    of_levels(&series).map(|growth| Bytes::rounded(growth.slope)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_without_one_are_those_of_the_others() {
        let numbers = [0, 7, 7, 3, 0, 90, 12, 5].map(Bytes);
        for ranks in 2..=numbers.len() {
            let numbers = &numbers[..ranks];
            let typical = Typical::of(numbers.iter().copied(), ranks);
            for (at, own) in numbers.iter().enumerate() {
                let mut others: Vec<u64> = numbers
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| *place != at)
                    .map(|(_, one)| one.0)
                    .collect();
                others.sort_unstable();
                let middle = others.len() / 2;
                let median = match others.len() % 2 {
                    1 => others[middle],
                    _ => (others[middle - 1] + others[middle]).div_ceil(2),
                };
                assert_eq!(typical.without(*own), Bytes(median), "{numbers:?} without {own:?}");
                let some = others.iter().filter(|one| **one > 0).count();
                assert_eq!(typical.some_without(*own), some);
            }
        }
    }
}
