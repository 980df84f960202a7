//! Advice on the corpus: notes with a place and an estimate, which nobody gets who did not ask.

use std::collections::BTreeMap;

use memlint::engine::{Input, check_with};
use memlint::finding::{Finding, Group, Severity};
use memlint::rules::{RULES, Rule};
use memlint::unit::Bytes;

use crate::case::{self, Case};

/// Where a rule has to speak, and where not: what the programs are known to do.
const KNOWN: [(&str, &str, bool); 8] = [
    ("clean-ema-checkpoints", "uncheckpointed-activations", true),
    ("seed-gpt-checkpoint", "uncheckpointed-activations", false),
    ("clean-hf-trainer", "unchunked-loss", true),
    ("graph-eval-sum-fixed", "unchunked-loss", false),
    ("frag-curriculum-fixed", "full-precision-activations", true),
    ("amp-skipped-bug", "full-precision-activations", false),
    ("optpeak-foreach-bug", "large-optimizer-state", true),
    ("thrash-inference-bug", "large-optimizer-state", false),
];

fn input(case: &Case) -> Input {
    Input::of(case.name.clone(), case.snapshot())
}

#[test]
fn advice_is_asked_for_and_stays_an_estimate_within_the_peak() {
    let advice: Vec<&'static dyn Rule> =
        RULES.iter().copied().filter(|rule| rule.meta().group == Group::Advice).collect();
    let mut given: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for case in case::all() {
        let input = input(case);
        let unasked = case.report();
        assert!(unasked.findings.iter().all(|one| one.group != Group::Advice), "{}", case.name);
        let report = check_with(vec![input], &advice);
        for finding in &report.findings {
            let device = report.recordings[0].device(finding.device.unwrap()).unwrap();
            let peak = device.peak_requested.unwrap();
            let saved = finding.impact.peak.unwrap();
            assert!(saved < peak && saved > Bytes::ZERO, "{}: {}", case.name, finding.rule);
            assert_eq!(finding.severity, Severity::Info);
            // State that is older than the recording has no line.
            assert!(
                finding.location.is_some() || finding.stack.is_empty(),
                "{}: {}",
                case.name,
                finding.rule
            );
        }
        given.insert(case.name.clone(), report.findings);
    }
    for (case, rule, speaks) in KNOWN {
        assert_eq!(given[case].iter().any(|one| one.rule == rule), speaks, "{case}: {rule}");
    }
}
