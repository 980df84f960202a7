//! One line a finding: `path:line:column: severity rule: message (evidence) help: remedy`. For editors, for logs, and for
//! agents that read them.

use std::fmt::Write;

use super::VerdictFailure;
use super::fix;
use super::headline::Headline;
use super::look::{Detail, Look};
use super::place::SourceLine;
use super::tally::Tally;
use super::words;
use crate::engine::Report;
use crate::finding::Finding;
use crate::source::SourceMap;
use crate::unit::{shown_line, shown_name, shown_page};

/// Writes the report of a check.
pub(super) fn render(report: &Report, sources: &SourceMap, look: &Look) -> String {
    let mut out = String::new();
    if let Some(headline) = Headline::of(report) {
        let _ = writeln!(out, "memlint: {}", shown_line(&headline.text));
    }
    for unread in &report.unread {
        let what = format!("error unreadable: {}", unread.message);
        line(&mut out, &shown_name(&unread.name), &what, unread.help.as_deref().unwrap_or_default());
    }
    for finding in words::shown(report, look.detail) {
        let place = match words::anchor(report, finding) {
            Some(location) => spot(&SourceLine::of(location, sources)),
            None => snapshot(report, finding),
        };
        let (level, rule) = (finding.severity.name(), &finding.rule);
        let sentence = words::sentence(report, finding);
        let has_edit = fix::certain(report, finding, sources).is_some();
        let help = if has_edit {
            format!("{} (`memlint fix` has the edit)", finding.help)
        } else {
            finding.help.clone()
        };
        line(&mut out, &place, &format!("{level} {rule}: {sentence}"), &help);
    }
    for notice in words::shown_notices(report, look.detail) {
        let place =
            notice.location.as_ref().map_or_else(|| "memlint".to_owned(), |at| spot(&SourceLine::here(at)));
        let what = format!("{} {}: {}", notice.severity.name(), notice.kind.name(), notice.message);
        line(&mut out, &place, &what, &notice.help);
    }
    if look.detail > Detail::Quiet {
        let _ = writeln!(out, "memlint: {}", Tally::of(report).words());
    }
    shown_page(&out, false)
}

/// Says that there is no verdict.
pub(super) fn failure(failure: &VerdictFailure) -> String {
    format!("memlint: no verdict: {}\n", shown_line(&failure.sentence()))
}

fn line(out: &mut String, place: &str, what: &str, help: &str) {
    let help = words::help_line(help);
    let help = if help.is_empty() { help } else { format!(" help: {help}") };
    let _ = writeln!(out, "{place}: {}", shown_line(&format!("{what}{help}")));
}

/// `train.py:17:9`.
fn spot(place: &SourceLine<'_>) -> String {
    let column = place.region().map(|region| format!(":{}", region.column));
    format!("{}{}", place.line(), column.unwrap_or_default())
}

fn snapshot(report: &Report, finding: &Finding) -> String {
    report.recording(finding).map_or_else(|| "memlint".to_owned(), |recording| shown_name(&recording.name))
}
