//! Under which line the backward pass was entered, and whether the file would show every optimizer call.
//!
//! In: annotations and stacks. Out: the entries to the backward pass, in order. The autograd engine's own thread has no
//! Python frames; what it allocates belongs to the last entry before.

use crate::frames::{Frames, PhaseSign};
use crate::snapshot::{DeviceTrace, Snapshot};
use crate::unit::{EventIndex, Index, Ranks, StackId};

/// What is known of the calls that frame an iteration.
#[derive(Debug, Default)]
pub struct Calls {
    /// Whether the file annotates optimizers (PyTorch 2.5 and later), so that a missing call is known to be missing.
    pub annotated: bool,
    /// The stacks under which it was entered, in order, and where.
    entered_under: Vec<StackId>,
    entries: Ranks,
}

impl Calls {
    /// Reads annotations and stacks once.
    pub(super) fn of(snapshot: &Snapshot, trace: &DeviceTrace, frames: &Frames) -> Calls {
        let is_step = |name| snapshot.text(name).starts_with("Optimizer.step#");
        let annotated = snapshot.annotations.iter().any(|annotation| is_step(annotation.name));
        let enters = |stack: StackId| {
            frames.python(stack).iter().any(|frame| frames.phase(*frame) == PhaseSign::Backward)
        };
        let entering: Vec<bool> = snapshot.stacks.ids().map(enters).collect();
        let entry = |(position, stack): (usize, Option<StackId>)| {
            let stack = stack.filter(|stack| entering.get(stack.position()) == Some(&true))?;
            Some((position, stack))
        };
        let stacks = trace.events.iter().map(|event| event.stack);
        let (at, entered_under): (Vec<usize>, _) = stacks.enumerate().filter_map(entry).unzip();
        Calls { annotated, entered_under, entries: Ranks::of(at) }
    }

    /// The stack under which the backward pass was entered that an event belongs to: the last one before it.
    pub fn backward_before(&self, event: EventIndex) -> Option<StackId> {
        let last = self.entries.up_to(event.position()).checked_sub(1)?;
        self.entered_under.get(last).copied()
    }
}
