//! Which stretches of a trace lie inside a training pass: between a forward and the backward that uses what it saved.
//!
//! In: events and the signs of their stacks. Out: an answer for any stretch. A loop over layers, over samples of a batch or over
//! the scales of a loss goes round while saved tensors wait for the backward pass; the loop of a program does not.

use rustc_hash::FxHashMap;

use super::Phase;
use super::signs::Sign;
use crate::snapshot::{Action, Event};
use crate::unit::Index;

/// Tensors that wait for a backward pass.
#[derive(Debug, Default)]
pub(super) struct AwaitingBackward {
    /// Where one was made, ascending, and where a backward pass lets go of it.
    waits: Vec<(usize, usize)>,
    /// For each of them the last place at which a backward pass lets go of any made so far.
    latest: Vec<usize>,
    /// Where backward passes allocate or let go.
    backward: Vec<usize>,
}

impl AwaitingBackward {
    /// Nothing is known to wait where frees have no stacks.
    pub(super) fn of(events: &[Event], signs: &[Sign], frees: bool) -> AwaitingBackward {
        if !frees {
            return AwaitingBackward::default();
        }
        let is_backward = |event: &Event| {
            let sign = event.stack.and_then(|stack| signs.get(stack.position()));
            sign.is_some_and(|sign| sign.phase == Some(Phase::Backward))
        };
        let mut pending = AwaitingBackward::default();
        let mut made: FxHashMap<u64, usize> = FxHashMap::default();
        for (at, event) in events.iter().enumerate() {
            let moves = matches!(event.action, Action::Alloc | Action::FreeRequested);
            if moves && is_backward(event) {
                pending.backward.push(at);
            }
            match event.action {
                Action::Alloc if !is_backward(event) => {
                    made.insert(event.address, at);
                }
                Action::FreeRequested => {
                    if let Some(born) = made.remove(&event.address).filter(|_| is_backward(event)) {
                        pending.waits.push((born, at));
                    }
                }
                _ => {}
            }
        }
        pending.waits.sort_unstable();
        let latest = pending.waits.iter().scan(0, |last, (_, until)| {
            *last = (*last).max(*until);
            Some(*last)
        });
        pending.latest = latest.collect();
        pending
    }

    /// Whether a backward pass that comes after a stretch, and none inside it, lets go of what was made before it.
    pub(super) fn spans(&self, start: usize, end: usize) -> bool {
        let before = self.waits.partition_point(|(born, _)| *born < start).checked_sub(1);
        let waits = before.and_then(|last| self.latest.get(last)).is_some_and(|until| *until >= end);
        waits && !self.runs(start, end)
    }

    /// Whether what most turns of a loop save is let go of by a backward pass behind the loop: the steps of a rollout, of a solver, of a
    /// recurrent network, of an adaptation that is differentiated itself (`create_graph`). `starts` are the turns' first events, `end` the
    /// event after the last.
    pub(super) fn is_fed_by(&self, starts: &[usize], end: usize) -> bool {
        let ends = starts.iter().skip(1).copied().chain([end]);
        let waiting = starts.iter().zip(ends).filter(|&(&from, to)| {
            let first = self.waits.partition_point(|(born, _)| *born < from);
            let mut made = self.waits.iter().skip(first).take_while(|(born, _)| *born < to);
            made.any(|(_, until)| *until >= end)
        });
        waiting.count() * 2 > starts.len()
    }

    /// Whether a backward pass runs in a stretch.
    pub(super) fn runs(&self, start: usize, end: usize) -> bool {
        let next = self.backward.partition_point(|at| *at < start);
        self.backward.get(next).is_some_and(|at| *at < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tensors that wait, each with its birth and the end of its wait.
    fn pending(waits: &[(usize, usize)], backward: &[usize]) -> AwaitingBackward {
        AwaitingBackward { waits: waits.to_vec(), latest: Vec::new(), backward: backward.to_vec() }
    }

    const TURNS: [usize; 3] = [0, 10, 20];
    const END: usize = 30;

    #[test]
    fn a_rollout_is_fed_by_the_backward_pass_behind_it() {
        assert!(pending(&[(2, 43), (12, 42), (22, 41)], &[41, 42, 43]).is_fed_by(&TURNS, END));
        assert!(pending(&[(2, 43), (12, 42)], &[42, 43]).is_fed_by(&TURNS, END), "most turns are enough");
    }

    #[test]
    fn one_turn_that_is_used_later_does_not_make_a_rollout() {
        assert!(!pending(&[(22, 41)], &[41]).is_fed_by(&TURNS, END));
        assert!(!pending(&[], &[41]).is_fed_by(&TURNS, END));
        assert!(!pending(&[(2, 43)], &[43]).is_fed_by(&[], END));
    }

    #[test]
    fn backward_passes_within_the_turns_feed_none_unless_one_behind_them_does_too() {
        let within = [(2, 8), (12, 18), (22, 28)];
        assert!(!pending(&within, &[8, 18, 28]).is_fed_by(&TURNS, END));
        let adapted = [(1, 8), (2, 43), (11, 18), (12, 42), (21, 28), (22, 41)];
        assert!(pending(&adapted, &[8, 18, 28, 41, 42, 43]).is_fed_by(&TURNS, END));
    }
}
