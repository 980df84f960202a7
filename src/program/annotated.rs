//! Iterations where no stack shows a loop: from annotations alone.
//!
//! In: ranges and steps placed by time. Out: a [`Cut`] without a looping line. In this order:
//!
//! 1. `ProfilerStep#N`: the user told the profiler where iterations begin.
//! 2. `Optimizer.step`: an iteration ends with its step and the `zero_grad` right behind it. With several optimizers
//!    (GANs) the intervals between steps differ from their neighbours and repeat with a period; the period is the
//!    iteration. Where `zero_grad` was called clearly more often than steps ran, steps were skipped and `zero_grad` counts.
//! 3. An annotation of the user's own, or the data loader's, that comes back at least three times without overlap; numbers
//!    in it do not count (`## step 7 ##`). Of several the one that covers most time.

use std::collections::BTreeMap;

use super::iterations::Cut;
use super::marks::{Marks, StepSpan, position};
use crate::snapshot::{Event, Snapshot};
use crate::unit::Micros;

/// `ProfilerStep#N` ranges.
pub(super) fn by_profiler(snapshot: &Snapshot, marks: &Marks, events: &[Event]) -> Option<Cut> {
    let steps: Vec<_> =
        marks.ranges.iter().filter(|range| snapshot.text(range.name).starts_with("ProfilerStep#")).collect();
    let starts = steps.iter().map(|range| before(events, range.start)).collect();
    let end = steps.last()?.end.map_or(events.len(), |end| position(events, end));
    cut(starts, end)
}

/// Optimizer steps; at least `least` of them.
pub(super) fn by_steps(marks: &Marks, events: &[Event], fewest: usize) -> Option<Cut> {
    let steps = &marks.paces;
    if !marks.has_optimizer() || steps.len() < fewest.max(2) {
        return None;
    }
    let ends = ends(marks, events.len());
    let period = period(events, &ends);
    if period == 1 && marks.zero_grads.len() * 10 > steps.len() * 13 {
        return by_zero_grads(marks, events.len());
    }
    let ends: Vec<usize> = ends.into_iter().skip(period - 1).step_by(period).collect();
    // The first iteration began as long before its step as the second did before its own.
    let lead = steps.get(period)?.start.saturating_sub(*ends.first()?);
    let first = steps.first()?.start.saturating_sub(lead);
    let last = *ends.last()?;
    let starts = std::iter::once(first).chain(ends.into_iter().filter(|&end| end < last)).collect();
    cut(starts, last)
}

/// The event after each step, and after a `zero_grad` that follows within a tenth of the way to the next step.
fn ends(marks: &Marks, events: usize) -> Vec<usize> {
    let nexts = marks.paces.iter().skip(1).map(|next| next.start).chain([events]);
    let with_next = marks.paces.iter().zip(nexts);
    with_next
        .map(|(step, next)| {
            let limit = step.end + next.saturating_sub(step.end) / 10;
            let from = marks.zero_grads.partition_point(|zero| zero.start < step.end);
            let zeros = marks.zero_grads.iter().skip(from).take_while(|zero| zero.start <= limit);
            zeros.map(|zero| zero.end).max().unwrap_or(step.end)
        })
        .collect()
}

/// Steps in one iteration: 1, or the shortest distance at which intervals between steps are alike where neighbours are not.
fn period(events: &[Event], ends: &[usize]) -> usize {
    const MOST: usize = 6;
    let intervals: Vec<(u64, u64)> =
        ends.iter().zip(ends.iter().skip(1)).map(|(&from, &to)| content(events, from, to)).collect();
    let alike = |distance: usize| {
        let pairs = intervals.iter().zip(intervals.iter().skip(distance));
        let (mut same, mut all) = (0_usize, 0_usize);
        for (a, b) in pairs {
            all += 1;
            same += usize::from(near(a.0, b.0) && near(a.1, b.1));
        }
        (same, all)
    };
    let (same, all) = alike(1);
    if intervals.len() < 4 || same * 100 > all * 15 {
        return 1;
    }
    let fits = |&distance: &usize| {
        let (same, all) = alike(distance);
        same * 10 >= all * 8
    };
    (2..=MOST.min(intervals.len() / 2)).find(fits).unwrap_or(1)
}

