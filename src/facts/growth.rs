//! Which lines leave more behind with every iteration.
//!
//! In: lifetimes and the ends of the iterations. Out: for each line of the user's code the bytes alive at each end,
//! with their trend. A tensor counts at the ends that it outlives if there are at least two of them (one that is
//! replaced in every iteration outlives one), or if it is too young to tell. A life ends where the program gives the
//! block back: what waits for another stream does not grow.
//!
//! Sets that are replaced in every iteration by larger ones (hooks that are added and never removed each keep one
//! tensor) are asked about separately: there every tensor counts that outlives an end, and the growth must be one of
//! their number. A single tensor that is replaced by a larger one has the number one.
//!
//! What no line shows because each of very many gains a little (generated code, a list that every layer appends to) is one
//! more series: everything that is left, taken together.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::Facts;
use crate::facts::trend::{Trend, trend};
use crate::unit::{AllocationId, Bytes, FrameId, StackId};

/// Series are thinned to this many values before they are tested; the test takes quadratic time.
const LONGEST_SERIES: usize = 1000;

/// Fewer ends prove nothing of many lines at once: caches and lazy state of many sites appear one after the other.
const SCATTERED_ENDS: usize = 8;

/// A line whose tensors outlive iterations.
#[derive(Debug)]
pub struct Growth {
    /// The line: the innermost user frame of the allocations.
    pub site: FrameId,
    /// Bytes alive at the ends of iterations, the first left out where there are enough.
    pub series: Vec<Bytes>,
    /// How the series moves.
    pub trend: Trend,
    /// The growth of everything that outlives iterations on this device, over the same ends.
    pub device_net: f64,
    /// The allocations that are still alive at the last end, oldest first.
    pub alive: Vec<AllocationId>,
    /// Of sets that are replaced, the tensors that a set has beyond the first set's number; empty of others.
    pub surplus: Vec<AllocationId>,
    /// The growth that the number of tensors accounts for, at the size that they have at the first end.
    pub by_number: f64,
}

/// The series of what each line leaves behind for good, where that rises at two ends or more; largest net growth first.
pub(super) fn growth(facts: &Facts) -> Vec<Growth> {
    series(facts, Outlives::Two)
}

/// The series of the sets that each line leaves to the next iteration, largest net growth first.
pub(super) fn replaced_sets(facts: &Facts) -> Vec<Growth> {
    series(facts, Outlives::One)
}

/// The lines that grow together, if the bytes of all lines together do, without the allocations that are known otherwise.
pub(super) fn scattered(facts: &Facts, known: &dyn Fn(AllocationId) -> bool) -> Option<Scattered> {
    let ends = facts.iteration_ends();
    if ends.len() < SCATTERED_ENDS {
        return None;
    }
    let survivors = Survivors::of(facts, ends.len(), Outlives::Two);
    let mut rest = Site { series: Series::flat(ends.len()), members: Vec::new() };
    let mut weights: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    let mut sites: Vec<(&FrameId, &Site)> = survivors.sites.iter().collect();
    sites.sort_by_key(|(frame, _)| **frame);
    for (frame, site) in sites {
        for member in site.members.iter().filter(|member| !known(member.id)) {
            rest.series.raise(member.first, member.last, member.bytes);
            if member.last == ends.len() && member.first > 1 {
                *weights.entry(*frame).or_default() += member.bytes;
            }
            rest.members.push(*member);
        }
    }
    let gained: Bytes = weights.values().copied().sum();
    let (site, most) = weights.iter().max_by_key(|(frame, bytes)| (**bytes, std::cmp::Reverse(**frame)))?;
    // Of the last end not all is known: what was made in the last iteration counts only if its like lived on.
    let mut levels = survivors.with_older(&rest).levels();
    levels.pop();
    let stride = levels.len().div_ceil(LONGEST_SERIES).max(1);
    let series: Vec<f64> = levels.into_iter().skip(1).step_by(stride).collect();
    let trend = trend(&series)?;
    let trend = Trend { slope: trend.slope / stride as f64, ..trend };
    let kept = rest.members.iter().filter(|member| member.last == ends.len() && member.first > 1);
    let mut alive: Vec<AllocationId> = kept.map(|member| member.id).collect();
    alive.sort_unstable();
    let series = series.iter().copied().map(Bytes::rounded).collect();
    let growth = Growth {
        site: *site,
        series,
        device_net: trend.net,
        trend,
        alive,
        surplus: Vec::new(),
        by_number: 0.0,
    };
    Some(Scattered { growth, lines: weights.len(), largest: most.share_of(gained) })
}

/// A growth that no line shows alone.
#[derive(Debug)]
pub struct Scattered {
    /// All lines together; its site is the line that gains most.
    pub growth: Growth,
    /// How many lines gain.
    pub lines: usize,
    /// The share of all that the line has that gains most.
    pub largest: f64,
}

