//! Which step used a gradient last, where a program has several optimizers.
//!
//! In: gradients, and the steps that ended before they were given back. Out: for each set of gradients the step that used it. A step shows what
//! it updates by what it makes on the way: state, or temporaries, of the sizes of its gradients. Where some step of the program shows that of a
//! set, one that does not belongs to another optimizer; where none does (fused steps, plain SGD), it is the last of all.

use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::program::Step;
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::unit::{Bytes, Index};

/// The share of a set's bytes of whose sizes a step makes something if it updates the set: gradients of zero bytes or of frozen parts may be
/// among them.
static UPDATED: Threshold<f64> = Threshold::new("rules::late_zero_grad::used::UPDATED", 0.9);

/// How many tensors there are of each size.
type GradientSizes = FxHashMap<Bytes, usize>;

/// Gradients that stand together: the steps that ended in their lifetimes are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GradientSet {
    /// The first of the steps; `None` where the gradients are older than the recording.
    pub(super) first: Option<usize>,
    /// The last; `None` where there was none before they were given back.
    pub(super) last: Option<usize>,
    /// Whether they are older than the recording and `zero_grad` gave them back.
    pub(super) is_cleared: bool,
}

/// What each step makes, and which sets some step shows.
pub(super) struct Makers {
    /// `None` for a step that runs already when the recording begins: what it made before is not seen.
    made: Vec<Option<GradientSizes>>,
    shown: FxHashMap<Vec<(Bytes, usize)>, bool>,
}

impl Makers {
    pub(super) fn of(facts: &Facts) -> Makers {
        let made = |step: &Step| {
            let start = Some(step.start.position()).filter(|start| *start > 0)?;
            let events = facts.trace.events.iter().take(step.end.position()).skip(start);
            Some(count(events.filter(|event| event.action == Action::Alloc).map(|event| event.size)))
        };
        Makers { made: facts.updates().iter().map(made).collect(), shown: FxHashMap::default() }
    }

    /// The step among those that ended in a set's lifetime that used it last, the last of all where nothing tells. `None` for a set that is
    /// older than the recording, where it shows that another step than these updates it.
    pub(super) fn last_user(&mut self, set: &GradientSet, sizes: &[Bytes]) -> Option<usize> {
        let last = set.last?;
        let wanted = count(sizes.iter().copied());
        if self.made.len() < 2 || !self.is_shown(&wanted) {
            return Some(last);
        }
        let first = set.first.unwrap_or(0);
        let may_update = |at: &usize| {
            self.made.get(*at).is_some_and(|made| made.as_ref().is_none_or(|made| covers(made, &wanted)))
        };
        let unseen = Some(last).filter(|_| set.first.is_some() || !set.is_cleared);
        (first..=last).rev().find(may_update).or(unseen)
    }

    /// Whether any step shows by what it makes that it updates a set.
    fn is_shown(&mut self, wanted: &GradientSizes) -> bool {
        let mut key: Vec<(Bytes, usize)> = wanted.iter().map(|(bytes, number)| (*bytes, *number)).collect();
        key.sort_unstable();
        let made = &self.made;
        *self.shown.entry(key).or_insert_with(|| made.iter().flatten().any(|made| covers(made, wanted)))
    }
}

fn count(sizes: impl Iterator<Item = Bytes>) -> GradientSizes {
    let mut counts = GradientSizes::default();
    for size in sizes {
        *counts.entry(size).or_default() += 1;
    }
    counts
}

/// Whether a step makes a tensor for each of a set, as good as.
fn covers(made: &GradientSizes, wanted: &GradientSizes) -> bool {
    let weigh = |number: usize, bytes: &Bytes| bytes.times(number as u64);
    let all: Bytes = wanted.iter().map(|(bytes, number)| weigh(*number, bytes)).sum();
    let covered = wanted
        .iter()
        .map(|(bytes, number)| weigh((*number).min(made.get(bytes).copied().unwrap_or(0)), bytes));
    all > Bytes::ZERO && covered.sum::<Bytes>().share_of(all) >= UPDATED.get()
}
