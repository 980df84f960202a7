//! Gradient accumulation: passes that one step of the optimizer uses.
//!
//! In: the turns of the training loop, steps and calls of `zero_grad`. Out: the optimizer's periods.
//!
//! - Passes without a step, regularly many for each one with, are micro-batches of gradient accumulation if gradients are not
//!   cleared more often than steps run; then an iteration is the optimizer's period. A step that `GradScaler` skips is
//!   followed by its `zero_grad` all the same, which tells the two apart.

use std::collections::BTreeMap;

use super::iterations::Cut;
use super::marks::Marks;
use super::pending::AwaitingBackward;

/// Joins micro-batches into optimizer periods. A turn without a step is a micro-batch where a backward pass runs in it; otherwise
/// its batch was skipped.
pub(super) fn join(cut: Cut, marks: &Marks, passes: impl FnOnce() -> AwaitingBackward) -> Cut {
    if !marks.has_optimizer() {
        return cut;
    }
    let (mut steps, mut zeros) = (vec![0_usize; cut.starts.len()], vec![0_usize; cut.starts.len()]);
    for (marked, counts) in [(&marks.paces, &mut steps), (&marks.zero_grads, &mut zeros)] {
        for one in marked {
            // The last event of the call, or the event before it if it has none.
            let found = cut.find(one.end.saturating_sub(1));
            if let Some(count) = found.and_then(|at| counts.get_mut(at)) {
                *count += 1;
            }
        }
    }
    if !accumulates(&steps, &zeros) {
        return cut;
    }
    let passes = passes();
    let idle = || cut.spans().zip(&steps).filter(|(_, count)| **count == 0);
    if idle().filter(|((start, end), _)| passes.runs(*start, *end)).count() * 2 < idle().count() {
        return cut;
    }
    let mut starts = Vec::new();
    let mut begins = true;
    for (&start, &count) in cut.starts.iter().zip(&steps) {
        if begins {
            starts.push(start);
        }
        begins = count > 0;
    }
    Cut { micro_batches: cut.starts, starts, ..cut }
}

/// Whether passes without a step come in equal numbers before each pass with one, and gradients are cleared no more often
/// than steps run.
fn accumulates(steps: &[usize], zeros: &[usize]) -> bool {
    let mut gaps = Vec::new();
    let mut gap = 0;
    for &count in steps {
        if count > 0 {
            gaps.push(gap);
            gap = 0;
        } else {
            gap += 1;
        }
    }
    let idle = steps.iter().filter(|&&count| count == 0).count();
    let Some((&first, rest)) = gaps.split_first() else { return false };
    if idle == 0 || rest.is_empty() {
        return false;
    }
    // The first gap may be cut short by the beginning of the recording.
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &one in rest {
        *counts.entry(one).or_insert(0) += 1;
    }
    let Some((&usual, &agree)) = counts.iter().max_by_key(|(_, count)| **count) else { return false };
    // Clearing goes with stepping, before or after it (Lightning clears in a period's first pass).
    let (cleared, stepped) = (zeros.iter().filter(|&&count| count > 0).count(), gaps.len());
    usual > 0 && first <= usual && agree * 10 >= rest.len() * 7 && cleared <= stepped + 1
}
