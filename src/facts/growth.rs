//! Which lines leave more behind with every iteration.
//!
//! In: lifetimes and the ends of the iterations. Out: for each line of the user's code the bytes alive at each end,
//! with their trend. A tensor counts at the ends that it outlives if there are at least two of them (one that is
//! replaced in every iteration outlives one), or if it is too young to tell. A life ends where the program gives the
//! block back: what waits for another stream does not grow.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::facts::trend::{Trend, trend};
use crate::unit::{AllocationId, Bytes, FrameId, Index};

/// Series are thinned to this many values before they are tested; the test takes quadratic time.
const LONGEST_SERIES: usize = 1000;

/// A line whose tensors outlive iterations.
#[derive(Debug)]
pub struct Growth {
    /// The innermost user frame of the allocations.
    pub site: FrameId,
    /// Bytes alive at the ends of iterations, the first left out where there are enough.
    pub series: Vec<Bytes>,
    /// How the series moves.
    pub trend: Trend,
    /// The growth of everything that outlives iterations on this device, over the same ends.
    pub device_net: f64,
    /// The allocations that are still alive at the last end, oldest first.
    pub alive: Vec<AllocationId>,
}

/// The series of every line, largest net growth first.
pub(super) fn growth(facts: &Facts) -> Vec<Growth> {
    let ends = facts.iteration_ends();
    if ends.len() < 3 {
        return Vec::new();
    }
    let survivors = Survivors::of(facts, ends);
    let skipped = usize::from(ends.len() >= 5);
    let device = thinned(&survivors.total, skipped);
    let device_net = device.last().zip(device.first()).map_or(0.0, |(last, first)| last - first);
    let mut sites: Vec<(&FrameId, &Site)> = survivors.sites.iter().collect();
    sites.sort_by_key(|(frame, _)| **frame);
    let mut found: Vec<Growth> = sites
        .into_iter()
        .filter_map(|(frame, site)| {
            let series = thinned(&survivors.with_older(site), skipped);
            let trend = trend(&series)?;
            let series = series.iter().map(|value| Bytes(*value as u64)).collect();
            let alive = site.members.iter().filter(|member| member.last == ends.len());
            let alive = alive.map(|member| member.id).collect();
            Some(Growth { site: *frame, series, trend, device_net, alive })
        })
        .collect();
    found.sort_by(|a, b| b.trend.net.total_cmp(&a.trend.net).then(a.site.cmp(&b.site)));
    found
}

#[derive(Default)]
struct Site {
    /// Bytes alive at each end.
    series: Vec<u64>,
    members: Vec<Member>,
}

struct Member {
    id: AllocationId,
    bytes: Bytes,
    /// How many ends there are up to the last that it outlives.
    last: usize,
}

struct Survivors {
    sites: FxHashMap<FrameId, Site>,
    /// Bytes of everything that outlives two ends.
    total: Vec<u64>,
    /// Bytes alive at each end of blocks born before the recording and freed in it, by size.
    older: FxHashMap<Bytes, Vec<u64>>,
}

impl Survivors {
    fn of(facts: &Facts, ends: &[usize]) -> Survivors {
        let mut this = Survivors {
            sites: FxHashMap::default(),
            total: vec![0; ends.len()],
            older: FxHashMap::default(),
        };
        for (id, allocation) in facts.timeline.iter() {
            let born = allocation.alloc.map_or(0, |event| event.position() + 1);
            let given_back = allocation.free_requested.or(allocation.free).map(Index::position);
            let first = ends.partition_point(|end| *end < born);
            let last = given_back.map_or(ends.len(), |event| ends.partition_point(|end| *end <= event));
            if first == ends.len() || (last < first + 2 && last < ends.len()) {
                continue;
            }
            add(&mut this.total, first, last, allocation.bytes);
            if allocation.alloc.is_none() {
                if last < ends.len() {
                    let older = this.older.entry(allocation.bytes).or_insert_with(|| vec![0; ends.len()]);
                    add(older, first, last, allocation.bytes);
                }
                continue;
            }
            let Some(frame) = allocation.stack.and_then(|stack| facts.code.user(stack).next()) else {
                continue;
            };
            let site = this.sites.entry(frame).or_default();
            site.series.resize(ends.len(), 0);
            add(&mut site.series, first, last, allocation.bytes);
            site.members.push(Member { id, bytes: allocation.bytes, last });
        }
        this
    }

    /// A site's series with the blocks of the same sizes that were there before the recording and leave during it: a
    /// rolling buffer that is recorded half way is flat, not growing.
    fn with_older(&self, site: &Site) -> Vec<u64> {
        let mut series = site.series.clone();
        let kept = site.members.iter().filter(|member| member.last == series.len());
        let sizes: BTreeSet<Bytes> = kept.map(|member| member.bytes).collect();
        for older in sizes.iter().filter_map(|size| self.older.get(size)) {
            for (place, bytes) in series.iter_mut().zip(older) {
                *place = place.saturating_add(*bytes);
            }
        }
        series
    }
}

fn add(series: &mut [u64], first: usize, last: usize, bytes: Bytes) {
    for place in series.iter_mut().take(last).skip(first) {
        *place = place.saturating_add(bytes.get());
    }
}

fn thinned(series: &[u64], skipped: usize) -> Vec<f64> {
    let rest = series.len().saturating_sub(skipped);
    let stride = rest.div_ceil(LONGEST_SERIES).max(1);
    series.iter().skip(skipped).step_by(stride).map(|value| *value as f64).collect()
}
