//! The first line of every format that people read, where not all was judged, or a GPU was only modelled: that nothing was found would mean
//! little, or less.

use std::collections::BTreeSet;

use super::tally::Tally;
use super::words;
use crate::engine::{Outcome, Report};
use crate::finding::{Notice, Severity};
use crate::unit::count;

/// What stands before everything else.
pub(super) struct Headline {
    /// How bad it is: an error where there is no verdict.
    pub(super) severity: Severity,
    /// One line: lower-case start, no final stop.
    pub(super) text: String,
}

impl Headline {
    /// `12 of 25 rules could not judge: record 5 to 10 iterations; otherwise no findings`; nothing where all was judged.
    pub(super) fn of(report: &Report) -> Option<Headline> {
        let unread = unread(report);
        let unseen: Vec<String> =
            unread.iter().cloned().chain(unjudged(report)).chain(left_out(report)).collect();
        let judged = unseen.is_empty();
        let unseen: Vec<String> = unseen.into_iter().chain(modelled(report)).collect();
        if unseen.is_empty() {
            return None;
        }
        let unseen = unseen.join(", and ");
        let remedy = report.most_hidden().map(|hidden| format!(": {}", hidden.remedy())).unwrap_or_default();
        let tally = Tally::of(report);
        let text = if unread.is_some() || report.verdict.unjudged > 0 {
            format!("no verdict: {unseen}{remedy}")
        } else if judged || tally.errors + tally.warnings > 0 {
            format!("{}, but {unseen}{remedy}", tally.found())
        } else {
            // Whoever reads on from "no findings" would think that all is well.
            format!("{unseen}{remedy}; otherwise {}", tally.found())
        };
        let severity = match report.verdict.outcome() {
            Outcome::NoVerdict(_) => Severity::Error,
            Outcome::Open | Outcome::Closed if judged => Severity::Info,
            Outcome::Open | Outcome::Closed => Severity::Warning,
        };
        Some(Headline { severity, text })
    }
}

/// `1 of 8 files could not be read`.
fn unread(report: &Report) -> Option<String> {
    let (unread, read) = (report.unread.len(), report.recordings.len());
    (unread > 0).then(|| format!("{unread} of {} could not be read", count(unread + read, "file")))
}

/// `12 of 25 rules could not judge`.
fn unjudged(report: &Report) -> Option<String> {
    let (unjudged, recordings) = (report.verdict.unjudged, report.recordings.len());
    let blind = report.blind_rules().len();
    match (unjudged, blind) {
        (0, 0) => None,
        (0, _) => {
            let (rules, place) = (count(report.asked(), "rule"), words::blind_in(report));
            Some(format!("{blind} of {rules} could not judge{place}"))
        }
        _ if recordings == 1 => Some("no rule could judge the program".to_owned()),
        _ => Some(format!("no rule could judge {unjudged} of {}", count(recordings, "recording"))),
    }
}

/// `modelled without a GPU`: sizes of libraries' workspaces and the times of frees are estimates there.
fn modelled(report: &Report) -> Option<String> {
    let (modelled, all) =
        (report.recordings.iter().filter(|one| one.modelled.is_some()).count(), report.recordings.len());
    match modelled {
        0 => None,
        _ if modelled == all => Some("modelled without a GPU".to_owned()),
        _ => Some(format!("{modelled} of {} modelled without a GPU", count(all, "recording"))),
    }
}

/// `not all snapshots were looked at`, and what else was not seen.
fn left_out(report: &Report) -> impl Iterator<Item = String> {
    let unseen: BTreeSet<&str> = report.notices.iter().filter_map(Notice::unseen).collect();
    unseen.into_iter().map(str::to_owned)
}
