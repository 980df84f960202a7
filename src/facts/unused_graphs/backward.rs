//! What backward passes did, between two moments.

use crate::facts::Facts;
use crate::facts::failure::failures;
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{Bytes, EventIndex, Index};

/// The share of a call's bytes that a backward pass lets go of if it goes through the call's graph. Where the program holds
/// every output it measures 0.48 (a network over trees), where it holds the graph itself 0.
pub(super) static USED: Threshold<f64> = Threshold::new("facts::unused_graphs::USED", 0.05);

/// Where backward passes ran, what they let go of, and where memory ran out, so that the one to come never ran.
pub(super) struct BackwardPasses {
    /// The positions of requests that failed.
    failures: Vec<usize>,
    /// The positions of their allocations.
    allocations: Vec<usize>,
    /// The positions at which they let go of what they did not make, with the bytes so far.
    released: Vec<(usize, u64)>,
}

impl BackwardPasses {
    pub(super) fn of(facts: &Facts) -> BackwardPasses {
        let is_backward = |event: EventIndex| facts.phase(event) == Phase::Backward;
        let births = facts.timeline.iter().filter_map(|(_, one)| one.alloc);
        let allocations = births.filter(|event| is_backward(*event)).map(Index::position).collect();
        let let_go = |one: &Allocation| {
            let event = one.free_requested.filter(|event| is_backward(*event))?;
            let made_before = one.alloc.is_none_or(|born| !is_backward(born));
            made_before.then_some((event.position(), one.bytes.get()))
        };
        let mut released: Vec<(usize, u64)> =
            facts.timeline.iter().filter_map(|(_, one)| let_go(one)).collect();
        released.sort_unstable();
        let mut total = 0_u64;
        for (_, bytes) in &mut released {
            total = total.saturating_add(*bytes);
            *bytes = total;
        }
        BackwardPasses { failures: failures(facts), allocations, released }
    }

    /// Whether a request failed between two positions.
    pub(super) fn cut_off(&self, from: usize, to: usize) -> bool {
        let after = self.failures.partition_point(|at| *at < from);
        self.failures.get(after).is_some_and(|at| *at < to)
    }

    /// Whether a backward pass ran between two positions.
    pub(super) fn ran(&self, from: usize, to: usize) -> bool {
        let after = self.allocations.partition_point(|at| *at < from);
        self.allocations.get(after).is_some_and(|at| *at < to)
    }

    /// Whether a backward pass ran and let go of next to nothing (against `kept` bytes): it kept its graph.
    pub(super) fn used_and_retained(&self, from: usize, to: usize, kept: Bytes) -> bool {
        let until = |position: usize| {
            let count = self.released.partition_point(|(at, _)| *at < position);
            count.checked_sub(1).and_then(|last| self.released.get(last)).map_or(0, |(_, total)| *total)
        };
        let released = Bytes(until(to).saturating_sub(until(from)));
        self.ran(from, to) && released.share_of(kept) < USED.get()
    }
}
