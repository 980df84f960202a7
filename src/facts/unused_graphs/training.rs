//! What of the code that keeps a graph for nothing trains as well: advice must not take autograd from that.

use std::collections::BTreeSet;

use super::is_used;
use crate::facts::Facts;
use crate::snapshot::Action;
use crate::unit::{FrameId, StackId};

/// Where backward passes use what the code around a line computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trained {
    /// In no pass of the line's function, as far as the recording shows.
    #[default]
    Nowhere,
    /// In a pass at another line of the function, or in one that it calls there.
    InFunction,
    /// In other passes of the line itself: training and evaluation share it.
    AtLine,
}

/// The stacks of passes that backward passes use.
pub(super) struct Training(BTreeSet<StackId>);

impl Training {
    pub(super) fn of(facts: &Facts) -> Training {
        let mut stacks = BTreeSet::new();
        for call in facts.module_calls().iter().filter(|call| is_used(facts, call, usize::MAX)) {
            let event = facts.trace.events.get(call.start).filter(|event| event.action == Action::Alloc);
            stacks.extend(event.and_then(|event| event.stack));
        }
        Training(stacks)
    }

    /// What of the code around a line they go through.
    pub(super) fn around(&self, facts: &Facts, line: FrameId) -> Trained {
        let frames = self.0.iter().flat_map(|stack| facts.frames.python(*stack));
        let function = facts.frames.function(line);
        let same: BTreeSet<u32> = frames
            .filter(|frame| facts.frames.function(**frame) == function)
            .map(|frame| facts.frames.line(*frame))
            .collect();
        if same.contains(&facts.frames.line(line)) {
            Trained::AtLine
        } else if same.is_empty() {
            Trained::Nowhere
        } else {
            Trained::InFunction
        }
    }
}
