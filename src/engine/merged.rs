//! What several recordings of a job show becomes one finding.
//!
//! In: the findings of all inputs. Out: the worst of those that are the same, the others listed in it. Two findings are
//! the same if their rule, fingerprint and line are, and their recordings belong to one job: its ranks, their devices, and what
//! they wrote at different moments. Always: what one device of one recording shows twice stays two findings, and recordings
//! of different jobs, or of none, have nothing in common, however alike their files are named.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Recording;
use crate::finding::{Finding, Fingerprint, Sighting};
use crate::unit::DeviceIndex;

/// Where recordings belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum MergeScope<'a> {
    Job(&'a str),
    Input(usize),
}

/// What makes findings the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Same<'a> {
    scope: MergeScope<'a>,
    rule: String,
    fingerprint: Fingerprint,
    /// A fingerprint leaves lines out, so that edits do not matter; the processes of a job run the same edit.
    line: Option<u32>,
    /// The how many-th of its device.
    turn: usize,
}

/// Merges the findings that are the same.
pub(super) fn merge(findings: Vec<Finding>, recordings: &[Recording]) -> Vec<Finding> {
    let mut turns: BTreeMap<(usize, Option<DeviceIndex>, Same<'_>), usize> = BTreeMap::new();
    let mut groups: BTreeMap<Same<'_>, Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        let job = recordings.get(finding.input).and_then(|recording| recording.job.as_deref());
        let mut same = Same {
            scope: job.map_or(MergeScope::Input(finding.input), MergeScope::Job),
            rule: finding.rule.to_string(),
            fingerprint: finding.fingerprint,
            line: finding.location.as_ref().map(|location| location.line),
            turn: 0,
        };
        let turn = turns.entry((finding.input, finding.device, same.clone())).or_insert(0);
        same.turn = *turn;
        *turn += 1;
        groups.entry(same).or_default().push(finding);
    }
    groups.into_values().filter_map(|group| one(group, recordings)).collect()
}

/// The worst of some findings that are the same: by severity, then by what mending saves, then the newest, of the lowest
/// rank and device.
fn one(mut group: Vec<Finding>, recordings: &[Recording]) -> Option<Finding> {
    let origin = |input: usize| recordings.get(input).map(|one| (Reverse(&one.moment), one.rank));
    let saves = |finding: &Finding| {
        (finding.impact.off_a_peak(), finding.impact.resident, finding.impact.per_iteration)
    };
    group.sort_by(|a, b| {
        (b.severity, saves(b))
            .cmp(&(a.severity, saves(a)))
            .then_with(|| (origin(a.input), a.input, a.device).cmp(&(origin(b.input), b.input, b.device)))
    });
    let mut all = group.into_iter();
    let mut worst = all.next()?;
    worst.also.extend(all.map(|Finding { input, device, impact, .. }| Sighting { input, device, impact }));
    let rank = |input: usize| recordings.get(input).map(|one| (one.rank, &one.moment));
    worst.also.sort_by_key(|sighting| (rank(sighting.input), sighting.input, sighting.device));
    Some(worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Group, Impact, Location, Severity};
    use crate::unit::{Bytes, Index};

    fn recording(job: Option<&str>, rank: u32, moment: u64) -> Recording {
        let job = job.map(str::to_owned);
        Recording { job, rank: Some(rank), moment: vec![moment], ..Recording::default() }
    }

    fn finding(input: usize, line: u32, peak: u64) -> Finding {
        Finding {
            input,
            device: DeviceIndex::at(0),
            location: Some(Location { file: "train.py".to_owned(), line, function: "main".to_owned() }),
            impact: Impact { peak: Some(Bytes(peak)), ..Impact::default() },
            ..Finding::of("growing-residency", Group::Leak, Severity::Warning)
        }
    }

    /// Input, line and the inputs of the others, for each finding.
    fn shown(merged: &[Finding]) -> Vec<(usize, u32, Vec<usize>)> {
        let line = |finding: &Finding| finding.location.as_ref().map_or(0, |location| location.line);
        let also = |finding: &Finding| finding.also.iter().map(|one| one.input).collect();
        merged.iter().map(|finding| (finding.input, line(finding), also(finding))).collect()
    }

    #[test]
    fn ranks_and_moments_of_a_job_show_one_finding_and_the_worst_is_kept() {
        let job = Some("out/rank*");
        let recordings =
            [recording(job, 0, 10), recording(job, 1, 10), recording(job, 0, 20), recording(job, 1, 20)];
        let found = vec![finding(0, 7, 5), finding(1, 7, 9), finding(2, 7, 9), finding(3, 7, 9)];
        assert_eq!(
            shown(&merge(found.clone(), &recordings)),
            [(2, 7, vec![0, 1, 3])],
            "the newest of equals"
        );
        let backwards = found.into_iter().rev().collect();
        assert_eq!(shown(&merge(backwards, &recordings)), [(2, 7, vec![0, 1, 3])]);
        let mut severe = vec![finding(0, 7, 1), finding(1, 7, 9)];
        severe[0].severity = Severity::Error;
        assert_eq!(shown(&merge(severe, &recordings)), [(0, 7, vec![1])], "severity before impact");
    }

    #[test]
    fn what_one_recording_shows_twice_stays_two() {
        let job = Some("out/rank*");
        let recordings = [recording(job, 0, 0), recording(job, 1, 0)];
        let found =
            vec![finding(0, 7, 1), finding(0, 7, 2), finding(0, 8, 3), finding(1, 7, 4), finding(1, 9, 5)];
        let merged = merge(found, &recordings);
        assert_eq!(shown(&merged), [(1, 7, vec![0]), (0, 7, vec![]), (0, 8, vec![]), (1, 9, vec![])]);
    }

    #[test]
    fn other_jobs_are_other_programs_and_devices_of_a_file_are_one() {
        let recordings = [recording(Some("a/*"), 0, 0), recording(Some("b/*"), 1, 0), recording(None, 2, 0)];
        let on_second = Finding { device: DeviceIndex::at(1), ..finding(2, 7, 9) };
        let found = vec![finding(0, 7, 1), finding(1, 7, 1), finding(2, 7, 1), on_second];
        let merged = merge(found, &recordings);
        assert_eq!(shown(&merged), [(0, 7, vec![]), (1, 7, vec![]), (2, 7, vec![2])]);
        assert_eq!((merged[2].device, merged[2].also[0].device), (DeviceIndex::at(1), DeviceIndex::at(0)));
    }
}
