//! Which recordings of the corpus a strict gate can judge, and what the others hide: a table that a reader can check.

use std::collections::BTreeMap;
use std::fmt::Write;

use memlint::engine::{Outcome, Report};
use memlint::finding::{Severity, Silence};
use memlint::gate::Gate;

use crate::case;

/// What a gate makes of a recording, and for each reason how many rules did not judge for it.
fn row(name: &str, mut report: Report) -> String {
    Gate { fail_on: Some(Severity::Error), strict: true }.judge(&mut report);
    let status = match report.verdict.outcome() {
        Outcome::Open => 0,
        Outcome::Closed => 1,
        Outcome::NoVerdict(_) => 2,
    };
    let mut silences: BTreeMap<Silence, Vec<&str>> = BTreeMap::new();
    for one in report.skipped.iter().filter(|one| one.rule != "rank-imbalance") {
        silences.entry(one.silence).or_default().push(&one.rule);
    }
    let silences: Vec<String> = silences
        .into_iter()
        .map(|(silence, rules)| {
            let which = if rules.len() > 3 { String::new() } else { format!(" ({})", rules.join(", ")) };
            let verb = if matches!(silence, Silence::Blind(_)) { "blind" } else { "not applicable" };
            format!("{} {verb}{which}: {}", rules.len(), silence.reason())
        })
        .collect();
    format!("{status}  {name:<26} {}", silences.join("; ")).trim_end().to_owned()
}

#[test]
fn what_a_strict_gate_makes_of_each_recording_is_known() {
    let mut table = "exit status with --strict, recording, rules that do not judge it\n".to_owned();
    for case in case::all() {
        let report = case.report();
        let _ = writeln!(table, "{}", row(&case.name, report));
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../expected");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("strict", table));
}
