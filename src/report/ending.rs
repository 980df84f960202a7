//! The last lines of a report: what was held against each other, what was counted, what the gate makes of it, what was not looked
//! at, and where there is more.

use std::fmt::Write;

use super::look::{Detail, Ink, Look};
use super::tally::Tally;
use super::{fix, words};
use crate::engine::{Fit, FromBase, Outcome, Report};
use crate::finding::{Finding, Severity};
use crate::rules;
use crate::source::SourceMap;
use crate::unit::{count, shown_line, shown_name, told_apart};

/// Writes them.
pub(super) fn render(out: &mut String, report: &Report, sources: &SourceMap, look: &Look) {
    if let Some(fit) = report.fit.as_ref().filter(|fit| fit.fits()) {
        let _ = writeln!(out, "{}", look.wrap(&fits(report, fit), 2));
    }
    if let Some(line) = against(report) {
        let _ = writeln!(out, "{}", look.wrap(&line, 2));
    }
    let _ = writeln!(out, "{}", look.wrap(&verdict(report, look), 2));
    if let Some(line) = gate(report) {
        let _ = writeln!(out, "{line}");
    }
    skipped(out, report, look);
    if let Some(worst) = worst(report) {
        let advice = format!("`memlint explain {}` says more.{}", worst.rule, edits(report, sources));
        let _ = writeln!(out, "{}", look.wrap(&look.paint(Ink::Faint, &advice), 2));
    }
}

/// That there are edits, which somebody who only reads would not know.
fn edits(report: &Report, sources: &SourceMap) -> String {
    let certain = report.open().filter(|one| fix::certain(report, one, sources).is_some()).count();
    match certain {
        0 => String::new(),
        1 => " `memlint fix` shows the edit of 1 finding.".to_owned(),
        several => format!(" `memlint fix` shows the edits of {several} findings."),
    }
}

/// That what was recorded fits a device, and by which peak.
fn fits(report: &Report, fit: &Fit) -> String {
    let failed = report.findings.iter().any(|one| one.rule == rules::OUT_OF_MEMORY);
    let until = if failed { ", up to where memory ran out" } else { "" };
    let of_all = match report.recordings.len() {
        0 | 1 => String::new(),
        several => format!(" in any of {}", count(several, "snapshot")),
    };
    let [most, capacity] = told_apart([fit.most, fit.capacity]);
    let peak = if fit.is_reserved { "reserved" } else { "allocated, what was reserved is not known" };
    format!(
        "device memory: at most {most} of {capacity} were {peak}{of_all}, so what was recorded fits{until}; CUDA itself needs some \
         hundred MiB more"
    )
}

/// What the peak was in the base, of the recording where it rose most: a gate that stays open shows what it held against each other.
fn against(report: &Report) -> Option<String> {
    let rise =
        |one: &&FromBase| one.peaks.map(|(base, head)| i128::from(head.get()) - i128::from(base.get()));
    let most = report.differences.iter().max_by_key(rise)?;
    let (base, head) = most.peaks?;
    let changed = if base == head {
        format!("peak {head}, as before")
    } else {
        let [before, now] = told_apart([base, head]);
        format!("peak {before} before, {now} now")
    };
    let of = match report.differences.len() {
        1 => String::new(),
        several => format!(", the largest change of {several}"),
    };
    Some(format!("against {}: {changed}{of}; `memlint diff` shows all of it", shown_name(&most.base)))
}

