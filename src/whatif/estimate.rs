//! The estimate of the textbooks: parameters, optimizer state, and the larger of the backward pass's end and its beginning.
//!
//! In: lifetimes and roles. Out: the terms, each as it was recorded at its own highest moment, and their sum. A plan made before
//! the first run has nothing better; its error against the recorded peak says what such a plan leaves out.

use crate::engine::Device;
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{Bytes, EventIndex, Index};

/// The terms, in requested bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Weights.
    pub parameters: Bytes,
    /// What the optimizer keeps.
    pub optimizer_state: Bytes,
    /// Gradients.
    pub gradients: Bytes,
    /// What `optimizer.step` makes and drops.
    pub step_temporaries: Bytes,
    /// What forward passes save.
    pub activations: Bytes,
}

impl Estimate {
    /// Whether the program trains anything: of another the textbooks say no more than its parameters.
    pub fn trains(&self) -> bool {
        self.gradients + self.optimizer_state > Bytes::ZERO
    }

    /// Adds up the recording of a device.
    pub(super) fn of(device: &Device) -> Estimate {
        let of_role = |role| {
            device.timeline.iter().filter(move |(id, _)| device.roles.get(*id) == role).map(|(_, one)| one)
        };
        let highest = |role| highest(of_role(role)).0;
        let in_step = |event: EventIndex| device.program.phase(event) == Phase::OptimizerStep;
        let temporaries = of_role(Role::Temporary).filter(|one| one.alloc.is_some_and(in_step));
        Estimate {
            parameters: highest(Role::Parameter),
            optimizer_state: highest(Role::OptimizerState),
            gradients: highest(Role::Gradient),
            step_temporaries: self::highest(temporaries).0,
            activations: highest(Role::Activation),
        }
    }

    /// Parameters + optimizer state + the larger of gradients with the step's temporaries, and activations.
    pub fn total(&self) -> Bytes {
        let backward = (self.gradients + self.step_temporaries).max(self.activations);
        self.parameters + self.optimizer_state + backward
    }

    /// By how much it misses a peak, as a share of that: below 0 where it promises too little.
    pub fn error(&self, peak: Bytes) -> f64 {
        if peak == Bytes::ZERO { 0.0 } else { self.total().share_of(peak) - 1.0 }
    }
}

/// The most bytes of some allocations that were alive at a time, and after how many events.
pub(super) fn highest<'a>(allocations: impl Iterator<Item = &'a Allocation>) -> (Bytes, usize) {
    let mut changes: Vec<(usize, i128)> = Vec::new();
    for one in allocations {
        let bytes = i128::from(one.bytes.get());
        // What is born with an event is there after it; what is older was there before the first.
        changes.push((one.alloc.map_or(0, |event| event.position() + 1), bytes));
        changes.extend(one.free.map(|event| (event.position() + 1, -bytes)));
    }
    changes.sort_unstable();
    let (mut level, mut highest, mut moment) = (0_i128, 0_i128, 0);
    for (at, by) in changes {
        level += by;
        if level > highest {
            (highest, moment) = (level, at);
        }
    }
    (Bytes(u64::try_from(highest).unwrap_or(u64::MAX)), moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_the_two_ends_of_the_backward_pass_counts() {
        let estimate = Estimate {
            parameters: Bytes(100),
            optimizer_state: Bytes(200),
            gradients: Bytes(100),
            step_temporaries: Bytes(50),
            activations: Bytes(140),
        };
        assert_eq!(estimate.total(), Bytes(450));
        assert_eq!(Estimate { activations: Bytes(160), ..estimate }.total(), Bytes(460));
        assert!((estimate.error(Bytes(500)) + 0.1).abs() < 1e-9);
        assert!(estimate.error(Bytes::ZERO).abs() < 1e-9);
    }
}
