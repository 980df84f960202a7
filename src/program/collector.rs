//! Frees that Python's garbage collector makes.
//!
//! In: stacks, and the times that Python told the recorder. Out: for each free whether the collector made it. It strikes on whatever line the
//! program has reached, so such a free says nothing of what that line does.

use crate::frames::{Frames, MemorySign};
use crate::snapshot::{Action, Collections, Event, Snapshot};
use crate::unit::{Index, Micros, StackId};

/// What shows the garbage collector at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectorSign {
    /// Its own C++ frames.
    Frames,
    /// Python told the recorder.
    Told,
    /// It strikes on whatever line runs, inside of libraries, too.
    Anywhere,
}

/// Why a tensor goes, as C++ frames show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FreeReason {
    /// The collector frees it.
    Collected,
    /// Nothing refers to it any more.
    Unreferenced,
    /// They do not show it.
    Unseen,
}

/// When Python's garbage collector was at work.
#[derive(Debug, Default)]
pub struct Collector {
    /// What each stack shows; empty where none can.
    stacks: Vec<FreeReason>,
    /// From when until when it ran, as told, ascending.
    spans: Vec<(Micros, Micros)>,
    /// Whether all of its runs were told.
    is_told: bool,
}

impl Collector {
    /// Reads a snapshot; `frees` says whether frees have stacks of their own.
    pub fn of(snapshot: &Snapshot, frames: &Frames, frees: bool) -> Collector {
        let signs = |stack: StackId| snapshot.stacks.get(stack).iter().map(|frame| frames.memory(*frame));
        // Most recordings have no frame of the kind, and no stack need be looked at.
        let may_show = |frame| matches!(frames.memory(frame), MemorySign::Collector | MemorySign::Empties);
        let release = |stack: StackId| {
            if MemorySign::collects(signs(stack)) {
                FreeReason::Collected
            } else if signs(stack).any(|sign| sign == MemorySign::Dies) {
                FreeReason::Unreferenced
            } else {
                FreeReason::Unseen
            }
        };
        let stacks = if frees && snapshot.stacks.frame_ids().any(may_show) {
            snapshot.stacks.ids().map(release).collect()
        } else {
            Vec::new()
        };
        let mut spans: Vec<(Micros, Micros)> =
            snapshot.collections.iter().flat_map(Collections::spans).collect();
        spans.sort_unstable();
        let is_told = snapshot.collections.as_ref().is_some_and(Collections::are_all);
        Collector { stacks, spans, is_told }
    }

    fn shown(&self, event: &Event) -> Option<&FreeReason> {
        event.stack.and_then(|stack| self.stacks.get(stack.position()))
    }

    /// Whether it is known of each of its runs when that was.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether C++ frames show that an event frees what nothing refers to any more: that is no work of the collector's.
    pub fn is_spared(&self, event: &Event) -> bool {
        self.shown(event) == Some(&FreeReason::Unreferenced)
    }

    /// How an event shows that the collector frees something, if it does.
    pub fn frees(&self, event: &Event) -> Option<CollectorSign> {
        if event.action != Action::FreeRequested {
            return None;
        }
        let shown = self.shown(event) == Some(&FreeReason::Collected);
        let told = || {
            let before = self.spans.partition_point(|(begun, _)| *begun <= event.time).checked_sub(1);
            before.and_then(|last| self.spans.get(last)).is_some_and(|(_, ended)| event.time <= *ended)
        };
        if shown { Some(CollectorSign::Frames) } else { told().then_some(CollectorSign::Told) }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::tape::Tape;

    #[test]
    fn a_line_on_which_the_collector_strikes_is_no_part_of_a_loop() {
        let mut tape = Tape::default();
        for turn in 0..16 {
            tape.alloc("main:62");
            tape.alloc("main:62 parse:34 @module forward:5");
            tape.alloc("main:62 parse:35 @module forward:5");
            if turn % 8 == 7 {
                tape.free("main:65 @collector");
            }
        }
        assert_eq!(tape.program().iterations.len(), 16);
    }
    #[test]
    fn what_dies_because_nothing_refers_to_it_is_spared() {
        let is_spared = |stack: &str| {
            let mut tape = Tape::default();
            tape.alloc("main:62 @empties");
            let freed = tape.free(stack);
            let event = tape.recorder.events.get(freed).copied().unwrap();
            tape.program().collector.is_spared(&event)
        };
        assert!(is_spared("main:57 reset:769 @dies @empties"), "states.clear()");
        assert!(!is_spared("main:57 @collector @dies @empties"), "a dict of the cycle is cleared");
        assert!(!is_spared("main:57 @collector @empties"));
        assert!(!is_spared("main:57"), "no C++ frame says how");
    }
}
