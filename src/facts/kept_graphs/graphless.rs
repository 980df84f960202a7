//! Turns in which no graph is recorded.
//!
//! In: what modules make. Out: the iterations, and the turns of one loop, without a backward pass whose modules leave less of it than a graph
//! would. What a line keeps there that calls no module (the state of a metric, a result, a rollout) is no graph: it would go through the modules.

use std::ops::Range;

use super::{GraphEnd, GraphLife, KEPT_SHARE};
use crate::facts::Facts;
use crate::unit::{Bytes, Index};

/// The positions of the events of such iterations, ascending.
#[derive(Default)]
pub(super) struct Graphless(Vec<Range<usize>>);

impl Graphless {
    pub(super) fn of(facts: &Facts, lives: &[GraphLife], backwards: &[usize]) -> Graphless {
        let iterations = facts.program.iterations.iter();
        let events = iterations.map(|one| one.start.position()..one.end.position());
        Graphless(events.filter(|events| is_graphless(lives, backwards, events)).collect())
    }

    /// Whether an event lies in one of them.
    pub(super) fn hold(&self, position: usize) -> bool {
        let after = self.0.partition_point(|events| events.start <= position);
        after.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|events| events.contains(&position))
    }
}

/// Whether no backward pass runs between these events, and modules drop before the last of them what they make.
pub(super) fn is_graphless(lives: &[GraphLife], backwards: &[usize], events: &Range<usize>) -> bool {
    let next = backwards.partition_point(|at| *at < events.start);
    if backwards.get(next).is_some_and(|at| *at < events.end) {
        return false;
    }
    let begin = lives.partition_point(|life| life.born < events.start);
    let inside = lives.iter().skip(begin).take_while(|life| life.born < events.end);
    let (mut made, mut left) = (Bytes::ZERO, Bytes::ZERO);
    for life in inside.filter(|life| life.in_module && life.end != GraphEnd::Scratch) {
        made += life.bytes;
        left += if life.dies >= events.end { life.bytes } else { Bytes::ZERO };
    }
    made > Bytes::ZERO && left.share_of(made) < KEPT_SHARE.get()
}
