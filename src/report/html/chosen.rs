//! Which recordings of many a page draws in full: those that findings are about, those unlike the others, and one of each group of
//! ranks that are alike. The others are a line with a curve: of a thousand ranks nobody looks at each, and a browser takes minutes for
//! as many pictures.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::engine::{Recording, Report};
use crate::report::alike::{self, AlikeGroup, Member};
use crate::unit::{Bytes, shown_name};

/// The most recordings that are drawn in full (chosen): with a floor of some thousand lifetimes each the page stays below some
/// megabytes, and a browser shows it within a second.
pub(super) const MOST: usize = 24;
/// Columns of the curve of a line: more pixels it has hardly.
const COLUMNS: usize = 80;
/// What the highest level of a curve counts.
const WHOLE: u128 = 1000;

/// Recordings that are alike, as the page tells them.
#[derive(Serialize)]
pub(super) struct Alike {
    /// `ranks 0-6, 8-999 of out/rank*.pickle`, or the name of the only one.
    label: String,
    /// The peak of the one in the middle, with the least and the most.
    peaks: Option<String>,
    /// Whether they are not alike, and only told together because there are so many.
    rest: bool,
    /// Positions of recordings, and of devices in them, that are not drawn in full.
    members: Vec<(usize, usize)>,
}

/// Whether a page draws only some of so many recordings in full.
pub fn chooses(recordings: usize) -> bool {
    recordings > MOST
}

/// The positions of the recordings of a report that a page draws in full; all of a few.
pub fn in_full(report: &Report) -> BTreeSet<usize> {
    let Report { recordings, .. } = report;
    if !chooses(recordings.len()) {
        return (0..recordings.len()).collect();
    }
    let positions = positions(recordings);
    let at = |one: &Recording| positions.get(&std::ptr::from_ref(one)).copied();
    let mut groups = alike::groups(recordings);
    let peak = |group: &AlikeGroup<Member>| group.middle.device.peak_requested.unwrap_or_default();
    let mut peaks: Vec<Bytes> =
        recordings.iter().flat_map(|one| &one.devices).filter_map(|one| one.peak_requested).collect();
    peaks.sort_unstable();
    let middle = peaks.get(peaks.len() / 2).copied().unwrap_or_default();
    // First the one that stands for most, then those unlike it, farthest first.
    let largest = groups.iter().map(|group| group.members.len()).max().unwrap_or_default();
    groups.sort_by_key(|group| {
        let apart = (peak(group) - middle).max(middle - peak(group));
        std::cmp::Reverse((group.members.len() == largest, apart))
    });
    let mut chosen = BTreeSet::new();
    for finding in report.open() {
        if chosen.len() < MOST / 2 && finding.input < recordings.len() {
            chosen.insert(finding.input);
        }
    }
    for position in groups.iter().filter_map(|group| at(group.middle.recording)) {
        if chosen.len() < MOST {
            chosen.insert(position);
        }
    }
    chosen
}

/// The recordings in groups, where not all are drawn in full.
pub(super) fn groups(recordings: &[Recording], in_full: &BTreeSet<usize>) -> Vec<Alike> {
    if !chooses(recordings.len()) {
        return Vec::new();
    }
    let positions = positions(recordings);
    let place = |one: &Member| {
        let position = *positions.get(&std::ptr::from_ref(one.recording))?;
        let device = one.recording.devices.iter().position(|device| std::ptr::eq(device, one.device))?;
        (!in_full.contains(&position)).then_some((position, device))
    };
    let groups = alike::groups(recordings);
    let one = |group: &AlikeGroup<Member>| Alike {
        label: match group.members.as_slice() {
            [only] => shown_name(&only.recording.name),
            _ => shown_name(&group.label()),
        },
        peaks: group.peaks(),
        rest: group.rest,
        members: group.members.iter().filter_map(place).collect(),
    };
    groups.iter().map(one).filter(|group| !group.members.is_empty()).collect()
}

fn positions(recordings: &[Recording]) -> BTreeMap<*const Recording, usize> {
    recordings.iter().enumerate().map(|(at, one)| (std::ptr::from_ref(one), at)).collect()
}

/// The highest levels of a recording over its events, as parts of a thousand of the highest of all.
pub(super) fn curve(levels: &[Bytes]) -> Vec<u128> {
    let highest = u128::from(levels.iter().copied().max().unwrap_or_default().get()).max(1);
    let columns = COLUMNS.min(levels.len());
    let column = |at: usize| {
        let part =
            levels.get(at * levels.len() / columns..(at + 1) * levels.len() / columns).unwrap_or_default();
        let most = part.iter().copied().max().unwrap_or_default();
        u128::from(most.get()) * WHOLE / highest
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RecordedDevice;
    use crate::finding::{Finding, Group as Of, Severity};
    use crate::unit::{DeviceIndex, Index};

    fn recording(rank: u32, peak: u64) -> Recording {
        let mut device = RecordedDevice::of_ordinal(DeviceIndex::at(0).unwrap());
        device.peak_requested = Some(Bytes::MIB.times(peak));
        let (name, job) = (format!("out/rank{rank}.pickle"), Some("out/rank*.pickle".to_owned()));
        Recording { name, job, rank: Some(rank), devices: vec![device], ..Recording::default() }
    }

    #[test]
    fn outliers_one_of_each_group_and_what_findings_are_about_are_drawn() {
        let mut recordings: Vec<Recording> = (0..1000).map(|rank| recording(rank, 1000)).collect();
        recordings[7] = recording(7, 3000);
        recordings[900] = recording(900, 100);
        let finding = |input| Finding { input, ..Finding::of("rule", Of::Leak, Severity::Error) };
        let report = Report { recordings, findings: vec![finding(33), finding(4000)], ..Report::default() };
        let chosen = in_full(&report);
        assert!([7, 33, 900].iter().all(|one| chosen.contains(one)), "{chosen:?}");
        assert_eq!(chosen.len(), 4, "and the one in the middle of the others: {chosen:?}");
        let groups = groups(&report.recordings, &chosen);
        assert_eq!(groups.iter().map(|group| group.members.len()).collect::<Vec<_>>(), [996]);
        assert!(groups[0].label.starts_with("ranks 0-6, 8-899, 901-999 of"), "{}", groups[0].label);
    }

    #[test]
    fn a_few_are_all_drawn_and_of_many_that_differ_no_more_than_there_is_room_for() {
        let of = |number: u32| {
            let one =
                |rank| Recording { job: None, rank: None, ..recording(rank, u64::from(rank + 1) * 100) };
            let recordings: Vec<Recording> = (0..number).map(one).collect();
            Report { recordings, ..Report::default() }
        };
        assert_eq!(in_full(&of(24)).len(), 24);
        assert!(groups(&of(24).recordings, &in_full(&of(24))).is_empty());
        let many = of(500);
        let chosen = in_full(&many);
        assert_eq!(chosen.len(), MOST);
        assert!(chosen.contains(&0) && chosen.contains(&499), "the farthest: {chosen:?}");
    }

    #[test]
    fn a_curve_keeps_its_highest_column() {
        let mut levels = vec![Bytes(1); 240];
        levels[100] = Bytes(2000);
        let curve = curve(&levels);
        assert_eq!((curve.len(), curve.iter().max(), curve[100 / 3]), (COLUMNS, Some(&1000), 1000));
        assert!(super::curve(&[]).is_empty());
    }
}
