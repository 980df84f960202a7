//! Comparisons of many ranks: those that changed alike told as one, and the page of one of them.
//!
//! In: comparisons with the ranks of their heads, in order. Out: pages. Always: where no two ranks of a job changed alike, each
//! has a page, as recordings of no job have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::text;
use crate::comparison::{Comparison, DeviceComparison, Fate, FindingChange, SizeChange};
use crate::input::Origin;
use crate::report::alike::{AlikeGroup, are_close, place, ranks_of, split, with_range};
use crate::report::look::{Ink, Look};
use crate::unit::{Bytes, count, shown_line, shown_name, shown_page};

/// Findings that are named of a group.
const MOST_FINDINGS: usize = 3;

/// A comparison, and where its head belongs.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// The rank of the head, its job and its moment.
    pub origin: Origin,
    /// How it differs from its base.
    pub comparison: Comparison,
}

/// Writes comparisons for people.
pub(super) fn render(all: &[Ranked], look: &Look) -> Vec<String> {
    let mut families: BTreeMap<(&str, &[u64]), Vec<&Ranked>> = BTreeMap::new();
    for one in all {
        if let (Some(job), Some(_)) = (one.origin.job.as_deref(), one.origin.rank) {
            families.entry((job, &one.origin.moment)).or_default().push(one);
        }
    }
    let mut groups: BTreeMap<&str, Vec<AlikeGroup<&Ranked>>> = BTreeMap::new();
    for ((job, _), family) in families {
        groups.entry(job).or_default().extend(split(
            family,
            |one| peak(&one.comparison),
            |a, b| are_alike(&a.comparison, &b.comparison),
        ));
    }
    groups.retain(|_, groups| groups.iter().any(|group| group.members.len() > 1));
    let mut pages = Vec::new();
    let mut told = BTreeSet::new();
    for one in all {
        let job = one.origin.job.as_deref().unwrap_or_default();
        let Some(groups) = groups.get(job).filter(|_| one.origin.rank.is_some()) else {
            pages.push(text::render(&one.comparison, look));
            continue;
        };
        let alike = groups.iter().filter(|group| !group.rest);
        let largest = alike.max_by_key(|group| (group.members.len(), &group.middle.origin.moment));
        if let Some(largest) = largest.filter(|_| told.insert(job)) {
            pages.push(summary(groups, largest, look));
            pages.push(text::render(&largest.middle.comparison, look));
        }
    }
    pages
}

/// The highest bytes of the head.
fn peak(comparison: &Comparison) -> Bytes {
    comparison.devices.iter().map(|device| device.peak.head).max().unwrap_or_default()
}

/// Whether two ranks changed alike: the same came and went, and what they need and needed for it lies close together.
fn are_alike(one: &Comparison, other: &Comparison) -> bool {
    let findings = |comparison: &Comparison| -> Vec<_> {
        let line = |change: &FindingChange| {
            change.finding.location.as_ref().map(|at| (at.line, at.function.clone()))
        };
        let mut all: Vec<_> = comparison
            .findings
            .iter()
            .map(|change| (change.turn, change.finding.rule.clone(), line(change)))
            .collect();
        all.sort();
        all
    };
    let devices = one.devices.len() == other.devices.len();
    let same_words = devices && one.doubts == other.doubts && findings(one) == findings(other);
    same_words && one.devices.iter().zip(&other.devices).all(|(one, other)| devices_are_alike(one, other))
}

