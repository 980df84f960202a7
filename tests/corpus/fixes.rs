//! Edits: what `memlint fix` makes of every recording of the corpus, with the program that made it for its source.

use std::fmt::Write;
use std::path::Path;

use memlint::engine::Report;
use memlint::finding::Severity;
use memlint::fix::{self, Patch, Proposal};
use memlint::source::{self, SourceFile, SourceMap};

use crate::case::{self, Case};

/// What is found in a case, where its program is known to lie.
fn told(case: &Case) -> (Report, SourceMap) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(&case.name);
    let mut report = case.report();
    let sources = SourceMap::new([folder], Vec::new()).seen_by(&report.recordings);
    source::settle(&mut report, &sources);
    (report, sources)
}

/// A case's row for each finding of a rule that has edits.
fn rows(case: &Case) -> String {
    let (report, sources) = told(case);
    let mut rows = String::new();
    for Proposal { finding, outcome } in fix::propose(&report, &sources) {
        let rule = &report.findings[finding].rule;
        if !fix::RULES.contains(&&**rule) {
            continue;
        }
        let what = match outcome {
            Ok(fix) => format!("{}: {}", fix.applicability.name(), fix.title),
            Err(reason) => format!("none: {}", reason.replace(env!("CARGO_MANIFEST_DIR"), "")),
        };
        let _ = writeln!(rows, "{:24} {:28} {what}", case.name, rule);
    }
    rows
}

#[test]
fn every_fault_has_its_edit_or_a_reason() {
    let rows: String = case::all().iter().map(rows).collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../expected");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("fixes", rows));
}

#[test]
fn no_clean_program_is_edited() {
    let clean: Vec<&Case> = case::all().iter().filter(|case| case.labels["kind"] == "clean").collect();
    assert!(clean.len() > 30, "only {} clean programs", clean.len());
    for case in clean {
        let (mut report, sources) = told(case);
        // Not even if a note were taken for a fault: that nothing needs the graph of a pass is no guess.
        report.findings.retain(|finding| finding.severity >= Severity::Warning);
        let edits = fix::propose(&report, &sources).into_iter().filter_map(|one| one.outcome.ok());
        let titles: Vec<String> = edits.map(|fix| fix.title).collect();
        assert!(titles.is_empty(), "{}: {titles:?}", case.name);
    }
}

#[test]
fn every_edit_applies_parses_and_is_made_once() {
    let mut edited = 0;
    for case in case::all() {
        let (report, sources) = told(case);
        let patch = Patch::of(fix::propose(&report, &sources), true);
        for file in patch.files(|name| std::fs::read_to_string(name).ok()) {
            assert_ne!(file.before, file.after, "{}", case.name);
            let lines = |text: &str| text.lines().count();
            assert!(lines(&file.after).abs_diff(lines(&file.before)) < 8, "{}", case.name);
            let parsed = SourceFile::new(file.name, file.after);
            assert!(parsed.function_at(1).is_some(), "{} does not parse any more", case.name);
            edited += 1;
        }
    }
    assert!(edited > 30, "only {edited} programs were edited");
}
