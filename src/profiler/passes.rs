//! Where one training step ends and the next begins.
//!
//! Of events: a parameter's version rises when the optimizer changes it in place (`INCREMENT_VERSION` of category
//! `PARAMETER`), and between two steps new activations or gradients are made. Recorded with `AdamW`, with and without a
//! profiler's schedule, this finds exactly the steps that ran (`tests/data/profiler`). It finds two a turn where two
//! optimizers take turns, one for several turns where gradients are accumulated, and none where nothing is trained.
//!
//! Of levels: activations rise in the forward pass and are gone after the backward pass. A pass is a rise above half of
//! the highest level of activations and a fall below a quarter of it. The same is counted of gradients; where both agree,
//! confidence is medium.

use super::levels::{CategoryBytes, RunningLevel};
use super::{Category, ProfiledPass};
use crate::unit::Micros;

/// A row of `.raw.json.gz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProfiledEvent {
    /// `None` for what is older than the recording.
    pub(super) time: Option<Micros>,
    pub(super) action: TensorAction,
    pub(super) category: Category,
}

/// What happens to a tensor (`_ACTION_TO_INDEX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TensorAction {
    Preexisting,
    Create,
    IncrementVersion,
    Destroy,
}

/// Tells optimizer steps while events come.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) passes: Vec<ProfiledPass>,
    /// Whether anything was made since the last step that only a forward or backward pass makes.
    fresh: bool,
}

impl Steps {
    /// Looks at an event before it takes effect.
    pub(super) fn look(&mut self, event: ProfiledEvent, levels: &mut RunningLevel) {
        match (event.action, event.category) {
            (TensorAction::Create, Category::Activation | Category::Gradient | Category::AutogradDetail) => {
                self.fresh = true;
            }
            (TensorAction::IncrementVersion, Category::Parameter) if self.fresh => {
                self.fresh = false;
                self.passes.push(levels.end_pass(event.time));
            }
            _ => {}
        }
    }
}

/// The passes of a file of levels.
#[derive(Debug)]
pub(super) struct PassSplitter {
    pub(super) passes: Vec<ProfiledPass>,
    /// Whether gradients rise and fall as often as activations.
    pub(super) gradients_agree: bool,
}

impl PassSplitter {
    /// Finds the passes of all rows.
    pub(super) fn of(rows: &[(Micros, CategoryBytes)]) -> PassSplitter {
        let ends = falls(rows, Category::Activation);
        let gradients = falls(rows, Category::Gradient).len();
        let gradients_agree = gradients == ends.len();
        let mut levels = RunningLevel::default();
        let mut ends = ends.into_iter().peekable();
        let mut passes = Vec::new();
        for (position, (time, level)) in rows.iter().enumerate() {
            levels.set(Some(*time), *level);
            if ends.next_if_eq(&position).is_some() {
                passes.push(levels.end_pass(Some(*time)));
            }
        }
        PassSplitter { passes, gradients_agree }
    }
}

/// The rows at which a category falls below a quarter of its highest level after it stood above half of it.
fn falls(rows: &[(Micros, CategoryBytes)], category: Category) -> Vec<usize> {
    let bytes = |level: &CategoryBytes| level.get(category as usize).copied().unwrap_or(0);
    let highest = rows.iter().map(|(_, level)| bytes(level)).max().unwrap_or(0);
    let mut falls = Vec::new();
    let mut is_high = false;
    for (position, (_, level)) in rows.iter().enumerate() {
        if bytes(level) > highest / 2 {
            is_high = true;
        } else if is_high && bytes(level) < highest / 4 {
            is_high = false;
            falls.push(position);
        }
    }
    falls
}
