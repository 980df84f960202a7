//! The ranks of a job beside each other.
//!
//! In: all recordings. Out: what rules find between ranks that wrote their snapshots at the same moment, and which ranks
//! seem to be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use super::{Recording, Unread};
use crate::facts::Peer;
use crate::finding::{Finding, Matter, Notice, Severity};
use crate::rules::Rule;
use crate::unit::count;

/// Missing ranks that are listed.
const MOST_LISTED: usize = 8;

/// What some rules find between the ranks of each job at each moment.
pub(super) fn differences(recordings: &[&Recording], rules: &[&dyn Rule]) -> Vec<Finding> {
    let together = moments(recordings).into_values().filter(|ranks| ranks.len() >= 2);
    together
        .flat_map(|ranks| {
            let ranks: Vec<Peer> = ranks.into_values().collect();
            rules.iter().flat_map(|rule| rule.compare(&ranks)).collect::<Vec<_>>()
        })
        .collect()
}

/// The ranks of each job that have a snapshot of a moment.
fn ranks_at<'a>(recordings: &[&'a Recording]) -> BTreeMap<(&'a str, &'a [u64]), BTreeSet<u32>> {
    let mut ranks: BTreeMap<(&str, &[u64]), BTreeSet<u32>> = BTreeMap::new();
    for recording in recordings {
        if let (Some(job), Some(rank)) = (recording.job.as_deref(), recording.rank) {
            ranks.entry((job, &recording.moment)).or_default().insert(rank);
        }
    }
    ranks
}

/// The recordings that no other rank of their job can be compared with.
pub(super) fn alone(recordings: &[&Recording]) -> Vec<usize> {
    let ranks = ranks_at(recordings);
    let is_alone = |recording: &Recording| {
        let others = recording.job.as_deref().and_then(|job| ranks.get(&(job, recording.moment.as_slice())));
        recording.rank.is_none() || others.is_none_or(|all| all.len() < 2)
    };
    let inputs = recordings.iter().enumerate().filter(|(_, recording)| is_alone(recording));
    inputs.map(|(input, _)| input).collect()
}

/// The ranks of each job at each moment, each by the recording that needs most.
fn moments<'a>(recordings: &[&'a Recording]) -> BTreeMap<(&'a str, &'a [u64]), BTreeMap<u32, Peer>> {
    let mut moments: BTreeMap<(&str, &[u64]), BTreeMap<u32, Peer>> = BTreeMap::new();
    for (input, recording) in recordings.iter().enumerate() {
        let (Some(job), Some(rank)) = (recording.job.as_deref(), recording.rank) else { continue };
        let Some(peer) = peer(input, rank, recording) else { continue };
        let ranks = moments.entry((job, &recording.moment)).or_default();
        if ranks.get(&rank).is_none_or(|known| known.peak < peer.peak) {
            ranks.insert(rank, peer);
        }
    }
    moments
}

/// A recording by the device that needed most, as far as is known: the devices of one process may share its work as they
/// like.
fn peer(input: usize, rank: u32, recording: &Recording) -> Option<Peer> {
    let known = recording.devices.iter().filter_map(|device| Some((device, device.peak_requested?)));
    let (most, peak) = known.reduce(|most, one| if one.1 > most.1 { one } else { most })?;
    let lines = most.profile.lines_at_peak.iter();
    Some(Peer {
        input,
        rank,
        device: most.device,
        peak,
        roles: most.profile.peak_by_role.clone(),
        lines: lines.map(|line| (line.location.clone(), line.bytes)).collect(),
        resident: most.profile.iterations.iter().map(|iteration| iteration.resident).collect(),
    })
}

