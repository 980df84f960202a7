//! What a closer look at a device finds, for whoever asks for one recording alone: a check of many leaves it out.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Device, Input, profile};
use crate::familiar::{Familiar, Familiars};
use crate::replay::Proof;
use crate::unit::Bytes;

/// What a closer look at a device finds.
#[derive(Debug, Clone, Default)]
pub struct Closer {
    /// Whether a model of the allocator does what the recorded one did; nothing where there is no history to hold it against.
    pub proof: Option<Proof>,
    /// What of the peak people know by a name, largest first; a part of it, and no more than is sure. Nothing where levels are not known.
    pub familiar_at_peak: Vec<(Familiar, Bytes)>,
}

impl Closer {
    /// Looks closer at every device, in their order.
    pub fn all(input: &Input) -> Vec<Closer> {
        let of = |device: &Device| Closer {
            proof: device.proof(&input.snapshot),
            familiar_at_peak: familiar_at_peak(input, device),
        };
        input.devices.iter().map(of).collect()
    }
}

fn familiar_at_peak(input: &Input, device: &Device) -> Vec<(Familiar, Bytes)> {
    let Device { timeline, program, roles, evidence, .. } = device;
    if evidence.levels().is_err() {
        return Vec::new();
    }
    let known = Familiars::of((&input.snapshot, &input.frames), timeline, program, roles);
    let mut sums: BTreeMap<Familiar, Bytes> = BTreeMap::new();
    for (id, one) in profile::alive_at(timeline, timeline.peak_requested.event) {
        if let Some(familiar) = known.get(id) {
            *sums.entry(familiar).or_default() += one.bytes;
        }
    }
    let mut sums: Vec<(Familiar, Bytes)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, bytes)| Reverse(*bytes));
    sums
}
