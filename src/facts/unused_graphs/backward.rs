//! What backward passes did, between two moments.

use std::collections::BTreeMap;

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
    /// Where each begins, with the start of the last call of a module through whose graph it goes; 0 where it goes through none.
    used: Vec<(usize, usize)>,
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
        BackwardPasses { failures: failures(facts), allocations, released, used: used(facts) }
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

    /// Whether each backward pass between two positions goes through the graph of a call that begins there, too. As it lets go of that, it retains
    /// nothing, and would have let go of any other that it goes through.
    pub(super) fn belong_to_later_calls(&self, from: usize, to: usize) -> bool {
        let ran =
            self.used.partition_point(|(at, _)| *at < from)..self.used.partition_point(|(at, _)| *at < to);
        self.used.get(ran).is_some_and(|passes| passes.iter().all(|(_, call)| *call >= from))
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

/// Where each backward pass begins, with the start of the last call of a module of which it lets go of a part.
fn used(facts: &Facts) -> Vec<(usize, usize)> {
    let differentiates = |phase: &Phase| matches!(phase, Phase::Backward | Phase::Recomputation);
    let phases = facts.program.phases.iter().map(differentiates);
    let before = std::iter::once(false).chain(phases.clone());
    let begins = phases.zip(before).enumerate().filter(|(_, (now, before))| *now && !*before);
    let mut passes: Vec<(usize, usize)> = begins.map(|(at, _)| (at, 0)).collect();
    for call in facts.module_calls() {
        let mut by_pass: BTreeMap<usize, Bytes> = BTreeMap::new();
        for one in call.made.iter().filter_map(|id| facts.timeline.allocation(*id)) {
            let freed = one.free_requested.filter(|event| facts.phase(*event) == Phase::Backward);
            let Some(freed) = freed.map(Index::position).filter(|freed| *freed >= call.end) else { continue };
            let Some(pass) = passes.partition_point(|(begin, _)| *begin <= freed).checked_sub(1) else {
                continue;
            };
            *by_pass.entry(pass).or_default() += one.bytes;
        }
        let made = facts.bytes(&call.made);
        for (pass, _) in by_pass.into_iter().filter(|(_, bytes)| bytes.share_of(made) >= USED.get()) {
            if let Some((_, last)) = passes.get_mut(pass) {
                *last = call.start.max(*last);
            }
        }
    }
    passes
}