/// Says which ranks of each job have no snapshot although ranks before and after them have one, or although the job has so many: a
/// process that died, or a file that was not copied, passes no judgement. Where nobody says how many there are and more are missing than
/// there are, somebody chose a few. And which ranks a job of so many cannot have.
pub(super) fn unlike_the_job(
    recordings: &[&Recording],
    unread: &[Unread],
    expected: Option<NonZeroU32>,
) -> Vec<Notice> {
    let mut jobs: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    let read = recordings.iter().map(|one| (one.job.as_deref(), one.rank));
    let unread = unread.iter().map(|one| (one.job.as_deref(), one.rank));
    for origin in read.chain(unread) {
        if let (Some(job), Some(rank)) = origin {
            jobs.entry(job).or_default().insert(rank);
        }
    }
    let mut notices: Vec<Notice> = match expected {
        Some(expected) if jobs.is_empty() => {
            let ranks: Vec<u32> = (0..expected.get()).collect();
            vec![without_snapshot(&ranks, "that tells its rank by its name")]
        }
        Some(expected) => {
            let unlike = |(job, ranks): (&&str, &BTreeSet<u32>)| {
                [short_of(job, ranks, expected), beyond(job, ranks, expected)]
            };
            jobs.iter().flat_map(unlike).flatten().collect()
        }
        None => jobs.iter().filter_map(|(job, ranks)| missing(job, ranks)).collect(),
    };
    notices.extend(absent_at_moments(recordings, expected));
    notices
}

/// Says which ranks have no snapshot of a moment of which most have one: a file that was not copied passes no judgement either. Of a moment
/// that few have, as that of the one rank whose memory ran out, nobody expects the others, unless somebody says how many there are.
fn absent_at_moments(recordings: &[&Recording], expected: Option<NonZeroU32>) -> Vec<Notice> {
    let moments = ranks_at(recordings);
    let mut jobs: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for ((job, _), ranks) in &moments {
        jobs.entry(job).or_default().extend(ranks);
    }
    let notice = |((job, moment), ranks): (&(&str, &[u64]), &BTreeSet<u32>)| {
        let absent: Vec<u32> = jobs.get(job)?.difference(ranks).copied().collect();
        let is_missed = !absent.is_empty() && (expected.is_some() || absent.len() < ranks.len());
        let moment = moment.iter().map(u64::to_string).collect::<Vec<_>>().join("-");
        let held = count(ranks.len(), "rank");
        is_missed
            .then(|| without_snapshot(&absent, &format!("of {moment} in `{job}`, where {held} have one")))
    };
    moments.iter().filter_map(notice).collect()
}

/// The ranks that a job of so many lacks.
fn short_of(job: &str, ranks: &BTreeSet<u32>, expected: NonZeroU32) -> Option<Notice> {
    let absent: Vec<u32> = (0..expected.get()).filter(|rank| !ranks.contains(rank)).collect();
    let held = count(ranks.len(), "rank");
    (!absent.is_empty())
        .then(|| without_snapshot(&absent, &format!("in `{job}`, which holds {held} of {expected}")))
}

/// The ranks that a job of so many cannot have: snapshots of another run, which would be judged with this one's.
fn beyond(job: &str, ranks: &BTreeSet<u32>, expected: NonZeroU32) -> Option<Notice> {
    let beyond: Vec<u32> = ranks.range(expected.get()..).copied().collect();
    let (word, verb) = if beyond.len() == 1 { ("rank", "has") } else { ("ranks", "have") };
    (!beyond.is_empty()).then(|| Notice {
        kind: Matter::UnexpectedRank,
        severity: Severity::Warning,
        message: format!(
            "{word} {} {verb} a snapshot in `{job}`, which is said to have {}",
            listed(&beyond),
            count(expected.get() as usize, "rank")
        ),
        help: "move the snapshots of other runs away, or say how many ranks the job has".to_owned(),
        location: None,
    })
}

/// The ranks that are missing before or between others: jobs count from 0, but a folder may hold those of one machine.
fn missing(job: &str, ranks: &BTreeSet<u32>) -> Option<Notice> {
    let (first, last) = (*ranks.first()?, *ranks.last()?);
    let absent_from =
        |start: u32| -> Vec<u32> { (start..=last).filter(|rank| !ranks.contains(rank)).collect() };
    let few = |absent: &Vec<u32>| !absent.is_empty() && absent.len() < ranks.len();
    let absent = [0, first].into_iter().map(absent_from).find(few)?;
    let held = count(ranks.len(), "rank");
    Some(without_snapshot(&absent, &format!("in `{job}`, which holds {held} from {first} to {last}")))
}

