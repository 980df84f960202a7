//! Sums over stretches of a trace: allocations, their bytes, and how many of them came from modules or private pools.
//!
//! In: events. Out: the [`Sum`] of any stretch, from a running total at every 64th event: a tenth of a byte an event rather
//! than tens.

use std::ops::{AddAssign, Sub};

use super::paths::Paths;
use crate::snapshot::{Action, Event, Snapshot};
use crate::unit::{DeviceIndex, Index};

/// Events between two running totals.
const STRIDE: usize = 64;

/// What a stretch of the trace allocates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Allocations.
    pub(super) allocations: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Allocations in a module call.
    pub(super) in_modules: u64,
    /// Allocations in a private pool.
    pub(super) private: u64,
}

impl Sum {
    /// Whether this is at least `percent` of `whole`, in allocations and in bytes.
    pub(super) fn fills(&self, whole: &Sum, percent: u64) -> bool {
        let enough = |part: u64, all: u64| part.saturating_mul(100) >= all.saturating_mul(percent);
        enough(self.allocations, whole.allocations) && enough(self.bytes, whole.bytes)
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.allocations += other.allocations;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.in_modules += other.in_modules;
        self.private += other.private;
    }
}

impl std::iter::Sum for Sum {
    fn sum<I: Iterator<Item = Sum>>(parts: I) -> Sum {
        let mut sum = Sum::default();
        for part in parts {
            sum += part;
        }
        sum
    }
}

impl Sub for Sum {
    type Output = Sum;
    fn sub(self, other: Sum) -> Sum {
        Sum {
            allocations: self.allocations.saturating_sub(other.allocations),
            bytes: self.bytes.saturating_sub(other.bytes),
            in_modules: self.in_modules.saturating_sub(other.in_modules),
            private: self.private.saturating_sub(other.private),
        }
    }
}

/// Running totals of a trace.
pub(super) struct TraceTotals<'a> {
    events: &'a [Event],
    paths: &'a Paths,
    pools: Pools,
    totals: Vec<Sum>,
}

impl<'a> TraceTotals<'a> {
    pub(super) fn of(events: &'a [Event], paths: &'a Paths, pools: Pools) -> TraceTotals<'a> {
        let mut tally =
            TraceTotals { events, paths, pools, totals: Vec::with_capacity(events.len() / STRIDE + 1) };
        let mut total = Sum::default();
        for chunk in events.chunks(STRIDE) {
            tally.totals.push(total);
            total += chunk.iter().map(|event| tally.weigh(event)).sum();
        }
        tally.totals.push(total);
        tally
    }

    /// The sum from event `start` up to, and without, event `end`.
    pub(super) fn between(&self, start: usize, end: usize) -> Sum {
        if start < end { self.before(end) - self.before(start) } else { Sum::default() }
    }

    fn before(&self, at: usize) -> Sum {
        let chunk = (at / STRIDE).min(self.totals.len().saturating_sub(1));
        let mut sum = self.totals.get(chunk).copied().unwrap_or_default();
        sum += self.events.iter().take(at).skip(chunk * STRIDE).map(|event| self.weigh(event)).sum();
        sum
    }

    fn weigh(&self, event: &Event) -> Sum {
        if event.action != Action::Alloc {
            return Sum::default();
        }
        let path = self.paths.of_event(event).and_then(|path| self.paths.get(path));
        Sum {
            allocations: 1,
            bytes: event.size.get(),
            in_modules: u64::from(path.is_some_and(|path| path.calls_module)),
            private: u64::from(self.pools.hold(event.address)),
        }
    }
}

/// The segments of private pools (CUDA graphs): address ranges, ascending.
#[derive(Debug, Default)]
pub(super) struct Pools {
    ranges: Vec<(u64, u64)>,
}

impl Pools {
    pub(super) fn of(snapshot: &Snapshot, device: DeviceIndex) -> Pools {
        let private = snapshot.segments_of(device.position()).filter(|segment| segment.pool != (0, 0));
        let mut ranges: Vec<_> = private
            .map(|segment| (segment.address, segment.address.saturating_add(segment.total_size.get())))
            .collect();
        ranges.sort_unstable();
        Pools { ranges }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn hold(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).and_then(|at| self.ranges.get(at)).is_some_and(|(_, end)| address < *end)
    }
}