fn devices_are_alike(one: &DeviceComparison, other: &DeviceComparison) -> bool {
    let whole =
        [one, other].iter().map(|device| device.peak.base.max(device.peak.head)).max().unwrap_or_default();
    let close = |one: &SizeChange, other: &SizeChange| {
        one.direction() == other.direction()
            && are_close(one.base, other.base, whole)
            && are_close(one.head, other.head, whole)
    };
    let growth = match (&one.growth, &other.growth) {
        (Some(one), Some(other)) => close(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    let held = |device: &DeviceComparison, role| {
        let change = device.roles.iter().find(|change| change.role == role);
        change.map_or((Bytes::ZERO, Bytes::ZERO), |change| (change.bytes.base, change.bytes.head))
    };
    let roles_are_close = || {
        one.roles.iter().chain(&other.roles).all(|change| {
            let ((base, head), (other_base, other_head)) = (held(one, change.role), held(other, change.role));
            are_close(base, other_base, whole) && are_close(head, other_head, whole)
        })
    };
    let ran = |device: &DeviceComparison| (device.iterations, device.aligned);
    ran(one) == ran(other) && growth && close(&one.peak, &other.peak) && roles_are_close()
}

/// A job in groups, and whose page follows.
fn summary(groups: &[AlikeGroup<&Ranked>], largest: &AlikeGroup<&Ranked>, look: &Look) -> String {
    let mut out = String::new();
    for group in groups {
        let Ranked { origin, comparison } = group.middle;
        let name = match group.members.as_slice() {
            [_] => comparison.head.clone(),
            members => {
                let ranks = ranks_of(members.iter().filter_map(|one| one.origin.rank));
                format!("{ranks} {}", place(origin.job.as_deref(), &origin.moment))
            }
        };
        let line = if group.rest {
            format!("no two alike, {}; -v shows each", peaks(group))
        } else {
            verdict(group)
        };
        let line = format!("{}: {line}", look.paint(Ink::Strong, &shown_name(&name)));
        let _ = writeln!(out, "{}", look.wrap(&line, 2));
        // The page below tells those of the largest.
        if !group.rest && !std::ptr::eq(group, largest) {
            findings(&mut out, comparison, look);
        }
    }
    let (name, alike) = (shown_name(&largest.middle.comparison.head), count(largest.members.len(), "rank"));
    let below = format!("below: {name}, in the middle of {alike} that changed alike; -v shows each");
    let _ = writeln!(out, "{}", look.wrap(&look.paint(Ink::Faint, &below), 2));
    shown_page(&out, look.color)
}

/// The answer for a group: that of the one in the middle, with the least and the most where they differ.
fn verdict(group: &AlikeGroup<&Ranked>) -> String {
    let text = text::verdict(&group.middle.comparison);
    let heads = group.members.iter().map(|one| peak(&one.comparison));
    let (least, most) = (heads.clone().min(), heads.max());
    match least.zip(most).map(|(least, most)| (least.to_string(), most.to_string())) {
        Some((least, most)) if least != most => format!("{text}; peaks {least} to {most}"),
        _ => text,
    }
}

fn peaks(group: &AlikeGroup<&Ranked>) -> String {
    let of = |side: fn(&SizeChange) -> Bytes| {
        let peaks = |one: &&Ranked| one.comparison.devices.iter().map(|device| side(&device.peak)).max();
        let middle = peaks(&group.middle).unwrap_or_default();
        with_range(middle, group.members.iter().filter_map(peaks))
    };
    format!("peak {} -> {}", of(|change| change.base), of(|change| change.head))
}

/// What is new or worse, and on which line.
fn findings(out: &mut String, comparison: &Comparison, look: &Look) {
    let worse = || comparison.findings.iter().filter(|one| matches!(one.turn, Fate::New | Fate::Worse));
    for FindingChange { turn, finding, .. } in worse().take(MOST_FINDINGS) {
        let line = format!(
            "  {} {} [{}] at {}",
            look.paint(Ink::Severity(finding.severity), &format!("{}:", turn.name())),
            shown_line(&finding.message),
            shown_line(&finding.rule),
            shown_name(&finding.whereabouts())
        );
        let _ = writeln!(out, "{}", look.wrap(&line, 4));
    }
    let more = worse().count().saturating_sub(MOST_FINDINGS);
    if more > 0 {
        let _ = writeln!(out, "  {} that are new or worse", count(more, "more finding"));
    }
}
