//! Several inputs at a time, with bounded memory and the outcome of one after another.
//!
//! In: a list and what to do with each of its items. Out: what came of each, in the order of the list, or the first
//! failure in that order. Always: the same for any number of hands. Items are begun in their order, and none after a failure;
//! so whatever stands before a failure is done, and the first of several is the same each time.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// How much is under way at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CrewBounds {
    /// The most items.
    pub(super) hands: usize,
    /// The most weight. What is heavier is done alone.
    pub(super) weight: u64,
}

/// Where the work stands.
#[derive(Default)]
struct Rota {
    /// The next item.
    next: usize,
    under_way: usize,
    weight: u64,
    failed: bool,
}

/// Does `work` for every item.
pub(super) fn work<T: Sync, R: Send, E: Send>(
    items: &[T],
    weigh: impl Fn(&T) -> u64 + Sync,
    bounds: CrewBounds,
    work: impl Fn(usize, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let hands = bounds.hands.min(items.len());
    if hands <= 1 {
        return items.iter().enumerate().map(|(position, item)| work(position, item)).collect();
    }
    let (state, changed) = (Mutex::new(Rota::default()), Condvar::new());
    let take = || {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let position = state.next;
            let item = items.get(position).filter(|_| !state.failed)?;
            // The weight of an item may cost a look at the file; it is asked for by whoever is next.
            let weight = weigh(item).min(bounds.weight);
            if state.under_way == 0 || state.weight + weight <= bounds.weight {
                state.next += 1;
                state.under_way += 1;
                state.weight += weight;
                return Some((position, item, weight));
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    };
    let hand = || {
        let mut done = Vec::new();
        while let Some((position, item, weight)) = take() {
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(position, item)));
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.under_way -= 1;
            state.weight -= weight;
            state.failed |= !matches!(outcome, Ok(Ok(_)));
            changed.notify_all();
            done.push((position, outcome));
        }
        done
    };
    let mut outcomes = thread::scope(|scope| {
        let helpers: Vec<_> =
            (1..hands).map_while(|_| thread::Builder::new().spawn_scoped(scope, hand).ok()).collect();
        let mut outcomes = hand();
        for helper in helpers {
            outcomes.extend(helper.join().unwrap_or_else(|fault| panic::resume_unwind(fault)));
        }
        outcomes
    });
    outcomes.sort_by_key(|(position, _)| *position);
    outcomes
        .into_iter()
        .map(|(_, outcome)| outcome.unwrap_or_else(|fault| panic::resume_unwind(fault)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// Later items are done sooner.
    fn dawdle(position: usize) {
        thread::sleep(Duration::from_millis(12_u64.saturating_sub(2 * position as u64)));
    }

    const FREE: CrewBounds = CrewBounds { hands: 4, weight: u64::MAX };

    #[test]
    fn outcomes_stand_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..20).collect();
        for hands in [0, 1, 2, 4, 50] {
            let done: Result<Vec<u32>, ()> = work(
                &items,
                |_| 1,
                CrewBounds { hands, ..FREE },
                |position, item| {
                    dawdle(position);
                    Ok(item * 2)
                },
            );
            assert_eq!(done.unwrap(), items.iter().map(|item| item * 2).collect::<Vec<_>>(), "{hands} hands");
        }
        assert_eq!(work(&[0; 0], |_| 1, FREE, |_, _| Ok::<_, ()>(0)), Ok(vec![]));
    }

    #[test]
    fn the_first_failure_in_order_is_the_outcome_and_nothing_is_begun_after_one() {
        for hands in [1, 2, 4] {
            let begun = AtomicUsize::new(0);
            let items: Vec<usize> = (0..100).collect();
            let outcome: Result<Vec<()>, usize> = work(
                &items,
                |_| 1,
                CrewBounds { hands, ..FREE },
                |position, item| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    dawdle(position);
                    if *item == 2 || *item == 3 { Err(*item) } else { Ok(()) }
                },
            );
            assert_eq!(outcome, Err(2), "{hands} hands");
            assert!(begun.into_inner() < 20, "{hands} hands");
        }
    }

    #[test]
    fn no_more_hands_and_no_more_weight_than_allowed() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (weight, heaviest) = (AtomicU64::new(0), AtomicU64::new(0));
        let items = [4_u64, 4, 4, 9, 30, 1, 1, 1, 1, 1, 1, 9];
        let outcome = work(
            &items,
            |item| *item,
            CrewBounds { hands: 3, weight: 10 },
            |_, item| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                heaviest.fetch_max(weight.fetch_add(*item, Ordering::SeqCst) + item, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(3));
                weight.fetch_sub(*item, Ordering::SeqCst);
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ()>(())
            },
        );
        assert_eq!(outcome.map(|done| done.len()), Ok(items.len()));
        assert!((2..=3).contains(&most.into_inner()));
        assert_eq!(heaviest.into_inner(), 30, "the heaviest alone");
    }

    #[test]
    fn a_panic_counts_like_a_failure_in_its_place() {
        let attempt = |faulty: usize, wrong: usize| {
            let items: Vec<usize> = (0..8).collect();
            panic::catch_unwind(|| {
                work(
                    &items,
                    |_| 1,
                    FREE,
                    |position, _| {
                        dawdle(position);
                        assert_ne!(position, faulty);
                        if position == wrong { Err(position) } else { Ok(()) }
                    },
                )
            })
        };
        assert!(attempt(1, 2).is_err(), "the panic stands first");
        assert!(matches!(attempt(3, 1), Ok(Err(1))), "the failure stands first");
    }
}
