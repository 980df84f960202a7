//! Recordings that say the same, told once: of a thousand ranks a reader wants to know which are not like the others.
//!
//! In: the recordings of a report, or comparisons of ranks. Out: groups of them, each with one that stands for it. Always: every
//! device is in one group; ranks are grouped within their job and moment, and devices within their process; recordings of which
//! no job is known stand alone. Time is linear in the devices: a job is looked through once for each of a bounded number of groups.

use std::collections::BTreeMap;

use crate::engine::{RecordedDevice, Recording};
use crate::finding::Location;
use crate::unit::{Bytes, Index};

/// Groups that are told of one job at one moment; what is left is one more. Stages of a pipeline are rarely more (chosen), and
/// each takes two or three lines of a screen.
const MOST_GROUPS: usize = 8;
/// How far apart peaks, and what roles hold at them, may lie among devices that are alike, as a share of the larger peak:
/// batches of unlike length make ranks differ by some percent (see the rule `rank-imbalance`).
const ALIKE: f64 = 0.1;
/// Below this a difference is no matter, as for a baseline.
const NOTED: Bytes = Bytes::MIB;
/// Runs of ranks that a label names.
const MOST_RUNS: usize = 6;

/// One device of one recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) recording: &'a Recording,
    pub(super) device: &'a RecordedDevice,
}

/// What is alike, or the rest of much that is not.
#[derive(Debug)]
pub(super) struct AlikeGroup<T> {
    /// In the order in which they were given.
    pub(super) members: Vec<T>,
    /// The one in the middle by its peak.
    pub(super) middle: T,
    /// Whether they are not alike, and are only told together because there are so many.
    pub(super) rest: bool,
}

/// The devices of all recordings in groups, in the order of their first members.
pub(super) fn groups(recordings: &[Recording]) -> Vec<AlikeGroup<Member<'_>>> {
    let mut families: Vec<Vec<Member<'_>>> = Vec::new();
    let mut known: BTreeMap<(&str, &[u64], Option<usize>), usize> = BTreeMap::new();
    for recording in recordings {
        let several = recording.devices.len() > 1;
        let mut own = None;
        for device in &recording.devices {
            let place = match (recording.job.as_deref(), recording.rank) {
                (Some(job), Some(_)) => {
                    // Of ranks with several devices each the first are compared with the first.
                    let ordinal = several.then(|| device.device.position());
                    *known.entry((job, &recording.moment, ordinal)).or_insert(families.len())
                }
                _ => *own.get_or_insert(families.len()),
            };
            let member = Member { recording, device };
            match families.get_mut(place) {
                Some(family) => family.push(member),
                None => families.push(vec![member]),
            }
        }
    }
    let peak = |member: &Member| member.device.peak_requested;
    let alike = |one: &Member, other: &Member| are_alike(one.device, other.device);
    families.into_iter().flat_map(|family| split(family, peak, alike)).collect()
}

/// One family in groups, in the order of their first members: again and again the one in the middle of those that are left,
/// with all that are like it.
pub(super) fn split<T: Copy, P: Ord>(
    family: Vec<T>,
    peak: impl Fn(&T) -> P,
    are_alike: impl Fn(&T, &T) -> bool,
) -> Vec<AlikeGroup<T>> {
    let mut left: Vec<(usize, T)> = family.into_iter().enumerate().collect();
    left.sort_by_key(|(at, member)| (peak(member), *at));
    let mut groups: Vec<(usize, AlikeGroup<T>)> = Vec::new();
    while let Some(&(_, middle)) = left.get(left.len() / 2) {
        let rest = groups.len() == MOST_GROUPS;
        let (alike, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, member)| rest || are_alike(member, &middle));
        let mut alike = alike;
        alike.sort_by_key(|(at, _)| *at);
        let first = alike.first().map_or(0, |(at, _)| *at);
        let members: Vec<T> = alike.into_iter().map(|(_, member)| member).collect();
        let rest = rest && members.len() > 1;
        groups.push((first, AlikeGroup { members, middle, rest }));
        left = others;
    }
    groups.sort_by_key(|(first, _)| *first);
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Whether two devices did the same and needed about as much for the same: the peak alone may hide that one holds another's
/// share of something else.
fn are_alike(one: &RecordedDevice, other: &RecordedDevice) -> bool {
    // The hosts of a job may keep the program in different folders.
    let loop_of = |device: &RecordedDevice| {
        let found = device.main_loop.as_ref().map(|found| &found.location);
        found.map(|Location { line, function, .. }| (*line, function.clone()))
    };
    let does_the_same =
        (one.iterations, one.found_by, one.kind) == (other.iterations, other.found_by, other.kind);
    if !does_the_same || one.hidden != other.hidden || loop_of(one) != loop_of(other) {
        return false;
    }
    let peak = |device: &RecordedDevice| device.peak_requested.unwrap_or_default();
    let whole = peak(one).max(peak(other));
    let close = |one, other| are_close(one, other, whole);
    let holds = |device: &RecordedDevice, role| {
        let held = device.profile.peak_by_role.iter().filter(|(of, _)| *of == role);
        held.map(|(_, bytes)| *bytes).sum::<Bytes>()
    };
    let roles = one.profile.peak_by_role.iter().chain(&other.profile.peak_by_role).map(|(role, _)| *role);
    close(peak(one), peak(other)) && { roles }.all(|role| close(holds(one, role), holds(other, role)))
}