/// Allocations between two events, and their bytes.
fn content(events: &[Event], from: usize, to: usize) -> (u64, u64) {
    let made =
        events.iter().take(to).skip(from).filter(|event| event.action == crate::snapshot::Action::Alloc);
    made.fold((0, 0), |(count, bytes), event| (count + 1, event.size.get().saturating_add(bytes)))
}

/// Whether two amounts differ by at most a tenth.
fn near(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= a.max(b).max(10) / 10
}

/// Iterations that begin (or end) with `zero_grad`.
fn by_zero_grads(marks: &Marks, events: usize) -> Option<Cut> {
    let zeros = &marks.zero_grads;
    let follows = |step: &StepSpan| {
        let at = zeros.partition_point(|zero| zero.start < step.end);
        let gap = events / zeros.len().max(1) / 10;
        zeros.get(at).is_some_and(|zero| zero.start <= step.end + gap)
    };
    let ends_with = marks.paces.iter().filter(|step| follows(step)).count() * 2 > marks.paces.len();
    if ends_with {
        let (first, second) = (zeros.first()?.end, zeros.get(1)?.end);
        let last = zeros.last()?.end;
        let begin = first.saturating_sub(second.saturating_sub(first));
        let starts = std::iter::once(begin)
            .chain(zeros.iter().map(|zero| zero.end).filter(|&end| end < last))
            .collect();
        return cut(starts, last);
    }
    cut(zeros.iter().map(|zero| zero.start).collect(), events)
}

/// Repeated annotations.
pub(super) fn by_repetition(snapshot: &Snapshot, marks: &Marks, events: &[Event]) -> Option<Cut> {
    let mut named: BTreeMap<String, Vec<(Micros, Option<Micros>)>> = BTreeMap::new();
    for range in &marks.ranges {
        let name = snapshot.text(range.name);
        if !name.starts_with("Optimizer.") {
            let name = name.chars().filter(|one| !one.is_ascii_digit()).collect();
            named.entry(name).or_default().push((range.start, range.end));
        }
    }
    let disjoint = |ranges: &[(Micros, Option<Micros>)]| {
        let pairs = ranges.iter().zip(ranges.iter().skip(1));
        ranges.len() >= 3 && pairs.into_iter().all(|(one, next)| one.1.is_some_and(|end| end <= next.0))
    };
    let covered = |ranges: &[(Micros, Option<Micros>)]| -> i64 {
        let lengths = ranges.iter().map(|(start, end)| end.map_or(0, |end| end.0.saturating_sub(start.0)));
        lengths.fold(0, i64::saturating_add)
    };
    let best = named.into_values().filter(|ranges| disjoint(ranges)).max_by_key(|ranges| covered(ranges))?;
    cut(best.iter().map(|(start, _)| before(events, *start)).collect(), events.len())
}

/// The first event at or after a moment.
fn before(events: &[Event], moment: Micros) -> usize {
    events.partition_point(|event| event.time < moment)
}

/// A cut of at least two iterations that all hold events.
pub(super) fn cut(mut starts: Vec<usize>, end: usize) -> Option<Cut> {
    starts.dedup();
    starts.retain(|&start| start < end);
    let sorted = starts.is_sorted();
    (sorted && starts.len() >= 2).then(|| Cut { starts, end, ..Cut::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_any_size_can_be_compared() {
        assert!(near(u64::MAX, u64::MAX - 1) && !near(u64::MAX, 0));
        assert!(near(100, 90) && !near(100, 89) && near(0, 1) && !near(0, 2));
    }
}
