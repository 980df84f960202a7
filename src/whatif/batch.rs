//! Which requests grow with the batch.
//!
//! In: roles, phases and sizes. Out: for each allocation how much of it grows with the batch, and the user's lines that made
//! what does. Where batches of different sizes were recorded, the sizes themselves say it ([`super::sizes`]). Of what they do not
//! decide, inputs and activations grow; so do temporaries of the passes through the model, except those of exactly a parameter's
//! size in the backward pass (a gradient on its way to its place). What models are made of, what the optimizer makes, workspaces
//! and collectives do not; what has no known role is left as it is.
//!
//! Where it can fail: what is told by roles is not measured. Copies of weights in another type pass for temporaries of the forward
//! pass and grow; a library may choose another algorithm, with another workspace, for another batch.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::str::FromStr;

use rustc_hash::FxHashSet;
use thiserror::Error;

use super::estimate::highest;
use super::sizes::BatchSizes;
use crate::engine::{Device, Input};
use crate::facts::Facts;
use crate::finding::Location;
use crate::program::Phase;
use crate::replay::{Sought, as_recorded};
use crate::role::Role;
use crate::snapshot::{Action, Event};
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, Index};

/// By what batches are multiplied: above 0, finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchScale(f64);

/// Why a text is no scale.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("write a number above 0 and up to 1000000, such as 2 or 0.5")]
pub struct ScaleError;

/// Batches a million times as large are no question that anybody has.
const MOST: f64 = 1e6;

impl FromStr for BatchScale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<BatchScale, ScaleError> {
        let number = text.parse::<f64>().ok().filter(|number| 0.0 < *number && *number <= MOST);
        number.map(BatchScale).ok_or(ScaleError)
    }
}

impl BatchScale {
    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Bytes of which this share grows.
    fn of(self, bytes: Bytes, share: f64) -> Bytes {
        if share <= 0.0 {
            return bytes;
        }
        Bytes::rounded((bytes.get() as f64 * (1.0 + share * (self.0 - 1.0))).ceil())
    }
}

/// A user's line whose requests were taken to grow with the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grown {
    /// The line; nothing where the stack shows none of the user's.
    pub location: Option<Location>,
    /// What its requests hold at the moment at which all that grows holds most.
    pub bytes: Bytes,
}

/// By what it is told which requests grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToldBy {
    /// How many different batches were recorded.
    pub batches: usize,
    /// The share of the bytes asked for in the recording of which their sizes say whether they grow; of the others, their
    /// roles do.
    pub measured: f64,
}

/// The allocations of a device that grow.
pub(super) struct Batch {
    scale: BatchScale,
    /// The share of each that grows.
    shares: Vec<f64>,
    /// The share of each request that got no memory.
    of_refused: BTreeMap<EventIndex, f64>,
    pub(super) told: ToldBy,
}

impl Batch {
    pub(super) fn of(device: &Device, facts: &Facts, scale: BatchScale) -> Batch {
        let of_role = |role| device.timeline.iter().filter(move |(id, _)| device.roles.get(*id) == role);
        let parameters: FxHashSet<Bytes> = of_role(Role::Parameter).map(|(_, one)| one.bytes).collect();
        let by_role = |(id, one): (AllocationId, &Allocation)| {
            let phase = one.alloc.map(|event| device.program.phase(event));
            match device.roles.get(id) {
                Role::Input | Role::Activation => true,
                Role::Temporary => match phase {
                    Some(Phase::Input | Phase::Forward | Phase::Recomputation | Phase::Evaluation) => true,
                    Some(Phase::Backward) => !parameters.contains(&one.bytes),
                    _ => false,
                },
                _ => false,
            }
        };
        let sizes = BatchSizes::of(device, facts);
        let of_refused = refused(device, facts, &sizes);
        let (mut measured, mut all) = (0_u128, 0_u128);
        let shares = device.timeline.iter().map(|(id, one)| {
            let stack = one.alloc.and_then(|event| facts.trace.event(event)).and_then(|event| event.stack);
            let share = sizes.share(stack);
            all += u128::from(one.bytes.get());
            measured += share.map_or(0, |_| u128::from(one.bytes.get()));
            share.unwrap_or_else(|| f64::from(u8::from(by_role((id, one)))))
        });
        let shares = shares.collect();
        let measured = if all == 0 { 0.0 } else { measured as f64 / all as f64 };
        Batch { scale, shares, of_refused, told: ToldBy { batches: sizes.batches, measured } }
    }

    /// How large a request is with these batches.
    pub(super) fn size(&self, asked: Sought<'_>) -> Bytes {
        let share = match asked {
            Sought::Got(id, _) => self.shares.get(id.position()),
            Sought::Refused(event, _) => self.of_refused.get(&event),
        };
        self.scale.of(as_recorded(asked), share.copied().unwrap_or_default())
    }

    /// The lines whose requests grow, by what they hold where all of them hold most; those that hold nothing then are left
    /// out.
    pub(super) fn lines(&self, input: &Input, facts: &Facts) -> Vec<Grown> {
        let growing = || facts.timeline.iter().zip(&self.shares).filter(|(_, share)| **share > 0.0);
        let (_, moment) = highest(growing().map(|((_, one), _)| one));
        let alive = |one: &Allocation| {
            one.alloc.is_none_or(|born| born.position() < moment)
                && one.free.is_none_or(|died| died.position() >= moment)
        };
        let mut sums: BTreeMap<Option<FrameId>, Bytes> = BTreeMap::new();
        for ((_, one), _) in growing().filter(|((_, one), _)| alive(one)) {
            let stack = one.alloc.map_or(one.stack, |event| facts.seen_stack(event));
            let frame = stack.and_then(|stack| facts.user_frame(stack));
            *sums.entry(frame).or_default() += one.bytes;
        }
        let line = |(frame, bytes): (Option<FrameId>, Bytes)| {
            let location = frame.and_then(|frame| Location::of(&input.snapshot, frame));
            Grown { location, bytes }
        };
        let mut lines: Vec<Grown> = sums.into_iter().map(line).collect();
        lines.sort_by_key(|one| (Reverse(one.bytes), one.location.clone()));
        lines
    }
}

/// What share of the requests grows that got no memory: nobody knows what they were for, but what the passes through the model ask for is
/// made of the batch for the most part.
fn refused(device: &Device, facts: &Facts, sizes: &BatchSizes) -> BTreeMap<EventIndex, f64> {
    let failures = facts.trace.events.iter().enumerate().filter(|(_, one)| one.action == Action::OutOfMemory);
    let share = |(at, one): (usize, &Event)| {
        let at = EventIndex::at(at)?;
        let passes = match device.program.phase(at) {
            Phase::Input | Phase::Forward | Phase::Recomputation | Phase::Evaluation | Phase::Backward => 1.0,
            _ => 0.0,
        };
        Some((at, sizes.share(one.stack).unwrap_or(passes)))
    };
    failures.filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_above_zero_and_finite() {
        for wrong in ["0", "-1", "nan", "inf", "1e7", "", "two"] {
            assert_eq!(wrong.parse::<BatchScale>(), Err(ScaleError), "{wrong}");
        }
        let half: BatchScale = "0.5".parse().unwrap();
        assert_eq!(half.of(Bytes(5), 1.0), Bytes(3), "a part of a byte is a byte");
        assert_eq!(half.of(Bytes(8), 0.5), Bytes(6), "half of it grows");
        assert_eq!(half.of(Bytes(8), 0.0), Bytes(8));
    }
}
