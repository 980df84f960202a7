//! In how many places of a job a finding was made, in words.

use std::collections::BTreeSet;

use crate::engine::{Recording, Report};
use crate::finding::{Finding, Impact};
use crate::unit::{Bytes, Index};

/// What is counted, and how many of them show the finding: `ranks` and `8 of 8, worst on rank 3; saves 1.1 GiB to 2.5 GiB of the peak`.
/// `None` where there is but one place.
pub(super) fn describe(report: &Report, finding: &Finding) -> Option<(&'static str, String)> {
    let (what, counted) = of_ranks(report, finding)
        .or_else(|| of_snapshots(report, finding))
        .or_else(|| of_devices(report, finding))?;
    let spread = spread(finding).map(|spread| format!("; {spread}")).unwrap_or_default();
    Some((what, counted + &spread))
}

/// The inputs that show the finding.
fn inputs(finding: &Finding) -> BTreeSet<usize> {
    finding.also.iter().map(|sighting| sighting.input).chain([finding.input]).collect()
}

fn of_ranks(report: &Report, finding: &Finding) -> Option<(&'static str, String)> {
    let own = report.recording(finding)?.rank?;
    let all: BTreeSet<u32> = report.job(finding).filter_map(|recording| recording.rank).collect();
    let seen = inputs(finding).into_iter().filter_map(|input| report.recordings.get(input)?.rank);
    let seen = seen.collect::<BTreeSet<u32>>().len();
    (all.len() > 1).then(|| ("ranks", counted(finding, seen, all.len(), &format!("rank {own}"))))
}

fn of_snapshots(report: &Report, finding: &Finding) -> Option<(&'static str, String)> {
    let all = report.job(finding).count();
    let seen = inputs(finding).len();
    // The name of the worst is shown anyway, where there are several.
    (all > 1).then(|| ("snapshots", format!("{seen} of {all}")))
}

fn of_devices(report: &Report, finding: &Finding) -> Option<(&'static str, String)> {
    let all = report.recording(finding).map(|recording: &Recording| recording.devices.len())?;
    let seen: BTreeSet<_> = finding.also.iter().map(|one| one.device).chain([finding.device]).collect();
    let own = format!("device {}", finding.device?.position());
    (!finding.also.is_empty()).then(|| ("devices", counted(finding, seen.len(), all, &own)))
}

fn counted(finding: &Finding, seen: usize, all: usize, own: &str) -> String {
    let alike = finding.also.iter().all(|one| one.impact == finding.impact);
    match (seen, alike) {
        (1, _) => format!("1 of {all}: {own}"),
        (_, true) => format!("{seen} of {all} alike, shown for {own}"),
        (_, false) => format!("{seen} of {all}, worst on {own}"),
    }
}

/// From the least to the most that mending saves, where the places differ.
fn spread(finding: &Finding) -> Option<String> {
    let between = |of: fn(&Impact) -> Option<Bytes>| {
        let impacts = finding.also.iter().map(|one| &one.impact).chain([&finding.impact]);
        let saved: Vec<Bytes> = impacts.map(|impact| of(impact).unwrap_or_default()).collect();
        let (least, most) = (saved.iter().min()?, saved.iter().max()?);
        (least.to_string() != most.to_string()).then(|| format!("{least} to {most}"))
    };
    between(|impact| impact.peak)
        .map(|span| format!("saves {span} of the peak"))
        .or_else(|| between(|impact| impact.reserved).map(|span| format!("saves {span} of what is reserved")))
        .or_else(|| between(|impact| impact.resident).map(|span| format!("saves {span} between iterations")))
}