/// Whether two sizes differ by too little to tell devices apart whose larger peak is `whole`.
pub(super) fn are_close(one: Bytes, other: Bytes, whole: Bytes) -> bool {
    let apart = (one - other).max(other - one);
    apart <= NOTED || apart.share_of(whole) <= ALIKE
}

impl AlikeGroup<Member<'_>> {
    /// Whether all members are devices of one recording.
    pub(super) fn is_of_one_process(&self) -> bool {
        self.members.iter().all(|one| std::ptr::eq(one.recording, self.middle.recording))
    }

    /// Whether the devices are the last of their recordings: below them stands what holds for all of a recording.
    pub(super) fn has_last_devices(&self) -> bool {
        let is_last =
            |one: &Member| one.recording.devices.last().is_some_and(|last| std::ptr::eq(last, one.device));
        self.members.iter().any(is_last)
    }

    /// `ranks 0-6, 8-255 of out/rank*.pickle`, `devices 0-7`.
    pub(super) fn label(&self) -> String {
        let ordinals = || self.members.iter().map(|member| member.device.device.position() as u64);
        if self.is_of_one_process() {
            return format!("devices {}", runs(ordinals()));
        }
        let ranks = self.members.iter().filter_map(|member| member.recording.rank);
        let ordinal = self.middle.device.device.position();
        let several = self.middle.recording.devices.len() > 1;
        let device = if several { format!(", device {ordinal},") } else { String::new() };
        let Recording { job, moment, .. } = self.middle.recording;
        format!("{}{device} {}", ranks_of(ranks), place(job.as_deref(), moment))
    }

    /// `1.2 GiB (1.1 GiB to 1.3 GiB)`; nothing where peaks are not known.
    pub(super) fn peaks(&self) -> Option<String> {
        let peaks = self.members.iter().filter_map(|member| member.device.peak_requested);
        Some(with_range(self.middle.device.peak_requested?, peaks))
    }

    /// What members lack, each in words, with how many of them do where not all do; what most lack first.
    pub(super) fn common(&self, words: impl Fn(&Recording) -> Vec<String>) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for member in &self.members {
            for line in words(member.recording) {
                *counts.entry(line).or_default() += 1;
            }
        }
        let mut lines: Vec<(String, usize)> = counts.into_iter().collect();
        lines.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let all = self.members.len();
        let line = |(words, times): (String, usize)| match times {
            _ if times == all => words,
            _ => format!("{words} ({times} of {all})"),
        };
        lines.into_iter().map(line).collect()
    }
}

/// `1.2 GiB (1.1 GiB to 1.3 GiB)`: a size with the least and the most of several.
pub(super) fn with_range(middle: Bytes, all: impl Iterator<Item = Bytes> + Clone) -> String {
    let middle = middle.to_string();
    match (all.clone().min().map(|least| least.to_string()), all.max().map(|most| most.to_string())) {
        (Some(least), Some(most)) if least != most => format!("{middle} ({least} to {most})"),
        _ => middle,
    }
}

/// `ranks 0-6, 8-255`.
pub(super) fn ranks_of(ranks: impl Iterator<Item = u32>) -> String {
    format!("ranks {}", runs(ranks.map(u64::from)))
}

