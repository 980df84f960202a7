//! Iterations in which no graph is recorded.
//!
//! In: what modules make. Out: the iterations without a backward pass whose modules leave less of it than a graph would. What a
//! line keeps there that calls no module (the state of a metric, a result) is no graph: it would go through the modules.

use std::ops::Range;

use super::{KEPT_SHARE, Life};
use crate::facts::Facts;
use crate::unit::{Bytes, Index};

/// The positions of the events of such iterations, ascending.
#[derive(Default)]
pub(super) struct Graphless(Vec<Range<usize>>);

impl Graphless {
    pub(super) fn of(facts: &Facts, lives: &[Life], backwards: &[usize]) -> Graphless {
        let iterations = &facts.program.iterations;
        let mut of: Vec<(Bytes, Bytes)> = vec![Default::default(); iterations.len()];
        for life in lives.iter().filter(|life| life.in_module) {
            let one = facts.timeline.allocation(life.id);
            let iteration = one.and_then(|one| facts.born_in(one)).map(Index::position);
            if let Some((one, (made, left))) = one.zip(iteration.and_then(|iteration| of.get_mut(iteration)))
            {
                *made += life.bytes;
                *left += if facts.ends_held(one) > 0 { life.bytes } else { Bytes::ZERO };
            }
        }
        let trains = |events: &Range<usize>| {
            let next = backwards.partition_point(|at| *at < events.start);
            backwards.get(next).is_some_and(|at| *at < events.end)
        };
        let events = iterations.iter().map(|one| one.start.position()..one.end.position());
        let drops = |((made, left), events): ((Bytes, Bytes), Range<usize>)| {
            let drops = made > Bytes::ZERO && left.share_of(made) < KEPT_SHARE.get();
            Some(events).filter(|events| drops && !trains(events))
        };
        Graphless(of.into_iter().zip(events).filter_map(drops).collect())
    }

    /// Whether an event lies in one of them.
    pub(super) fn hold(&self, position: usize) -> bool {
        let after = self.0.partition_point(|events| events.start <= position);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|events| events.contains(&position))
    }
}
