//! Under which line the backward pass was entered, and whether the file would show every optimizer call.
//!
//! In: annotations and stacks. Out: the entries to the backward pass, in order. The autograd engine's own thread has no
//! Python frames; what it allocates belongs to the last entry before.

use crate::facts::code::Code;
use crate::program::Meaning;
use crate::snapshot::{DeviceTrace, Snapshot};
use crate::unit::{EventIndex, Index, StackId};

/// What is known of the calls that frame an iteration.
#[derive(Debug, Default)]
pub struct Calls {
    /// Whether the file annotates optimizers (PyTorch 2.5 and later), so that a missing call is known to be missing.
    pub annotated: bool,
    backwards: Vec<(EventIndex, StackId)>,
}

impl Calls {
    /// Reads annotations and stacks once.
    pub(super) fn of(snapshot: &Snapshot, trace: &DeviceTrace, code: &Code) -> Calls {
        let is_step = |name| snapshot.text(name).starts_with("Optimizer.step#");
        let annotated = snapshot.annotations.iter().any(|annotation| is_step(annotation.name));
        let enters = |stack: StackId| {
            code.python(stack).iter().any(|frame| code.vocabulary.meaning(*frame) == Meaning::Backward)
        };
        let entering: Vec<bool> = snapshot.stacks.ids().map(enters).collect();
        let entry = |(position, stack): (usize, Option<StackId>)| {
            let stack = stack.filter(|stack| entering.get(stack.position()) == Some(&true))?;
            Some((EventIndex::at(position)?, stack))
        };
        let stacks = trace.events.iter().map(|event| event.stack);
        Calls { annotated, backwards: stacks.enumerate().filter_map(entry).collect() }
    }

    /// The stack under which the backward pass was entered that an event belongs to: the last one before it.
    pub fn backward_before(&self, event: EventIndex) -> Option<StackId> {
        let after = self.backwards.partition_point(|(entry, _)| *entry <= event);
        after.checked_sub(1).and_then(|last| self.backwards.get(last)).map(|(_, stack)| *stack)
    }
}