/// `of out/rank*.pickle at 10`: the job that ranks belong to, and the moment at which they are told.
pub(super) fn place(job: Option<&str>, moment: &[u64]) -> String {
    let moment: Vec<String> = moment.iter().map(u64::to_string).collect();
    let at = if moment.is_empty() { String::new() } else { format!(" at {}", moment.join(".")) };
    format!("of {}{at}", job.unwrap_or_default())
}

/// `0-6, 8, 10-255`: numbers as the runs that they make, a few of them.
fn runs(numbers: impl Iterator<Item = u64>) -> String {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let word = |(first, last): &(u64, u64)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let mut words: Vec<String> = runs.iter().take(MOST_RUNS).map(word).collect();
    let more: u64 = runs.iter().skip(MOST_RUNS).map(|(first, last)| last - first + 1).sum();
    words.extend((more > 0).then(|| format!("{more} more")));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;
    use crate::unit::DeviceIndex;

    fn recording(rank: u32, peak: u64, activations: u64) -> Recording {
        let mut device = RecordedDevice::of_ordinal(DeviceIndex::at(rank as usize % 8).unwrap());
        let mib = |number: u64| Bytes::MIB.times(number);
        (device.peak_requested, device.iterations) = (Some(mib(peak)), 30);
        device.profile.peak_by_role =
            vec![(Role::Activation, mib(activations)), (Role::Parameter, mib(peak - activations))];
        let (name, job) = (format!("out/rank{rank}.pickle"), Some("out/rank*.pickle".to_owned()));
        Recording { name, job, rank: Some(rank), devices: vec![device], ..Recording::default() }
    }

    fn told(recordings: &[Recording]) -> Vec<String> {
        let one = |group: &AlikeGroup<Member<'_>>| match group.members.as_slice() {
            [only] => only.recording.name.clone(),
            _ => format!("{}: {}", group.label(), group.peaks().unwrap()),
        };
        groups(recordings).iter().map(one).collect()
    }

    #[test]
    fn a_thousand_ranks_are_one_line_and_those_unlike_them_have_their_own() {
        let mut recordings: Vec<Recording> =
            (0..1000).map(|rank| recording(rank, 1000 + u64::from(rank % 50), 600)).collect();
        assert_eq!(
            told(&recordings),
            ["ranks 0-999 of out/rank*.pickle: 1 GiB (1000 MiB to 1 GiB)"],
            "peaks some percent apart"
        );
        recordings[7] = recording(7, 2000, 1600);
        recordings[9] = recording(9, 400, 100);
        recordings[11] = recording(11, 1020, 200);
        recordings[13].devices[0].iterations = 29;
        let told = told(&recordings);
        assert!(told[0].starts_with("ranks 0-6, 8, 10, 12, 14-999 of"), "{told:?}");
        let names = ["out/rank7.pickle", "out/rank9.pickle", "out/rank11.pickle", "out/rank13.pickle"];
        assert_eq!(told[1..], names, "more, less, another composition, an iteration less");
    }

    #[test]
    fn where_all_differ_a_few_groups_are_told_and_the_rest_together() {
        let recordings: Vec<Recording> = (0..100)
            .map(|rank| recording(rank, 100 * u64::from(rank + 1) * u64::from(rank + 1), 10))
            .collect();
        let groups = groups(&recordings);
        assert_eq!(groups.len(), MOST_GROUPS + 1);
        assert_eq!(groups.iter().filter(|group| group.rest).count(), 1);
        assert_eq!(groups.iter().map(|group| group.members.len()).sum::<usize>(), 100);
    }

    #[test]
    fn devices_of_a_process_are_grouped_and_programs_of_no_job_are_not() {
        let mut one = recording(0, 1000, 500);
        let second = recording(1, 1010, 500).devices.remove(0);
        let third = recording(2, 3000, 500).devices.remove(0);
        one.devices.extend([second, third]);
        (one.job, one.rank) = (None, None);
        let mut other = one.clone();
        other.devices.truncate(1);
        let recordings = [one, other];
        let groups = groups(&recordings);
        assert_eq!(groups.iter().map(|group| group.members.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(groups[0].label(), "devices 0-1");
        assert_eq!(runs([3, 1, 2, 9, 9].into_iter()), "1-3, 9");
        assert_eq!(runs((0..20).map(|number| number * 2)), "0, 2, 4, 6, 8, 10, 14 more");
    }
}