/// Says that some ranks have no snapshot; `place` says where they would be looked for.
pub fn without_snapshot(ranks: &[u32], place: &str) -> Notice {
    let (word, verb) = if ranks.len() == 1 { ("rank", "has") } else { ("ranks", "have") };
    Notice {
        kind: Matter::MissingRank,
        severity: Severity::Warning,
        message: format!("{word} {} {verb} no snapshot {place}", listed(ranks)),
        help: "copy the snapshots of all ranks; see why a process wrote none".to_owned(),
        location: None,
    }
}

/// `1, 2, 3, 5 more`.
fn listed(ranks: &[u32]) -> String {
    let mut listed: Vec<String> = ranks.iter().take(MOST_LISTED).map(u32::to_string).collect();
    if ranks.len() > listed.len() {
        listed.push(format!("{} more", ranks.len() - listed.len()));
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recordings(ranks: &[u32]) -> Vec<Recording> {
        let job = Some("out/rank*.pickle".to_owned());
        ranks
            .iter()
            .map(|&rank| Recording { job: job.clone(), rank: Some(rank), ..Recording::default() })
            .collect()
    }

    fn notices(ranks: &[u32]) -> Vec<String> {
        let recordings = recordings(ranks);
        unlike_the_job(&recordings.iter().collect::<Vec<_>>(), &[], None)
            .into_iter()
            .map(|notice| notice.message)
            .collect()
    }

    #[test]
    fn gaps_are_said_and_choices_are_not() {
        assert_eq!(
            notices(&[0, 1, 3]),
            ["rank 2 has no snapshot in `out/rank*.pickle`, which holds 3 ranks from 0 to 3"]
        );
        assert_eq!(
            notices(&[1, 2, 3]),
            ["rank 0 has no snapshot in `out/rank*.pickle`, which holds 3 ranks from 1 to 3"]
        );
        assert!(notices(&[8, 11, 12, 13, 15])[0].starts_with("ranks 9, 10, 14 have no snapshot"));
        let odd: Vec<u32> = (0..=12).chain((13..40).step_by(2)).collect();
        assert!(notices(&odd)[0].starts_with("ranks 14, 16, 18, 20, 22, 24, 26, 28, 5 more have"));
        // One of three is missing at the second of two moments; the third moment is one rank's own.
        let at = |rank, moment: u64| Recording {
            job: Some("out".to_owned()),
            rank: Some(rank),
            moment: vec![moment],
            ..Recording::default()
        };
        let job = [at(0, 10), at(1, 10), at(2, 10), at(0, 20), at(2, 20), at(1, 25)];
        let said = unlike_the_job(&job.iter().collect::<Vec<_>>(), &[], None);
        let said: Vec<&str> = said.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(said, ["rank 1 has no snapshot of 20 in `out`, where 2 ranks have one"]);
        // Of two that are expected, one is missing at the second moment.
        let job = [at(0, 10), at(1, 10), at(0, 20)];
        let job: Vec<&Recording> = job.iter().collect();
        assert!(unlike_the_job(&job, &[], None).is_empty());
        assert_eq!(unlike_the_job(&job, &[], NonZeroU32::new(2)).len(), 1);
        let stale = recordings(&[0, 1, 2]);
        let said = unlike_the_job(&stale.iter().collect::<Vec<_>>(), &[], NonZeroU32::new(2));
        let said: Vec<&str> = said.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(said, ["rank 2 has a snapshot in `out/rank*.pickle`, which is said to have 2 ranks"]);
        for complete in [&[0, 1, 2][..], &[8, 9], &[3], &[0, 7], &[]] {
            assert_eq!(notices(complete), [""; 0], "{complete:?}");
        }
    }
}
