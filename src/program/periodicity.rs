//! Iterations where there is neither a stack nor an annotation: the sequence of sizes repeats.
//!
//! In: events. Out: a [`Cut`] without a looping line, and never more than low confidence.
//!
//! Runs of five consecutive allocation sizes are counted. A run belongs to a loop if it comes back at even distances over
//! at least half of the recording. Runs that are made once in each layer come back unevenly (close together within a pass,
//! far apart between passes) or more often than those of the embedding and the loss; so the *rarest* count that enough
//! runs share (three, or 3 % of an iteration's allocations; a run made once more before or after the loop supports them) is
//! the number of iterations. The cut is put at the run that finds least memory in use, and the memory in use there must
//! stay level, or only grow.
//!
//! It finds nothing where sizes vary or only layers repeat, and may take epochs or micro-batches for iterations; no test
//! measures how often.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::annotated::cut;
use super::iterations::Cut;
use crate::snapshot::{Action, Event};

/// Sizes in a run.
const RUN: usize = 5;
/// Allocations that are looked at; a longer recording is judged by its end.
const MOST: usize = 1 << 22;

/// A run that comes back evenly.
struct Regular {
    places: Vec<u32>,
    distance: u32,
}

/// The iterations by the period of the sizes.
pub(super) fn by_sizes(events: &[Event]) -> Option<Cut> {
    let mut made: Vec<usize> = Vec::new();
    made.extend(
        events.iter().enumerate().filter(|(_, event)| event.action == Action::Alloc).map(|(at, _)| at),
    );
    let skipped = made.len().saturating_sub(MOST);
    made.drain(..skipped);
    let sizes: Vec<u64> =
        made.iter().filter_map(|&at| events.get(at)).map(|event| event.size.get()).collect();
    if sizes.len() < 3 * RUN {
        return None;
    }
    let levels = levels(events);
    let level =
        |place: u32| made.get(place as usize).and_then(|&at| levels.get(at)).copied().unwrap_or(i64::MAX);
    let span = levels.iter().max()?.saturating_sub(*levels.iter().min()?);
    let regular = regular_runs(&sizes);
    let found = regular.iter().find_map(|(&count, group)| {
        let distance = usual(group.iter().map(|one| one.distance))? as usize;
        let support = group.len() + regular.get(&(count + 1)).map_or(0, Vec::len);
        if support < (distance * 3 / 100).max(3) {
            return None;
        }
        let quietest = group.iter().min_by_key(|one| {
            (one.places.iter().skip(1).map(|&place| level(place)).max(), one.places.first().copied())
        })?;
        let heights: Vec<i64> = quietest.places.iter().skip(1).map(|&place| level(place)).collect();
        is_between_iterations(&heights, span).then_some((quietest, distance))
    });
    let (quietest, distance) = found?;
    let mut places: Vec<usize> = quietest.places.iter().map(|&place| place as usize).collect();
    if let Some(earlier) = first_pass(&sizes, *places.first()?, distance) {
        places.insert(0, earlier);
    }
    let end = made.get(places.last()? + distance).copied().unwrap_or(events.len());
    cut(places.iter().filter_map(|&place| made.get(place).copied()).collect(), end)
}

/// Whether the memory in use at these moments stays level or only grows (a leak). Between layers it rises through the
/// forward and falls through the backward.
fn is_between_iterations(heights: &[i64], span: i64) -> bool {
    let spread =
        heights.iter().max().zip(heights.iter().min()).map_or(0, |(high, low)| high.saturating_sub(*low));
    spread.saturating_mul(4) <= span || heights.is_sorted()
}

/// The middle one.
fn usual(values: impl Iterator<Item = u32>) -> Option<u32> {
    let mut values: Vec<u32> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Runs that come back at least three times, four fifths of the distances within a tenth of the usual one, and over half
/// of the recording; by how often they do.
fn regular_runs(sizes: &[u64]) -> BTreeMap<usize, Vec<Regular>> {
    let mut places: FxHashMap<&[u64], Vec<u32>> = FxHashMap::default();
    for (at, run) in sizes.windows(RUN).enumerate() {
        let Ok(at) = u32::try_from(at) else { break };
        places.entry(run).or_default().push(at);
    }
    let mut regular: BTreeMap<usize, Vec<Regular>> = BTreeMap::new();
    let mut found: Vec<Vec<u32>> = places.into_values().filter(|places| places.len() >= 3).collect();
    found.sort_unstable();
    for places in found {
        let apart: Vec<u32> = places.iter().zip(places.iter().skip(1)).map(|(a, b)| b - a).collect();
        let Some(distance) = usual(apart.iter().copied()) else { continue };
        let slack = (distance / 10).max(2);
        let even = apart.iter().filter(|&&one| one.abs_diff(distance) <= slack).count();
        let reach = places.last().zip(places.first()).map_or(0, |(last, first)| (last - first) as usize);
        if distance as usize >= RUN && even * 5 >= apart.len() * 4 && reach * 2 >= sizes.len() {
            regular.entry(places.len()).or_default().push(Regular { places, distance });
        }
    }
    regular
}

/// Where the pass before the first occurrence began, if what lies there resembles a pass: the first iteration often differs
/// a little from the others.
fn first_pass(sizes: &[u64], first: usize, distance: usize) -> Option<usize> {
    let start = first.saturating_sub(distance);
    if first < distance / 2 {
        return None;
    }
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for &size in sizes.get(first..(first + distance).min(sizes.len()))? {
        *counts.entry(size).or_insert(0) += 1;
    }
    let mut common = 0;
    for size in sizes.get(start..first)? {
        if let Some(left) = counts.get_mut(size).filter(|left| **left > 0) {
            *left -= 1;
            common += 1;
        }
    }
    (common * 2 >= distance).then_some(start)
}

/// Requested bytes in use before each event, counted from the first one.
fn levels(events: &[Event]) -> Vec<i64> {
    let mut level = 0_i64;
    let signed = |event: &Event| i64::try_from(event.size.get()).unwrap_or(i64::MAX);
    let before = events.iter().map(|event| {
        let now = level;
        match event.action {
            Action::Alloc => level = level.saturating_add(signed(event)),
            Action::FreeCompleted => level = level.saturating_sub(signed(event)),
            _ => {}
        }
        now
    });
    before.collect()
}
