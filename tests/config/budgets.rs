//! Budgets on real recordings: the measure is what PyTorch counted, and a limit is passed above it, not at it.

use std::path::Path;

use memlint::config::Overrides;
use memlint::edit::slice;
use memlint::engine::{self, Examination, Input, Plan};
use memlint::finding::{Absent, Finding, Hidden, Quantity, Severity, Silence};
use memlint::input::{Limits, Source};
use memlint::pickle;
use memlint::program::Phase;
use memlint::snapshot::Snapshot;
use memlint::unit::Bytes;

use crate::settings;

fn examine(case: &str, text: &str) -> Examination {
    examine_one(case, snapshot(case), text)
}

fn snapshot(case: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots").join(case).join("snapshot.pickle.zst");
    let stream = Source::File(path).open(&Limits::default()).unwrap();
    Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap()
}

fn examine_one(name: &str, snapshot: Snapshot, text: &str) -> Examination {
    let settings =
        settings(text, Overrides { select: Some(vec!["budget".to_owned()]), ..Overrides::default() });
    engine::examine(&Input::of(name.to_owned(), snapshot), &Plan::of(&settings))
}

fn budget(metric: &str, more: &str, limit: &str) -> String {
    format!("[budget.one]\nmetric = \"{metric}\"\n{more}\nlimit = {limit}\n")
}

/// What a budget measures: a limit of nothing is always passed.
fn measured(case: &str, metric: &str, more: &str) -> Bytes {
    let found = examine(case, &budget(metric, more, "0")).findings;
    let [finding] = &found[..] else { panic!("{case} {metric}: {found:?}") };
    bytes(finding, "measured")
}

fn bytes(finding: &Finding, name: &str) -> Bytes {
    let measure = finding.evidence.iter().find(|measure| measure.name == name).unwrap();
    match measure.value {
        Quantity::Bytes(bytes) => bytes,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn peaks_are_those_that_pytorch_counts() {
    for case in ["seed-resnet50-bug", "overlap-lm-logits-bug", "xstream-record-bug"] {
        let device =
            examine(case, "[budget.one]\nmetric = \"peak-requested\"\nlimit = 0\n").recording.devices;
        let [device] = &device[..] else { panic!("{case} has one device") };
        assert_eq!(Some(measured(case, "peak-requested", "")), device.peak_requested, "{case}");
        assert_eq!(Some(measured(case, "peak-allocated", "")), device.peak_allocated, "{case}");
        assert_eq!(Some(measured(case, "peak-reserved", "")), device.peak_reserved, "{case}");
    }
}

#[test]
fn a_limit_is_passed_above_it_and_not_at_it() {
    let peak = measured("seed-resnet50-bug", "peak-reserved", "").get();
    let found =
        |limit: u64| examine("seed-resnet50-bug", &budget("peak-reserved", "", &limit.to_string())).findings;
    assert_eq!(found(peak), []);
    let [finding] = &found(peak - 1)[..] else { panic!("one byte too much is too much") };
    assert_eq!(bytes(finding, "excess"), Bytes(1));
    assert_eq!(finding.message, "peak of reserved memory 494,927,872 B is above the budget of 494,927,871 B");
    assert_eq!((finding.rule.as_ref(), finding.severity), ("budget.one", Severity::Error));
    assert_eq!(finding.location.as_ref().unwrap().line, 17);
    assert!(finding.help.contains("[budget.one] (ci/memlint.toml:4)"), "{}", finding.help);
}

#[test]
fn shares_are_of_the_device_or_of_the_peak() {
    let memory =
        |size: &str| format!("{}[device]\nmemory = \"{size}\"\n", budget("peak-reserved", "", "\"50%\""));
    assert_eq!(examine("seed-resnet50-bug", &memory("944MiB")).findings, []);
    let found = examine("seed-resnet50-bug", &memory("940MiB")).findings;
    assert_eq!(bytes(&found[0], "limit"), Bytes::MIB.times(470));
    let of_peak = budget("role-bytes", "role = \"parameter\"", "\"20%\"");
    let found = examine("seed-resnet50-bug", &of_peak).findings;
    assert!(
        found[0].message.starts_with("parameter memory 99.3 MiB is above the budget of 89."),
        "{}",
        found[0].message
    );
}

#[test]
fn a_phase_needs_no_more_than_the_run() {
    let case = "seed-resnet50-bug";
    let run = measured(case, "peak-requested", "");
    let of = |scope: &str| measured(case, "peak-requested", &format!("scope = \"{scope}\""));
    assert_eq!(of("backward"), run);
    assert_eq!(of("iteration"), run);
    assert!(of("optimizer-step") < run && of("optimizer-step") > Bytes::ZERO);
}

#[test]
fn what_cannot_be_measured_is_skipped_with_a_reason() {
    let skipped = |case: &str, text: &str| {
        let examination = examine(case, text);
        assert_eq!(examination.findings, []);
        let [one] = &examination.skipped[..] else { panic!("{:?}", examination.skipped) };
        one.silence
    };
    let phase = budget("peak-requested", "scope = \"evaluation\"", "0");
    let unseen = Silence::NotApplicable(Absent::Phase(Phase::Evaluation));
    assert_eq!(skipped("seed-resnet50-bug", &phase), unseen);
    let blind = Silence::Blind(Hidden::Stacks);
    assert_eq!(skipped("nostacks-bug", &phase), blind, "without stacks no evaluation would be seen");
    let growth = budget("growth-per-iteration", "", "0");
    let unknown = skipped("noiter-single-forward-bug", &growth);
    assert_eq!(unknown, Silence::Blind(Hidden::Iterations), "one iteration is no proof of no growth");
    let site = budget("call-site-bytes", "call-site = \"train\"", "0");
    assert_eq!(skipped("nostacks-bug", &site), blind);
}

#[test]
fn growth_is_what_stays_behind() {
    let grows = measured("seed-leak-list", "growth-per-iteration", "");
    assert!(grows > Bytes::MIB.times(7) && grows < Bytes::MIB.times(9), "{grows}");
    assert_eq!(examine("seed-resnet50-fixed", &budget("growth-per-iteration", "", "\"1MiB\"")).findings, []);
}

/// A budget of nothing is passed by no stretch of what grows: it is found, or said not to be known.
#[test]
fn growth_is_never_passed_over() {
    let none = budget("growth-per-iteration", "", "0");
    for range in ["1..2", "1..4", "3..6", "4..7", "5..8", "7..8", "7..10", "2..9"] {
        let part = slice(snapshot("grow-replay-bug"), range.parse().unwrap(), Vec::new()).unwrap();
        let examination = examine_one("part", part, &none);
        let is_told = !examination.findings.is_empty()
            || examination.skipped.iter().any(|one| matches!(one.silence, Silence::Blind(_)));
        assert!(is_told, "{range}: {:?}", examination.skipped);
    }
}

#[test]
fn call_sites_are_frames_anywhere_in_the_stack() {
    let of =
        |pattern: &str| measured("seed-resnet50-bug", "call-site-bytes", &format!("call-site = '{pattern}'"));
    let (line, model) = (of(r"train\.py:16:run_resnet50$"), of("resnet.py:.*:_forward_impl"));
    assert_eq!(line, model, "the one line calls the model");
    assert!(of(r"train\.py:") > line);
}
