//! `memlint stats` of several recordings: a page each, but ranks that are alike are told as one, with the page of one of them.
//!
//! In: recordings with what a closer look finds, in order. Out: pages. Always: recordings of no job have a page each, and so have the ranks of
//! a job of which no two are alike.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::alike::{self, AlikeGroup, Member};
use super::look::{Ink, Look};
use super::{closing, stats};
use crate::engine::{Closer, Recording, Report};
use crate::source::SourceMap;
use crate::unit::{count, shown_name, shown_page};

/// Writes what is known of several recordings; `closer` is what a closer look at their devices finds, in their order.
pub fn render(
    recordings: Vec<Recording>,
    closer: &[Vec<Closer>],
    sources: &SourceMap,
    look: &Look,
) -> Vec<String> {
    // Groups are told as a check tells them; here it found nothing.
    let report = Report { recordings, ..Report::default() };
    let groups = alike::groups(&report.recordings);
    let merged: BTreeSet<&str> = groups
        .iter()
        .filter(|group| !group.is_of_one_process())
        .filter_map(|group| job(&group.middle))
        .collect();
    let page = |(at, recording): (usize, &Recording)| {
        let closer = closer.get(at).map(Vec::as_slice).unwrap_or_default();
        stats::render(recording, closer, &sources.seen_by([recording]), look)
    };
    let mut pages = Vec::new();
    let mut told = BTreeSet::new();
    for (at, recording) in report.recordings.iter().enumerate() {
        let Some(job) = recording.job.as_deref().filter(|job| merged.contains(job)) else {
            pages.push(page((at, recording)));
            continue;
        };
        if told.insert(job) {
            let own: Vec<&AlikeGroup<Member>> =
                groups.iter().filter(|group| self::job(&group.middle) == Some(job)).collect();
            let Some(largest) = largest(&own) else { continue };
            pages.push(summary(&report, &own, largest, sources, look));
            let is_shown = |(_, one): &(usize, &Recording)| std::ptr::eq(*one, largest.middle.recording);
            pages.extend(report.recordings.iter().enumerate().find(is_shown).map(page));
        }
    }
    pages
}

fn job<'a>(member: &Member<'a>) -> Option<&'a str> {
    member.recording.job.as_deref()
}

/// The group with most members, of equals that of the latest moment; those that are not alike have none in the middle.
fn largest<'a, 'b>(groups: &[&'b AlikeGroup<Member<'a>>]) -> Option<&'b AlikeGroup<Member<'a>>> {
    let alike = groups.iter().filter(|group| !group.rest);
    alike.max_by_key(|group| (group.members.len(), &group.middle.recording.moment)).copied()
}

/// A job in groups, and whose page follows.
fn summary(
    report: &Report,
    groups: &[&AlikeGroup<Member>],
    largest: &AlikeGroup<Member>,
    sources: &SourceMap,
    look: &Look,
) -> String {
    let mut out = String::new();
    let sources = sources.seen_by(groups.iter().map(|group| group.middle.recording));
    closing::grouped(&mut out, report, groups.iter().copied(), &sources, look);
    let (name, alike) = (shown_name(&largest.middle.recording.name), count(largest.members.len(), "rank"));
    let below = format!("below: {name}, in the middle of {alike} that are alike; -v shows each");
    let _ = writeln!(out, "{}", look.wrap(&look.paint(Ink::Faint, &below), 2));
    shown_page(&out, look.color)
}
