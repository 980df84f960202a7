//! JUnit XML: a test suite a snapshot, a test case a rule. Dashboards that know tests show trends of it.
//!
//! A case fails if a finding of its rule closes the gate; findings that do not are its output. A rule that could not run
//! on all of the snapshot's devices is skipped, and never passed.

use std::fmt::Write;

use super::headline::Headline;
use super::place::SourceLine;
use super::{VerdictFailure, words};
use crate::engine::{Recording, Report};
use crate::finding::{Finding, Notice, Severity};
use crate::source::SourceMap;

/// A test case.
struct TestCase {
    class: String,
    name: String,
    /// The program's line, of the worst finding.
    place: Option<(String, u32)>,
    outcome: CaseOutcome,
    /// What does not fail, but is worth reading.
    output: String,
}

enum CaseOutcome {
    Passed,
    Skipped(String),
    Failed { kind: &'static str, message: String, text: String },
    Broken { message: String, text: String },
}

/// Writes the report of a check.
pub(super) fn render(report: &Report, sources: &SourceMap) -> String {
    let mut suites: Vec<(String, Vec<TestCase>)> = Vec::new();
    for (input, recording) in report.recordings.iter().enumerate() {
        let cases = rules(report, recording, input)
            .into_iter()
            .map(|rule| TestCase::of_rule(report, recording, input, rule, sources))
            .collect();
        suites.push((recording.name.clone(), cases));
    }
    for unread in &report.unread {
        suites.push((
            unread.name.clone(),
            vec![TestCase::broken(&unread.name, "readable", &VerdictFailure::of_file(unread))],
        ));
    }
    let notices = report.notices.iter().map(|notice| TestCase::of_notice(report, notice, sources));
    let own: Vec<TestCase> = verdict(report).into_iter().chain(notices).collect();
    if !own.is_empty() {
        suites.push(("memlint".to_owned(), own));
    }
    document(&suites)
}

/// Says that there is no verdict.
pub(super) fn failure(failure: &VerdictFailure) -> String {
    document(&[("memlint".to_owned(), vec![TestCase::broken("memlint", "verdict", failure)])])
}

/// That there is no verdict although there is a report; that not all was judged, where there is.
fn verdict(report: &Report) -> Option<TestCase> {
    let Headline { severity, text } = Headline::of(report)?;
    let failure = VerdictFailure { message: text.clone(), help: None };
    let broken = TestCase::broken("memlint", "verdict", &failure);
    Some(match severity {
        Severity::Error => broken,
        _ => TestCase { outcome: CaseOutcome::Passed, output: text, ..broken },
    })
}

/// The rules that were asked of a snapshot, and those that found something in it without being in that list.
fn rules<'a>(report: &'a Report, recording: &'a Recording, input: usize) -> Vec<&'a str> {
    let mut rules: Vec<&str> = recording.rules.iter().map(AsRef::as_ref).collect();
    for finding in report.findings.iter().filter(|finding| concerns(finding, input)) {
        if !rules.contains(&&*finding.rule) {
            rules.push(&finding.rule);
        }
    }
    rules
}

fn concerns(finding: &Finding, input: usize) -> bool {
    finding.input == input || finding.also.iter().any(|sighting| sighting.input == input)
}

fn closes(report: &Report, severity: Severity) -> bool {
    report.verdict.fail_on.is_some_and(|least| severity >= least)
}

impl TestCase {
    fn broken(class: &str, name: &str, failure: &VerdictFailure) -> TestCase {
        TestCase {
            class: class.to_owned(),
            name: name.to_owned(),
            place: None,
            outcome: CaseOutcome::Broken { message: failure.message.clone(), text: failure.sentence() },
            output: String::new(),
        }
    }

