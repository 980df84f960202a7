//! Edits, for people and for `git apply`.

use std::rc::Rc;

use similar::TextDiff;

use crate::engine::Report;
use crate::finding::{Finding, Severity};
use crate::fix::{self, Edit, Fix, Patch, Patched, Saves};
use crate::source::{SourceFile, SourceMap};
use crate::unit::{shown_line, shown_name};

/// The changes of all files, as `git apply` and `patch -p1` take them.
pub fn difference(files: &[Patched]) -> String {
    let one = |file: &Patched| {
        let name = file.name.trim_start_matches('/').replace('\\', "/");
        let name = name.strip_prefix("./").unwrap_or(&name);
        // As git does: a name with blanks ends where a tab stands.
        let name = if name.contains(' ') { format!("{name}\t") } else { name.to_owned() };
        let lines = TextDiff::from_lines(&file.before, &file.after);
        let mut lines = lines.unified_diff();
        lines.context_radius(3).header(&format!("a/{name}"), &format!("b/{name}")).to_string()
    };
    files.iter().map(one).collect()
}

/// What mends a finding, where that is certain, and the file that it edits.
pub(super) fn certain(
    report: &Report,
    finding: &Finding,
    sources: &SourceMap,
) -> Option<(Fix, Rc<SourceFile>)> {
    let fix = fix::of(report, finding, sources)?.ok()?;
    Some((fix, sources.find(finding.location.as_ref()?)?.file))
}

/// Where an edit begins and ends: lines and columns, counted from 1.
pub(super) fn region(edit: &Edit, file: &SourceFile) -> ((u32, u32), (u32, u32)) {
    let text = file.text();
    // Behind the last line break a new line begins.
    let place = |at: usize| match file.place(at) {
        (line, _) if at == text.len() && text.ends_with('\n') => (line + 1, 1),
        place => place,
    };
    (place(edit.start), place(edit.end))
}

/// More lines than this are no suggestion that somebody reads beside a line.
const MOST_SUGGESTED: usize = 12;

/// The lines that an edit changes as they would be, for a comment beside them; `None` where they lie far apart.
pub(super) fn suggestion(report: &Report, finding: &Finding, sources: &SourceMap) -> Option<String> {
    let (fix, file) = certain(report, finding, sources)?;
    let (first, last) = (fix.edits.first()?, fix.edits.last()?);
    let text = file.text();
    let start = text.get(..first.start)?.rfind('\n').map_or(file.start(), |at| at + 1);
    // What is put at the beginning of a line belongs to the line before, too, or nobody sees where.
    let is_inserted = first.start == start && first.end == start && start > file.start();
    let line_before = || Some(text.get(..start - 1)?.rfind('\n').map_or(file.start(), |at| at + 1));
    let start = if is_inserted { line_before()? } else { start };
    let end = last.end + text.get(last.end..)?.find('\n').map_or(text.len() - last.end, |at| at + 1);
    let patched = Patch::alone(fix.clone()).files(|_| Some(text.to_owned())).pop()?;
    let tail = text.len() - end;
    let lines = patched.after.get(start..patched.after.len() - tail)?;
    let (from, _) = file.place(start);
    let to = from + u32::try_from(text.get(start..end)?.lines().count()).ok()?.saturating_sub(1);
    (lines.lines().count() <= MOST_SUGGESTED).then(|| {
        let what = format!("{} ({}: {})", fix.title, fix.applicability.name(), fix.why);
        format!(
            "fix, lines {from} to {to}: {what}\n```suggestion\n{}\n```",
            lines.trim_end_matches(['\n', '\r'])
        )
    })
}

/// What each edit does, and why there is none for other findings: a line each.
pub fn words(patch: &Patch, report: &Report, sources: &SourceMap) -> Vec<String> {
    let mut lines = Vec::new();
    for (fix, findings) in &patch.taken {
        lines.push(format!("memlint: {}: {}", about(findings, report, sources), told(fix, findings, report)));
    }
    for (fix, findings) in &patch.held_back {
        let what = told(fix, findings, report);
        lines.push(format!("memlint: {}: {what}; `--unsafe` takes it", about(findings, report, sources)));
    }
    for (finding, reason) in &patch.without {
        lines.push(format!("memlint: {}: no edit: {reason}", about(&[*finding], report, sources)));
    }
    if lines.is_empty() {
        lines.push(nothing_to_mend(report));
    }
    lines.into_iter().map(|line| shown_line(&line)).collect()
}

/// That there is nothing, and what there is no edit of because it may be nothing.
fn nothing_to_mend(report: &Report) -> String {
    let mut notes: Vec<&str> =
        report.open().filter(|one| one.severity < Severity::Warning).map(|one| &*one.rule).collect();
    notes.dedup();
    if notes.is_empty() {
        return "memlint: nothing to mend".to_owned();
    }
    format!(
        "memlint: nothing to mend: notes have no edits ({}); `memlint check -v` shows them",
        notes.join(", ")
    )
}

/// `retained-graph, activations-without-backward at train.py:17`.
fn about(findings: &[usize], report: &Report, sources: &SourceMap) -> String {
    let found: Vec<_> = findings.iter().filter_map(|at| report.findings.get(*at)).collect();
    let rules: Vec<&str> = found.iter().map(|finding| &*finding.rule).collect();
    let place = found.first().and_then(|finding| finding.location.as_ref()).map(|location| {
        match sources.find(location) {
            Some(spot) => format!(" at {}:{}", shown_name(spot.file.name()), spot.line),
            None => format!(" at {}:{}", shown_name(&location.file), location.line),
        }
    });
    format!("{}{}", rules.join(", "), place.unwrap_or_default())
}

/// What an edit does, whether it is safe, and what it saves.
fn told(fix: &Fix, findings: &[usize], report: &Report) -> String {
    let saved = findings.iter().filter_map(|at| report.findings.get(*at)?.impact.peak).max();
    let saved = saved.filter(|saved| saved.get() > 0).map_or(String::new(), |saved| match fix.saves {
        Saves::All => format!("; takes {saved} off the peak"),
        Saves::Part => format!("; takes up to {saved} off the peak"),
    });
    format!("{} ({}: {}){saved}", fix.title, fix.applicability.name(), fix.why)
}
