//! Workflow commands of GitHub Actions: annotations beside the lines of a pull request.
//!
//! GitHub draws ten of a kind for a step and drops the others without a word: the worst are written, and how many more
//! there are.

use std::fmt::Write;

use super::VerdictFailure;
use super::fix;
use super::headline::Headline;
use super::look::{Detail, Look};
use super::place::SourceLine;
use super::tally::Tally;
use super::words;
use crate::engine::Report;
use crate::finding::{Finding, Severity};
use crate::source::SourceMap;
use crate::unit::{count, shown_line, shown_name};

/// The annotations of one kind that GitHub shows for a step.
const MOST: usize = 10;

/// An annotation to be written.
struct WorkflowCommand<'a> {
    severity: Severity,
    place: Option<SourceLine<'a>>,
    title: String,
    message: String,
}

/// Writes the report of a check.
pub(super) fn render(report: &Report, sources: &SourceMap, look: &Look) -> String {
    let annotations = annotations(report, sources, look);
    let mut out = String::new();
    let headline = Headline::of(report);
    let most = MOST - usize::from(headline.is_some());
    if let Some(Headline { severity, text }) = headline {
        command(&mut out, severity, &[("title", "memlint".to_owned())], &text);
    }
    for annotation in annotations.iter().take(most) {
        annotation.render(&mut out, sources);
    }
    if annotations.len() > most {
        let more = count(annotations.len() - most, "more finding");
        let message = format!("{more} not annotated; in all {}", Tally::of(report).words());
        command(&mut out, Severity::Info, &[("title", "memlint".to_owned())], &message);
    }
    if look.detail > Detail::Quiet {
        let _ = writeln!(out, "memlint: {}", Tally::of(report).words());
    }
    out
}

/// Says that there is no verdict.
pub(super) fn failure(failure: &VerdictFailure) -> String {
    let mut out = String::new();
    let message = format!("no verdict: {}", failure.sentence());
    command(&mut out, Severity::Error, &[("title", "memlint".to_owned())], &message);
    out
}

/// What is shown, the worst first: by severity, then as the report has it (by what mending saves).
fn annotations<'a>(report: &'a Report, sources: &SourceMap, look: &Look) -> Vec<WorkflowCommand<'a>> {
    let unread = report.unread.iter().map(|unread| WorkflowCommand {
        severity: Severity::Error,
        place: None,
        title: "memlint: unreadable".to_owned(),
        message: with_help(unread.message.clone(), unread.help.as_deref().unwrap_or_default()),
    });
    let findings = words::shown(report, look.detail).map(|finding| WorkflowCommand {
        severity: finding.severity,
        place: words::anchor(report, finding).map(|location| SourceLine::of(location, sources)),
        title: format!("memlint: {}", finding.rule),
        message: with_fix(
            with_help(words::sentence(report, finding), &finding.help),
            finding,
            report,
            sources,
        ),
    });
    let notices = words::shown_notices(report, look.detail).map(|notice| WorkflowCommand {
        severity: notice.severity,
        place: notice.location.as_ref().map(SourceLine::here),
        title: format!("memlint: {}", notice.kind.name()),
        message: with_help(notice.message.clone(), &notice.help),
    });
    let mut annotations: Vec<WorkflowCommand> = unread.chain(findings).chain(notices).collect();
    annotations.sort_by_key(|annotation| std::cmp::Reverse(annotation.severity));
    annotations
}

fn with_help(message: String, help: &str) -> String {
    if help.is_empty() { message } else { format!("{message}\nhelp: {help}") }
}

/// With the edit that mends it, as the suggestion that a reviewer would write.
fn with_fix(message: String, finding: &Finding, report: &Report, sources: &SourceMap) -> String {
    match fix::suggestion(report, finding, sources) {
        Some(suggestion) => format!("{message}\n{suggestion}"),
        None => message,
    }
}

impl WorkflowCommand<'_> {
    fn render(&self, out: &mut String, sources: &SourceMap) {
        let mut properties = Vec::new();
        if let Some(place) = &self.place {
            properties.push(("file", place.address(sources).into_path()));
            properties.push(("line", place.number.to_string()));
            if let Some(region) = place.region() {
                properties.push(("endLine", region.end_line.to_string()));
                // Columns are refused where the lines differ.
                if region.end_line == place.number {
                    properties.push(("col", region.column.to_string()));
                    properties.push(("endColumn", region.end_column.to_string()));
                }
            }
        }
        properties.push(("title", self.title.clone()));
        command(out, self.severity, &properties, &self.message);
    }
}

/// `::error file=a.py,line=1::message`, escaped as the runner unescapes it.
fn command(out: &mut String, severity: Severity, properties: &[(&str, String)], message: &str) {
    let kind = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let properties: Vec<String> =
        properties.iter().map(|(name, value)| format!("{name}={}", escaped_property(value))).collect();
    let lines: Vec<String> = message.lines().map(shown_line).collect();
    let _ = writeln!(out, "::{kind} {}::{}", properties.join(","), escaped(&lines.join("\n")));
}

/// The data of a command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property.
fn escaped_property(text: &str) -> String {
    escaped(&shown_name(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_escaped_as_the_runner_wants_it() {
        let mut out = String::new();
        let file = ("file", "a,b:c%\n.py".to_owned());
        command(&mut out, Severity::Warning, &[file], "50 % of\r\n::error::it, too");
        assert_eq!(out, "::warning file=a%2Cb%3Ac%25\u{fffd}.py::50 %25 of%0A::error::it, too\n");
        assert_eq!(escaped_property("100%"), "100%25", "the escapes are not escaped again");
    }
}
