//! The rules on the corpus: what the labels expect is found, at a line that they name, and nothing that they do not
//! allow is warned about. Labels of rules that do not exist are passed over.

use memlint::engine::Report;
use memlint::finding::{Finding, Severity};
use memlint::rules;
use serde_json::Value;

use crate::case::{self, Case};

/// Findings whose line no recorded stack shows; the source has to be searched for the call.
const NEEDS_SOURCE: [&str; 2] = ["truncated-history", "no-stacks"];

#[test]
fn every_expected_finding_is_found_where_the_labels_say() {
    let missed = missed(case::all());
    assert!(missed.is_empty(), "\n{}", missed.join("\n"));
}

#[test]
fn nothing_is_warned_about_that_an_expert_would_not_report() {
    let wrong = unexpected(case::all());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What the labels expect and the rules do not find, or not at a line that they name.
pub(crate) fn missed(cases: &[Case]) -> Vec<String> {
    let mut missed = Vec::new();
    for case in cases {
        let report = case.report();
        for expected in case.labels["expect"].as_array().into_iter().flatten() {
            let name = expected["pattern"].as_str().unwrap_or_default();
            if rules::named(name).is_none() {
                continue;
            }
            let found: Vec<&Finding> =
                report.findings.iter().filter(|finding| finding.rule == name).collect();
            let located = found.iter().any(|finding| is_at(finding, expected));
            if found.is_empty() {
                missed.push(format!("{}: {name} is missing", case.name));
            } else if !located && !NEEDS_SOURCE.contains(&name) {
                let lines: Vec<_> = found.iter().map(|one| line(one)).collect();
                missed.push(format!("{}: {name} is at {lines:?}", case.name));
            }
        }
    }
    missed
}

/// Warnings and errors that the labels neither expect nor allow.
pub(crate) fn unexpected(cases: &[Case]) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in cases {
        let allowed = |rule: &str| {
            let listed = case.labels["allow"].as_array().is_some_and(|all| all.iter().any(|one| one == rule));
            listed || case.expects(rule)
        };
        for finding in case.report().findings {
            if finding.severity > Severity::Info && !allowed(&finding.rule) {
                let (rule, at) = (&finding.rule, line(&finding));
                wrong.push(format!("{}: {rule} at {at:?}: {}", case.name, finding.message));
            }
        }
    }
    wrong
}

#[test]
fn clearing_gradients_saves_what_the_mended_twin_saves() {
    let cases = case::all();
    let peak = |report: &Report| {
        report
            .recordings
            .iter()
            .flat_map(|recording| &recording.devices)
            .filter_map(|one| one.peak_requested)
            .max()
            .unwrap()
    };
    for name in ["seed-resnet50-bug", "mzg-gan-disc-bug"] {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let twin = cases.iter().find(|case| case.name == name.replace("-bug", "-fixed")).unwrap();
        let buggy = case.report();
        let finding = buggy.findings.iter().find(|finding| finding.rule == "missing-zero-grad").unwrap();
        let mended = peak(&buggy) - finding.impact.peak.unwrap();
        let difference = mended.get().abs_diff(peak(&twin.report()).get());
        assert!(difference * 200 < mended.get(), "{name}: {mended} instead of {}", peak(&twin.report()));
    }
}

fn line(finding: &Finding) -> Option<u32> {
    finding.location.as_ref().map(|location| location.line)
}

/// Whether a finding lies in one of the spans that a label names, alternatives included.
fn is_at(finding: &Finding, expected: &Value) -> bool {
    let Some(location) = &finding.location else { return expected["lines"].is_null() };
    let name = location.file.rsplit('/').next();
    let others = expected["alt"].as_array().into_iter().flatten();
    std::iter::once(expected).chain(others).any(|place| {
        place["file"].as_str().is_none_or(|file| Some(file) == name)
            && spans(&place["lines"])
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&u64::from(location.line)))
    })
}

/// `[a, b]` or `[[a, b], [c, d]]`.
fn spans(lines: &Value) -> Vec<(u64, u64)> {
    let span = |value: &Value| Some((value.get(0)?.as_u64()?, value.get(1)?.as_u64()?));
    match span(lines) {
        Some(only) => vec![only],
        None => lines.as_array().into_iter().flatten().filter_map(span).collect(),
    }
}