/// How many ends a tensor has to outlive to count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outlives {
    One,
    Two,
}

fn series(facts: &Facts, least: Outlives) -> Vec<Growth> {
    let ends = facts.iteration_ends();
    if ends.len() < 3 {
        return Vec::new();
    }
    let survivors = Survivors::of(facts, ends.len(), least);
    let skipped = usize::from(ends.len() >= 5);
    let stride = ends.len().saturating_sub(skipped).div_ceil(LONGEST_SERIES).max(1);
    let thinned = |series: Vec<f64>| series.into_iter().skip(skipped).step_by(stride).collect::<Vec<f64>>();
    let device = thinned(survivors.total.levels());
    let device_net = device.last().zip(device.first()).map_or(0.0, |(last, first)| last - first);
    let mut sites: Vec<(&FrameId, &Site)> = survivors.sites.iter().collect();
    sites.sort_by_key(|(frame, _)| **frame);
    let mut found: Vec<Growth> = sites
        .into_iter()
        .filter_map(|(frame, site)| {
            let series = survivors.with_older(site);
            let series = series.goes_on_rising(skipped).then(|| thinned(series.levels()))?;
            let trend = trend(&series)?;
            let trend = Trend { slope: trend.slope / stride as f64, ..trend };
            let series = series.iter().copied().map(Bytes::rounded).collect();
            let alive = site.members.iter().filter(|member| member.last == ends.len());
            let alive = alive.map(|member| member.id).collect();
            let surplus = if least == Outlives::One { site.surplus(skipped) } else { Vec::new() };
            let by_number = site.growth_by_number(skipped, ends.len());
            Some(Growth { site: *frame, series, trend, device_net, alive, surplus, by_number })
        })
        .collect();
    found.sort_by(|a, b| b.trend.net.total_cmp(&a.trend.net).then(a.site.cmp(&b.site)));
    found
}

/// Bytes alive at each end, kept as the changes from one end to the next, where there are any: a line costs by its
/// tensors, not by the iterations.
#[derive(Clone)]
struct Series {
    ends: usize,
    changes: BTreeMap<usize, i128>,
}

impl Series {
    fn flat(ends: usize) -> Series {
        Series { ends, changes: BTreeMap::new() }
    }

    /// Adds bytes from the end `first` up to, not including, the end `last`.
    fn raise(&mut self, first: usize, last: usize, bytes: Bytes) {
        let bytes = i128::from(bytes.get());
        *self.changes.entry(first).or_default() += bytes;
        *self.changes.entry(last).or_default() -= bytes;
    }

    fn add(&mut self, other: &Series) {
        for (end, more) in &other.changes {
            *self.changes.entry(*end).or_default() += more;
        }
    }

    fn levels(&self) -> Vec<f64> {
        let sum = |level: &mut i128, end: usize| {
            *level += self.changes.get(&end).copied().unwrap_or(0);
            Some(*level as f64)
        };
        (0..self.ends).scan(0, sum).collect()
    }

    /// Whether it goes up at two ends or more after the first `skipped` ones: what does not has no trend.
    fn goes_on_rising(&self, skipped: usize) -> bool {
        self.changes.range(skipped + 1..self.ends).filter(|(_, change)| **change > 0).nth(1).is_some()
    }
}

struct Site {
    series: Series,
    members: Vec<Member>,
}

impl Site {
    /// The members that are born under an end with more of them than the first counted end, beyond that number.
    fn surplus(&self, skipped: usize) -> Vec<AllocationId> {
        let usual = self.members.iter().filter(|member| member.first == skipped).count();
        let mut sets: BTreeMap<usize, usize> = BTreeMap::new();
        let mut beyond = Vec::new();
        for member in &self.members {
            let number = sets.entry(member.first).or_default();
            *number += 1;
            if *number > usual {
                beyond.push(member.id);
            }
        }
        beyond
    }

    /// What the growth would be if all tensors had the average size of those at the first counted end.
    fn growth_by_number(&self, skipped: usize, ends: usize) -> f64 {
        let at = |end: usize| self.members.iter().filter(move |one| one.first <= end && end < one.last);
        let bytes: u64 = at(skipped).map(|member| member.bytes.get()).sum();
        let (first, last) = (at(skipped).count() as f64, at(ends - 1).count() as f64);
        if first > 0.0 { (last / first - 1.0) * bytes as f64 } else { 0.0 }
    }
}

#[derive(Clone, Copy)]
struct Member {
    id: AllocationId,
    bytes: Bytes,
    /// The first end that it outlives.
    first: usize,
    /// How many ends there are up to the last that it outlives.
    last: usize,
}

