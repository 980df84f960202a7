//! What was found in a whole recording, in the report of a slice of it; and the other way round, for whoever slices.
//!
//! In: the mark of a slice, and what was found in the slice itself. Out: findings of the whole that the slice alone does
//! not show, or shows at a lower level, each marked as inherited. Always: nothing is taken away and no level is lowered,
//! so that a forged mark hides nothing, and what it adds is at the level that it had: a gate closes for a part as it does
//! for the whole.

use super::{Input, Plan, Report};
use crate::finding::{Excuse, Finding, Location, Measure, Quantity, Severity, StackFrame};
use crate::rules;
use crate::snapshot::{DEEPEST_INHERITED, Excerpt, Inherited, InheritedPlace, MOST_INHERITED};
use crate::unit::{Confidence, DeviceIndex, Index};

/// Adds to what was found in an input what the mark of its snapshot says of the whole: findings of the rules of a plan at
/// lines at which these found nothing, and the higher level of those that weigh less in the part.
pub(super) fn add(input: &Input, found: &mut Vec<Finding>, plan: &Plan) {
    let Some(excerpt) = &input.snapshot.excerpt else { return };
    let is_planned = |one: &Finding| plan.names().any(|rule| rule == one.rule);
    for one in excerpt.findings.iter().filter_map(|one| finding(one, excerpt)).filter(is_planned) {
        let alike = found.iter_mut().filter(|other| is_same(other, &one));
        match alike.max_by_key(|other| other.severity) {
            None => found.push(one),
            Some(seen) if seen.severity < one.severity => {
                seen.severity = one.severity;
                seen.evidence.extend(one.evidence);
            }
            Some(_) => {}
        }
    }
}

fn is_same(one: &Finding, other: &Finding) -> bool {
    let line = |one: &Finding| one.location.as_ref().map(|place| (place.file.clone(), place.line));
    one.rule == other.rule && one.device == other.device && line(one) == line(other)
}

/// What a report says of a recording, for the mark of a slice of it.
pub fn inherited(report: &Report) -> Vec<Inherited> {
    let known = report.findings.iter().filter(|one| rules::named(&one.rule).is_some());
    let one = |finding: &Finding| Inherited {
        rule: finding.rule.to_string(),
        severity: finding.severity.name().to_owned(),
        confidence: finding.confidence.name().to_owned(),
        device: finding.device.and_then(|device| u32::try_from(device.position()).ok()),
        place: finding.location.as_ref().map(carried),
        stack: finding
            .stack
            .iter()
            .filter(|frame| frame.user)
            .take(DEEPEST_INHERITED)
            .map(|frame| carried(&frame.location))
            .collect(),
        zeroes_in_place: finding.excuse == Some(Excuse::ZeroesInPlace),
    };
    known.take(MOST_INHERITED).map(one).collect()
}

fn carried(location: &Location) -> InheritedPlace {
    let Location { file, line, function } = location.clone();
    InheritedPlace { file, line, function }
}

fn location(place: &InheritedPlace) -> Location {
    let InheritedPlace { file, line, function } = place.clone();
    Location { file, line, function }
}

/// A finding of the whole; `None` where there is no such rule, level or device.
fn finding(one: &Inherited, excerpt: &Excerpt) -> Option<Finding> {
    let meta = rules::named(&one.rule)?.meta();
    let levels = [Severity::Info, Severity::Warning, Severity::Error];
    let severity = levels.into_iter().find(|level| level.name() == one.severity)?;
    let confidence = Confidence::ALL.into_iter().find(|level| level.name() == one.confidence)?;
    let device = match one.device {
        Some(device) => Some(DeviceIndex::at(usize::try_from(device).ok()?)?),
        None => None,
    };
    let location = one.place.as_ref().map(location);
    let stack = one.stack.iter().map(|place| StackFrame { location: self::location(place), user: true });
    Some(Finding {
        confidence,
        message: format!("inherited, not seen here: {}", meta.summary),
        help: format!(
            "look at the whole recording: `memlint check`; `memlint explain {}` says what to do",
            meta.name
        ),
        label: "found in the whole recording".to_owned(),
        device,
        location,
        stack: stack.collect(),
        excuse: one.zeroes_in_place.then_some(Excuse::ZeroesInPlace),
        evidence: vec![Measure {
            name: "inherited".into(),
            value: Quantity::Text(excerpt.to_string()),
            text: format!("found at this level in the whole recording, of which this is a slice: {excerpt}"),
        }],
        ..Finding::of(meta.name, meta.group, severity)
    })
}
