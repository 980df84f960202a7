//! A finding as a card of the page.

use serde::Serialize;

use crate::engine::Report;
use crate::finding::{Finding, Location};
use crate::report::place::SourceLine;
use crate::report::{page, words};
use crate::rules;
use crate::source::SourceMap;
use crate::unit::{Bytes, Index, shown_line, shown_source};

/// Lines that are shown around the one that a finding points at.
const AROUND: u32 = 2;
/// Characters of a line of source that are shown.
const WIDEST: usize = 400;

/// A finding.
#[derive(Serialize)]
pub(super) struct Card {
    rule: String,
    group: &'static str,
    severity: &'static str,
    /// `error`, or `error, ignored`.
    level: String,
    /// Whether it counts.
    open: bool,
    confidence: &'static str,
    message: String,
    label: String,
    place: String,
    source: Option<Excerpt>,
    evidence: String,
    impact: String,
    /// Bytes off a peak, where they are known.
    saves: Option<u64>,
    help: Vec<String>,
    standing: String,
    /// In how many places of the job.
    places: String,
    related: Vec<Beside>,
    stack: Vec<Frame>,
    /// What `memlint explain` says.
    explained: String,
    fingerprint: String,
    /// The recording and the device in which it is worst.
    recording: usize,
    device: Option<usize>,
}

/// Lines of source with the expression that is meant.
#[derive(Serialize)]
struct Excerpt {
    /// The number of the first line.
    first: u32,
    lines: Vec<String>,
    /// The line that is meant.
    number: u32,
    /// The first of its characters that are meant, from 0.
    from: u32,
    /// The character after the last.
    until: u32,
}

/// Another place.
#[derive(Serialize)]
struct Beside {
    place: String,
    message: String,
}

/// A frame of the recorded stack.
#[derive(Serialize)]
struct Frame {
    place: String,
    user: bool,
}

impl Card {
    /// All findings, in their order.
    pub(super) fn all(report: &Report, sources: &SourceMap) -> Vec<Card> {
        report.findings.iter().map(|finding| Card::of(report, finding, sources)).collect()
    }

    fn of(report: &Report, finding: &Finding, sources: &SourceMap) -> Card {
        let anchor = words::anchor(report, finding);
        let place = |at: &Location| shown_line(&SourceLine::of(at, sources).line_and_function());
        Card {
            rule: finding.rule.to_string(),
            group: finding.group.name(),
            severity: finding.severity.name(),
            level: words::level(finding),
            open: finding.is_open(),
            confidence: finding.confidence.name(),
            message: shown_line(&finding.message),
            label: shown_line(&finding.label),
            place: anchor.map(place).unwrap_or_default(),
            source: anchor.and_then(|at| Excerpt::of(&SourceLine::of(at, sources))),
            evidence: shown_line(&words::evidence(finding)),
            impact: shown_line(&words::impact(report, finding)),
            saves: finding.impact.off_a_peak().map(Bytes::get),
            help: finding.help.lines().map(shown_line).collect(),
            standing: shown_line(&words::standing(&finding.standing).unwrap_or_default()),
            places: shown_line(&words::places(report, finding).unwrap_or_default()),
            related: finding
                .related
                .iter()
                .map(|one| Beside { place: place(&one.location), message: shown_line(&one.message) })
                .collect(),
            stack: finding
                .stack
                .iter()
                .map(|frame| Frame { place: place(&frame.location), user: frame.user })
                .collect(),
            explained: rules::named(&finding.rule)
                .map(|rule| page::guide(rule.meta().page).to_owned())
                .unwrap_or_default(),
            fingerprint: finding.fingerprint.to_string(),
            recording: finding.input,
            device: finding.device.map(Index::position),
        }
    }
}

impl Excerpt {
    /// The lines around a place, where its source is at hand.
    fn of(place: &SourceLine) -> Option<Excerpt> {
        let file = place.file.as_ref()?;
        let text = |line: u32| {
            let line = file.text().get(file.line(line)?)?;
            Some(shown_source(&line.chars().take(WIDEST).collect::<String>()).into_owned())
        };
        let own = text(place.number)?;
        let first = place.number.saturating_sub(AROUND).max(1);
        let lines: Vec<String> = (first..=place.number + AROUND).map_while(text).collect();
        let length = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let indent = length(&own) - length(own.trim_start());
        let (from, until) = match place.region() {
            Some(region) if region.end_line == place.number => (region.column - 1, region.end_column - 1),
            Some(region) => (region.column - 1, length(&own)),
            None => (indent, length(&own)),
        };
        Some(Excerpt { first, lines, number: place.number, from, until })
    }
}