struct Survivors {
    sites: FxHashMap<FrameId, Site>,
    /// Bytes of everything that counts.
    total: Series,
    /// Blocks born before the recording and freed in it, by size.
    older: FxHashMap<Bytes, Series>,
}

impl Survivors {
    fn of(facts: &Facts, count: usize, least: Outlives) -> Survivors {
        let mut this = Survivors {
            sites: FxHashMap::default(),
            total: Series::flat(count),
            older: FxHashMap::default(),
        };
        // What is too young to tell counts where an older tensor of the same stack has lived on.
        let mut long_lived: FxHashSet<StackId> = FxHashSet::default();
        let mut young: Vec<(AllocationId, Option<StackId>, usize)> = Vec::new();
        for (id, allocation) in facts.timeline.iter() {
            let (first, last) = facts.ends_of(allocation);
            if first >= last {
                continue;
            }
            let stack = allocation.alloc.and_then(|event| facts.seen_stack(event));
            if least == Outlives::One || last >= first + 2 {
                long_lived.extend(stack);
                this.add(facts, id, stack, (first, last));
            } else if last == count {
                young.push((id, stack, first));
            }
        }
        for (id, stack, first) in young {
            if stack.is_some_and(|stack| long_lived.contains(&stack)) {
                this.add(facts, id, stack, (first, count));
            }
        }
        this
    }

    fn add(
        &mut self,
        facts: &Facts,
        id: AllocationId,
        stack: Option<StackId>,
        (first, last): (usize, usize),
    ) {
        let Some(allocation) = facts.timeline.allocation(id) else { return };
        let (bytes, count) = (allocation.bytes, self.total.ends);
        self.total.raise(first, last, bytes);
        if allocation.alloc.is_none() {
            if last < count {
                self.older.entry(bytes).or_insert_with(|| Series::flat(count)).raise(first, last, bytes);
            }
            return;
        }
        let Some(frame) = stack.and_then(|stack| facts.frames.site(stack)) else { return };
        let new = || Site { series: Series::flat(count), members: Vec::new() };
        let site = self.sites.entry(frame).or_insert_with(new);
        site.series.raise(first, last, bytes);
        site.members.push(Member { id, bytes, first, last });
    }

    /// A site's series with the blocks of the same sizes that were there before the recording and leave during it: a
    /// rolling buffer that is recorded half way is flat, not growing.
    fn with_older(&self, site: &Site) -> Series {
        let mut series = site.series.clone();
        let kept = site.members.iter().filter(|member| member.last == series.ends);
        let sizes: BTreeSet<Bytes> = kept.map(|member| member.bytes).collect();
        for older in sizes.iter().filter_map(|size| self.older.get(size)) {
            series.add(older);
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Index;

    #[test]
    fn a_series_costs_by_its_changes_and_not_by_the_ends() {
        // Dense, it would take 16 PB.
        let mut series = Series::flat(1 << 50);
        series.raise(3, 1 << 49, Bytes::MIB);
        assert!(!series.goes_on_rising(1));
        series.raise(1 << 20, 1 << 50, Bytes::MIB);
        assert!(series.goes_on_rising(1) && !series.goes_on_rising(3));
    }

    #[test]
    fn levels_are_the_sums_of_the_changes() {
        let mut series = Series::flat(4);
        series.raise(1, 3, Bytes(5));
        series.raise(2, 4, Bytes(7));
        assert_eq!(series.levels(), [0.0, 5.0, 12.0, 7.0]);
    }

    /// A line that leaves so many tensors of so many bytes to each end, each of which outlives only that one.
    fn sets(sets: &[(usize, u64)]) -> Site {
        let mut members = Vec::new();
        for (end, (number, bytes)) in sets.iter().enumerate() {
            for _ in 0..*number {
                let id = AllocationId::at(members.len()).unwrap();
                members.push(Member { id, bytes: Bytes(*bytes), first: end, last: end + 1 });
            }
        }
        Site { series: Series::flat(sets.len()), members }
    }

    #[test]
    fn more_tensors_are_growth_by_number_and_larger_ones_are_not() {
        assert!((sets(&[(2, 10), (3, 10), (4, 10)]).growth_by_number(0, 3) - 20.0).abs() < 1e-9);
        assert!(sets(&[(2, 10), (2, 20), (2, 30)]).growth_by_number(0, 3).abs() < 1e-9);
    }

    #[test]
    fn surplus_is_what_a_set_has_beyond_the_first_counted_one() {
        let surplus = sets(&[(9, 1), (1, 1), (2, 1), (3, 1)]).surplus(1);
        // Nine, one, two (the tenth and eleventh are ids 10 and 11), three (ids 12 to 14).
        let beyond: Vec<usize> = surplus.iter().map(|id| id.position()).filter(|at| *at > 8).collect();
        assert_eq!(beyond, [11, 13, 14]);
    }
}