/// `2 errors, 1 note (lazy-optimizer-init; 1 ignored, 3 in the baseline; -v shows them)`.
fn verdict(report: &Report, look: &Look) -> String {
    let tally = Tally::of(report);
    let painted = |number, noun, severity| look.paint(Ink::Severity(severity), &count(number, noun));
    let mut parts = Vec::new();
    for (number, noun, severity) in
        [(tally.errors, "error", Severity::Error), (tally.warnings, "warning", Severity::Warning)]
    {
        parts.extend((number > 0).then(|| painted(number, noun, severity)));
    }
    if parts.is_empty() {
        parts.push(match report.recordings.len() {
            _ if tally.is_without_verdict => tally.nothing().to_owned(),
            0 | 1 => tally.nothing().to_owned(),
            several => format!("{} in {}", tally.nothing(), count(several, "snapshot")),
        });
    }
    let notes = hidden_notes(report, look);
    if let ([note], [only], [], 0) = (&*notes, &*report.findings, &*report.notices, tally.unsure) {
        let counted = painted(1, "note", Severity::Info);
        let place = words::snapshot(report, only).map(|name| format!(" in {name}")).unwrap_or_default();
        parts.push(format!("{counted}{place}: {}  [{note}; -v shows all of it]", shown_line(&only.message)));
        return parts.join(", ");
    }
    parts.extend((tally.notes > 0).then(|| painted(tally.notes, "note", Severity::Info)));
    let mut hidden = notes.len();
    let mut aside = Vec::new();
    let mut kinds = notes;
    kinds.sort_unstable();
    kinds.dedup();
    aside.extend((!kinds.is_empty()).then(|| kinds.join(", ")));
    aside.extend(tally.aside());
    if look.detail < Detail::Verbose {
        hidden += tally.ignored + tally.baselined + tally.inherited;
        aside.extend((hidden > 0).then(|| format!("-v shows {}", if hidden == 1 { "it" } else { "them" })));
    }
    let counted = parts.join(", ");
    if aside.is_empty() { counted } else { format!("{counted} ({})", aside.join("; ")) }
}

/// The rules and kinds of the notes that are not shown in full, one for each note.
fn hidden_notes<'a>(report: &'a Report, look: &Look) -> Vec<&'a str> {
    let hidden = |one: &&Finding| !words::is_shown(report, look.detail, one);
    let findings = report.open().filter(|one| one.severity == Severity::Info).filter(hidden);
    let least = words::least(report, look.detail);
    let notices = report.notices.iter().filter(|one| one.severity == Severity::Info && one.severity < least);
    findings.map(|finding| &*finding.rule).chain(notices.map(|notice| notice.kind.name())).collect()
}

/// What the gate makes of it, where the counts do not say so: `failed: 2 findings at or above warning`, `passed: nothing at or above
/// error`.
fn gate(report: &Report) -> Option<String> {
    let verdict = report.verdict;
    let tally = Tally::of(report);
    match verdict.fail_on {
        Some(least) if verdict.fails() => {
            Some(format!("failed: {} at or above {}", count(verdict.failing, "finding"), least.name()))
        }
        _ if verdict.outcome() != Outcome::Open || tally.errors + tally.warnings == 0 => None,
        Some(least) => {
            let ended = report.recordings.iter().any(|recording| recording.ended.is_some());
            let part = if ended { ", as far as it was recorded" } else { "" };
            Some(format!("passed: nothing at or above {}{part}", least.name()))
        }
        None => Some("passed: by `--fail-on never` nothing fails".to_owned()),
    }
}

/// Rules that could not judge; where all is asked for with the reasons, and those that are not applicable.
fn skipped(out: &mut String, report: &Report, look: &Look) {
    if look.detail < Detail::Verbose {
        let rules = report.blind_rules();
        if !rules.is_empty() {
            let remedy =
                report.most_hidden().map(|hidden| format!(": {}", hidden.remedy())).unwrap_or_default();
            let (rules, place) = (count(rules.len(), "rule"), words::blind_in(report));
            let line = format!("{rules} could not judge{place}{remedy}; -v names them");
            let _ = writeln!(out, "{}", look.wrap(&line, 2));
        }
        return;
    }
    for (reason, rules) in words::silences(report) {
        let line = format!("  {reason} ({})", rules.join(", "));
        let _ = writeln!(out, "{}", look.wrap(&line, 4));
    }
}

/// The first finding that is more than a note.
fn worst(report: &Report) -> Option<&Finding> {
    report.open().find(|finding| finding.severity > Severity::Info)
}
