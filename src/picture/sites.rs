//! The lines that hold most at the peak, and those that hold more with every iteration.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lives::{born, died};
use crate::facts::Facts;
use crate::finding::Location;
use crate::lives::slope;
use crate::unit::{Bytes, FrameId};

/// Lines that are kept (chosen: a table that somebody reads).
const MOST: usize = 200;

/// A line that allocates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The line; nothing for what shows none.
    pub location: Option<Location>,
    /// Bytes that it holds at the peak.
    pub at_peak: Bytes,
    /// Allocations that these are.
    pub count_at_peak: usize,
    /// Allocations in all.
    pub count: usize,
    /// Bytes by which what it holds at the ends of iterations grows: the median of all slopes.
    pub growth: i64,
}

/// What is known of a line so far.
#[derive(Default)]
struct SiteTally {
    at_peak: Bytes,
    count_at_peak: usize,
    count: usize,
    /// Bytes that come with the end of each iteration, or go.
    changes: BTreeMap<usize, i128>,
}

/// The lines that hold most at the peak first, then those that grow fastest.
pub(super) fn sites(facts: &Facts, peak: usize) -> Vec<Site> {
    let mut tallies: BTreeMap<Option<FrameId>, SiteTally> = BTreeMap::new();
    for one in &facts.timeline.allocations {
        let tally = tallies.entry(facts.line_of(one)).or_default();
        tally.count += 1;
        if born(one) <= peak && died(one).is_none_or(|died| died > peak) {
            tally.at_peak += one.bytes;
            tally.count_at_peak += 1;
        }
        let held = facts.turns().occupied(one);
        if held.start < held.end {
            let bytes = i128::from(one.bytes.get());
            *tally.changes.entry(held.start).or_default() += bytes;
            *tally.changes.entry(held.end).or_default() -= bytes;
        }
    }
    let ends = facts.turns().len();
    let row = |(frame, tally): (Option<FrameId>, SiteTally)| Site {
        location: frame.and_then(|frame| Location::of(facts.snapshot, frame)),
        at_peak: tally.at_peak,
        count_at_peak: tally.count_at_peak,
        count: tally.count,
        growth: growth(&tally.changes, ends),
    };
    let mut sites: Vec<Site> = tallies.into_iter().map(row).collect();
    sites.sort_by(|a, b| {
        let key = |one: &Site| (Reverse(one.at_peak), Reverse(one.growth));
        key(a).cmp(&key(b)).then_with(|| a.location.cmp(&b.location))
    });
    let last = sites.len().min(MOST);
    let grows = sites.split_off(last).into_iter().filter(|one| one.growth > 0);
    sites.extend(grows.take(MOST));
    sites
}

/// The median slope of what is held at the ends of iterations, the first left out: it fills what stays.
fn growth(changes: &BTreeMap<usize, i128>, ends: usize) -> i64 {
    let mut level = 0_i128;
    let held = (0..ends).map(|end| {
        level += changes.get(&end).copied().unwrap_or(0);
        level as f64
    });
    let values: Vec<f64> = held.skip(1).collect();
    #[expect(clippy::cast_possible_truncation, reason = "such casts saturate")]
    let growth = slope(&values, 0.05).0.round() as i64;
    growth
}
