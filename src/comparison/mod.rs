//! Two recordings of one program compared: what needs more, what needs less, which findings came and went.
//!
//! In: two recordings, each measured, with what the rules say of it. Out: a [`Comparison`]. Iterations are aligned by their
//! number, up to the shorter recording, and the first is left out of what is called steady; call sites are followed
//! through moved lines and files. Always: a difference within what the iterations of either recording vary by is no change.

mod device;
mod doubt;
mod findings;
mod measured;
mod moves;
mod names;
mod regression;
mod sites;
mod spread;

pub use device::{DeviceComparison, PeakAt, RoleChange, SiteChange};
pub use doubt::Doubt;
pub use findings::{Fate, FindingChange};
pub use measured::Measured;
pub use moves::Moves;
pub use regression::{RegressionLimits, regressions};
pub use spread::{Direction, SizeChange};

use crate::engine::Report;
use crate::finding::Tolerance;
use measured::MeasuredDevice;

/// One of two recordings.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its memory.
    pub measured: &'a Measured,
    /// What the rules say of it.
    pub report: &'a Report,
}

impl Side<'_> {
    /// The iteration of its program with which the recording begins, counted from 1.
    fn first_iteration(self) -> usize {
        let own = self.report.recordings.iter().find(|one| one.name == self.measured.name);
        own.and_then(|one| one.excerpt.as_ref()).map_or(1, |excerpt| excerpt.first)
    }
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
    /// The iterations of their programs with which the base and the head begin, where these are not the same: slices of one run
    /// hold other iterations by the same number.
    pub shifted: Option<(usize, usize)>,
    /// What could not be compared.
    pub doubts: Vec<Doubt>,
}

impl Comparison {
    /// Compares two recordings.
    pub fn of(base: Side, head: Side) -> Comparison {
        let moves = Moves::of([base.measured], [head.measured]);
        let (findings, same_findings) =
            findings::changes(base.report, head.report, &moves, &Tolerance::default());
        let shared = shared_devices(base.measured, head.measured);
        let devices: Vec<DeviceComparison> =
            shared.map(|(one, other)| DeviceComparison::of(one, other)).collect();
        let begins = (base.first_iteration(), head.first_iteration());
        let shifted = (begins.0 != begins.1).then_some(begins);
        let mut doubts: Vec<Doubt> = shifted.map(doubt::shifted).into_iter().collect();
        doubts.extend(doubt::all(base, head));
        doubts.extend(devices.iter().filter_map(doubt::too_short_for_growth));
        Comparison {
            base: base.measured.name.clone(),
            head: head.measured.name.clone(),
            doubts,
            shifted,
            devices,
            findings,
            same_findings,
        }
    }

    /// The peak that rose most, or fell least, of all devices.
    pub fn highest_rise(&self) -> Option<SizeChange> {
        let rise = |peak: &SizeChange| i128::from(peak.head.get()) - i128::from(peak.base.get());
        self.devices.iter().map(|device| device.peak).max_by_key(rise)
    }

    /// Where one of the two goes on beyond the other. No doubt of the figures, which show it; but a verdict has to say that nothing is
    /// compared there.
    pub fn beyond(&self) -> impl Iterator<Item = Doubt> {
        self.devices.iter().filter_map(doubt::unequal)
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
