//! The turns of one loop, and what lives through how many of them.
//!
//! In: the first event of each turn and the event after the last, of the main loop's iterations or of any other loop's run. Out:
//! which turn holds an event, and at which ends of turns something is held. Always: turns ascend and tile the loop.

use std::ops::Range;

use crate::program::{Iteration, LoopRun};
use crate::timeline::Allocation;
use crate::unit::{EventIndex, Index, Ranks};

/// The turns of a loop.
#[derive(Debug, Default)]
pub struct Turns {
    starts: Ranks,
    ends: Vec<usize>,
    end_ranks: Ranks,
}

impl Turns {
    /// The iterations of the main loop.
    pub fn of_iterations(iterations: &[Iteration]) -> Turns {
        let one = |iteration: &Iteration| (iteration.start.position(), iteration.end.position());
        Turns::new(iterations.iter().map(one))
    }

    /// The turns of one run of any loop.
    pub fn of_run(run: &LoopRun) -> Turns {
        let one = |(turn, start): (usize, &EventIndex)| (start.position(), run.end_of(turn).position());
        Turns::new(run.starts.iter().enumerate().map(one))
    }

    fn new(spans: impl Iterator<Item = (usize, usize)>) -> Turns {
        let (starts, ends): (Vec<usize>, Vec<usize>) = spans.unzip();
        Turns { starts: Ranks::of(starts), end_ranks: Ranks::of(ends.iter().copied()), ends }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The position after the last event of each turn.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The last event of a turn.
    pub fn last_event(&self, turn: usize) -> Option<EventIndex> {
        self.ends.get(turn).and_then(|end| EventIndex::at(end.checked_sub(1)?))
    }

    /// The turn that holds an event.
    pub fn holding(&self, event: EventIndex) -> Option<usize> {
        let turn = self.starts.up_to(event.position()).checked_sub(1)?;
        self.ends.get(turn).is_some_and(|end| event.position() < *end).then_some(turn)
    }

    /// The turn in which an allocation was made.
    pub fn making(&self, one: &Allocation) -> Option<usize> {
        self.holding(one.alloc?)
    }

    /// The ends of turns at which the program holds an allocation: until it gives it back, not until a stream is done with it.
    pub fn held(&self, one: &Allocation) -> Range<usize> {
        self.between(one.alloc, one.given_back())
    }

    /// The ends of turns at which the program would hold an allocation that it gave back with this event.
    pub fn held_until(&self, one: &Allocation, event: EventIndex) -> Range<usize> {
        self.between(one.alloc, Some(event))
    }

    /// The ends of turns at which the allocator has no use of an allocation's memory: until its free is complete.
    pub fn occupied(&self, one: &Allocation) -> Range<usize> {
        self.between(one.alloc, one.free)
    }

    fn between(&self, from: Option<EventIndex>, until: Option<EventIndex>) -> Range<usize> {
        let first = from.map_or(0, |event| self.end_ranks.up_to(event.position()));
        let after = until.map_or(self.ends.len(), |event| self.end_ranks.up_to(event.position()));
        first..after.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, at};

    fn allocation(born: Option<usize>, asked: Option<usize>, freed: Option<usize>) -> Allocation {
        Allocation { free_requested: asked.map(at), ..testing::allocation(1, born, freed) }
    }

    #[test]
    fn what_is_held_is_counted_at_the_ends_of_turns() {
        let turns = Turns::new([(10, 20), (20, 30), (30, 40)].into_iter());
        let held = |one: Allocation| turns.held(&one);
        assert_eq!(held(allocation(None, None, None)), 0..3);
        assert_eq!(held(allocation(Some(12), Some(19), Some(25))), 0..0, "given back within its turn");
        assert_eq!(
            held(allocation(Some(12), Some(20), None)),
            0..1,
            "the next turn's first event gives it back"
        );
        assert_eq!(held(allocation(Some(25), None, None)), 1..3);
        assert_eq!(turns.occupied(&allocation(Some(12), Some(19), Some(25))), 0..1);
        assert_eq!(
            (turns.holding(at(9)), turns.holding(at(20)), turns.holding(at(40))),
            (None, Some(1), None)
        );
    }
}
