//! Work on two threads, for what is worth it: one device of a large recording.
//!
//! Always: results do not depend on which thread did what, and a panic goes on in the thread that asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does both pieces of work at once; one after the other where the system has no thread to give.
pub(super) fn both<A: Send, B>(beside: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &beside).ok();
        let here = here();
        let beside = match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => beside(),
        };
        (beside, here)
    })
}

/// Does something with each item, on two threads that take the next one when they are done with the last; the results
/// in the items' order.
pub(super) fn each<I: Sync, R: Send>(items: &[I], work: impl Fn(&I) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(position) else { return done };
            done.push((position, work(item)));
        }
    };
    let (mut done, more) = both(take, take);
    done.extend(more);
    done.sort_unstable_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let slow_first = |item: &u64| {
            thread::sleep(std::time::Duration::from_micros(200 - 2 * item));
            item * item
        };
        assert_eq!(each(&items, slow_first), items.iter().map(|item| item * item).collect::<Vec<_>>());
    }

    #[test]
    #[should_panic(expected = "from the other thread")]
    fn a_panic_beside_goes_on_here() {
        both(|| panic!("from the other thread"), || ());
    }
}
