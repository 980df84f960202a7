//! Two recordings of one program compared: what needs more, what needs less, which findings came and went.
//!
//! In: two recordings, each measured, with what the rules say of it. Out: a [`Comparison`]. Iterations are aligned by their
//! number, up to the shorter recording, and the first is left out of what is called steady; call sites are followed
//! through moved lines and files. Always: a difference within what the iterations of either recording vary by is no change.

mod device;
mod findings;
mod measured;
mod regression;
mod sites;
mod spread;

pub use device::{DeviceComparison, PeakAt, RoleChange, SiteChange};
pub use findings::{Fate, FindingChange};
pub use measured::Measured;
pub use regression::{RegressionLimits, regressions};
pub use spread::{Direction, SizeChange};

use std::collections::BTreeMap;

use crate::engine::Report;
use crate::finding::Tolerance;
use crate::unit::{Index, count, some_of};
use measured::MeasuredDevice;

/// One of two recordings.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its memory.
    pub measured: &'a Measured,
    /// What the rules say of it.
    pub report: &'a Report,
}

/// How a recording, the head, differs from another, the base.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// What messages call the base.
    pub base: String,
    /// What messages call the head.
    pub head: String,
    /// The devices that both have, by ordinal.
    pub devices: Vec<DeviceComparison>,
    /// The findings that differ, what came or grew first.
    pub findings: Vec<FindingChange>,
    /// How many findings are the same.
    pub same_findings: usize,
    /// What could not be compared, in words for a person.
    pub doubts: Vec<String>,
}

impl Comparison {
    /// Compares two recordings.
    pub fn of(base: Side, head: Side) -> Comparison {
        let (findings, same_findings) = findings::changes(base.report, head.report, &Tolerance::default());
        let shared = shared_devices(base.measured, head.measured);
        let devices: Vec<DeviceComparison> =
            shared.map(|(one, other)| DeviceComparison::of(one, other)).collect();
        let mut doubts = doubts(base, head);
        doubts.extend(devices.iter().filter_map(too_short_for_growth));
        Comparison {
            base: base.measured.name.clone(),
            head: head.measured.name.clone(),
            doubts,
            devices,
            findings,
            same_findings,
        }
    }

    /// How many findings took a turn.
    pub fn turned(&self, turn: Fate) -> usize {
        self.findings.iter().filter(|change| change.turn == turn).count()
    }
}

/// The devices that belong together: of the same ordinal, or the only ones of both, whatever their ordinals (another rank).
fn shared_devices<'a>(
    base: &'a Measured,
    head: &'a Measured,
) -> impl Iterator<Item = (&'a MeasuredDevice, &'a MeasuredDevice)> {
    head.devices.iter().filter_map(move |device| Some((counterpart(device, head, base)?, device)))
}

/// The device of the other recording that belongs to one of this.
fn counterpart<'a>(
    device: &MeasuredDevice,
    this: &Measured,
    other: &'a Measured,
) -> Option<&'a MeasuredDevice> {
    match (this.devices.as_slice(), other.devices.as_slice()) {
        ([_], [only]) => Some(only),
        (_, several) => several.iter().find(|beside| beside.device == device.device),
    }
}

/// What keeps the two from being compared in full.
fn doubts(base: Side, head: Side) -> Vec<String> {
    let mut doubts = Vec::new();
    for (side, other, name) in [(base, head, "base"), (head, base, "head")] {
        for device in &side.measured.devices {
            if counterpart(device, side.measured, other.measured).is_none() {
                doubts.push(format!("device {} is in the {name} alone", device.device.position()));
            }
            if device.iterations == 0 {
                doubts.push(format!(
                    "no iterations were found on device {} of the {name}, so nothing is aligned",
                    device.device.position()
                ));
            }
        }
    }
    for (side, name) in [(base, "base"), (head, "head")] {
        let ended = side.report.recordings.iter().filter_map(|one| one.ended.as_ref());
        doubts.extend(ended.map(|ended| format!("what the {name} would have gone on to do: {ended}")));
    }
    for (side, other, name) in [(base, head, "base"), (head, base, "head")] {
        doubts.extend(
            unjudged(side.report, other.report)
                .into_iter()
                .map(|(reason, rules)| format!("{} could not look at the {name}: {reason}", some_of(&rules))),
        );
    }
    let unlike = |(one, other): (&MeasuredDevice, &MeasuredDevice)| {
        device::are_strangers(one, other).then(|| {
            format!(
                "no call site of device {} is the same in both: are they recordings of one program?",
                one.device.position()
            )
        })
    };
    doubts.extend(shared_devices(base.measured, head.measured).filter_map(unlike));
    doubts
}

/// Says that growth is not compared, where the longer recording alone would show it.
fn too_short_for_growth(device: &DeviceComparison) -> Option<String> {
    let (base, head) = device.iterations;
    let shows =
        base.min(head) > 0 && device::shows_growth(base.max(head)) && !device::shows_growth(device.aligned);
    shows.then(|| {
        format!(
            "growth is not compared on device {}: the base holds {} and the head {}",
            device.device.position(),
            count(base, "iteration"),
            count(head, "iteration")
        )
    })
}

/// The rules that could not look at one recording, and could at the other, by the reason.
fn unjudged<'a>(one: &'a Report, other: &Report) -> BTreeMap<&'static str, Vec<&'a str>> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped in &one.skipped {
        let looked = other.skipped.iter().all(|beside| beside.rule != skipped.rule);
        if let Some(hidden) = skipped.blind().filter(|_| looked) {
            by_reason.entry(hidden.reason()).or_default().push(&skipped.rule);
        }
    }
    for rules in by_reason.values_mut() {
        rules.dedup();
    }
    by_reason
}