    fn of_rule(
        report: &Report,
        recording: &Recording,
        input: usize,
        rule: &str,
        sources: &SourceMap,
    ) -> TestCase {
        let findings: Vec<&Finding> =
            report.findings.iter().filter(|one| one.rule == rule && concerns(one, input)).collect();
        let (failing, others): (Vec<&Finding>, Vec<&Finding>) =
            findings.iter().partition(|one| one.is_open() && closes(report, one.severity));
        let skipped = report.skipped.iter().filter(|one| one.input == input && one.rule == rule);
        // On several devices what is hidden goes before what is not applicable.
        let skipped = skipped.min_by_key(|one| one.silence);
        let text = |findings: &[&Finding]| {
            let lines: Vec<String> = findings.iter().map(|one| describe(report, one, sources)).collect();
            lines.join("\n")
        };
        TestCase {
            class: recording.name.clone(),
            name: rule.to_owned(),
            place: findings.first().and_then(|one| place(report, one, sources)),
            outcome: match (&*failing, skipped) {
                ([worst, ..], _) => CaseOutcome::Failed {
                    kind: worst.severity.name(),
                    message: worst.message.clone(),
                    text: text(&failing),
                },
                ([], Some(skipped)) => CaseOutcome::Skipped(skipped.silence.reason()),
                ([], None) => CaseOutcome::Passed,
            },
            output: text(&others),
        }
    }

    fn of_notice(report: &Report, notice: &Notice, sources: &SourceMap) -> TestCase {
        let text = format!("{}\nhelp: {}", notice.message, notice.help);
        let place = notice
            .location
            .as_ref()
            .map(|location| (SourceLine::here(location).address(sources).into_path(), location.line));
        let (outcome, output) = if closes(report, notice.severity) {
            (
                CaseOutcome::Failed { kind: notice.severity.name(), message: notice.message.clone(), text },
                String::new(),
            )
        } else {
            (CaseOutcome::Passed, text)
        };
        TestCase { class: "memlint".to_owned(), name: notice.kind.name().to_owned(), place, outcome, output }
    }

    fn render(&self, out: &mut String) {
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\"",
            escaped(&self.class),
            escaped(&self.name)
        );
        if let Some((file, line)) = &self.place {
            let _ = write!(out, " file=\"{}\" line=\"{line}\"", escaped(file));
        }
        out.push_str(">\n");
        let _ = match &self.outcome {
            CaseOutcome::Passed => Ok(()),
            CaseOutcome::Skipped(reason) => writeln!(out, "      <skipped message=\"{}\"/>", escaped(reason)),
            CaseOutcome::Failed { kind, message, text } => {
                let (message, text) = (escaped(message), escaped(text));
                writeln!(out, "      <failure type=\"{kind}\" message=\"{message}\">{text}</failure>")
            }
            CaseOutcome::Broken { message, text } => {
                let (message, text) = (escaped(message), escaped(text));
                writeln!(out, "      <error type=\"no-verdict\" message=\"{message}\">{text}</error>")
            }
        };
        if !self.output.is_empty() {
            let _ = writeln!(out, "      <system-out>{}</system-out>", escaped(&self.output));
        }
        out.push_str("    </testcase>\n");
    }
}

/// Where, what and how to mend it, over several lines.
fn describe(report: &Report, finding: &Finding, sources: &SourceMap) -> String {
    let place =
        place(report, finding, sources).map_or_else(String::new, |(file, line)| format!("{file}:{line}: "));
    let level = finding.severity.name();
    let help = if finding.help.is_empty() { String::new() } else { format!("help: {}\n", finding.help) };
    format!("{place}{level}: {}\n{help}", words::sentence(report, finding))
}

fn place(report: &Report, finding: &Finding, sources: &SourceMap) -> Option<(String, u32)> {
    let location = words::anchor(report, finding)?;
    let place = SourceLine::of(location, sources);
    Some((place.address(sources).into_path(), place.number))
}

fn document(suites: &[(String, Vec<TestCase>)]) -> String {
    let all = || suites.iter().flat_map(|(_, cases)| cases);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"memlint\" {}>", counts(&all()));
    for (name, cases) in suites {
        let _ = writeln!(out, "  <testsuite name=\"{}\" {}>", escaped(name), counts(&cases.iter()));
        for case in cases {
            case.render(&mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// The counts that a suite carries as attributes.
fn counts<'a>(cases: &(impl Iterator<Item = &'a TestCase> + Clone)) -> String {
    let of = |wanted: fn(&CaseOutcome) -> bool| cases.clone().filter(|case| wanted(&case.outcome)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.clone().count(),
        of(|outcome| matches!(outcome, CaseOutcome::Failed { .. })),
        of(|outcome| matches!(outcome, CaseOutcome::Broken { .. })),
        of(|outcome| matches!(outcome, CaseOutcome::Skipped(_))),
    )
}

/// Text for attributes and elements; characters that XML 1.0 does not allow are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(one),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            one if one.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            one => out.push(one),
        }
    }
    out
}
