//! A recording as the page shows it: its devices in words and figures, each with its picture.

use std::collections::BTreeSet;

use serde::Serialize;

use super::chosen;
use super::picture::Drawn;
use crate::engine::{RecordedDevice, Recording, Report};
use crate::report::{Detail, closing, gap};
use crate::source::SourceMap;
use crate::unit::{Bytes, Index, shown_line, shown_name};

/// A snapshot.
#[derive(Serialize)]
pub(super) struct Recorded {
    name: String,
    rank: Option<u32>,
    gaps: Vec<String>,
    devices: Vec<Shown>,
}

/// A device.
#[derive(Serialize)]
struct Shown {
    device: usize,
    /// How the iterations were found, and the peak.
    summary: String,
    /// What the peak consists of.
    composition: String,
    /// What kind of recording it is, where that hides something.
    kind: Option<&'static str>,
    events: usize,
    allocations: usize,
    iterations: usize,
    peak_requested: Option<u64>,
    peak_allocated: Option<u64>,
    peak_reserved: Option<u64>,
    /// Nothing where the recording does not show levels, or is not drawn in full.
    picture: Option<Drawn>,
    /// The curve of one that is not drawn in full, in parts of a thousand of its peak.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    curve: Vec<u128>,
}

impl Recorded {
    /// Some recordings, in their order: those of a report, or of its base. `in_full` are drawn.
    pub(super) fn all(
        report: &Report,
        recordings: &[Recording],
        in_full: &BTreeSet<usize>,
        sources: &SourceMap,
    ) -> Vec<Recorded> {
        let of = |(input, one): (usize, &Recording)| Recorded {
            name: shown_name(&one.name),
            rank: one.rank,
            gaps: gap::all(one, Detail::Normal).into_iter().map(|(_, what)| shown_line(&what)).collect(),
            devices: one
                .devices
                .iter()
                .map(|device| Shown::of(report, (input, one), device, in_full.contains(&input), sources))
                .collect(),
        };
        recordings.iter().enumerate().map(of).collect()
    }
}

impl Shown {
    fn of(
        report: &Report,
        (input, recording): (usize, &Recording),
        device: &RecordedDevice,
        in_full: bool,
        sources: &SourceMap,
    ) -> Shown {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        let picture = recording.picture(device.device).filter(|_| in_full);
        Shown {
            device: device.device.position(),
            summary: shown_line(&closing::iterations(recording, device, sources)),
            composition: closing::composition(device),
            kind: device.kind.hides().then(|| device.kind.words()),
            events: device.events,
            allocations: device.allocations,
            iterations: device.iterations,
            peak_requested: bytes(device.peak_requested),
            peak_allocated: bytes(device.peak_allocated),
            peak_reserved: bytes(device.peak_reserved),
            curve: if in_full { Vec::new() } else { chosen::curve(&device.profile.curve) },
            picture: picture.map(|picture| Drawn::of(picture, (report, input, device.device), sources)),
        }
    }
}
