//! What is found in a whole recording is found in a slice of it, at the same lines; and nothing that a slice says of itself
//! hides what its events show.

use memlint::edit::{anonymize, slice};
use memlint::engine::{Input, check, inherited};
use memlint::finding::{Finding, Severity};
use memlint::frames::Frames;
use memlint::pickle::PickleLimits;
use memlint::program::Program;
use memlint::snapshot::{Excerpt, Inherited, InheritedPlace, Snapshot};
use memlint::timeline::Timeline;

use crate::case::{self, Case};

fn findings(snapshot: Snapshot) -> Vec<Finding> {
    check(vec![Input::of("it".to_owned(), snapshot)]).findings
}

/// The same as it is read from the file.
fn reread(snapshot: &Snapshot) -> Snapshot {
    let mut pickle = Vec::new();
    snapshot.write(&mut pickle).unwrap();
    Snapshot::read(&pickle[..], &PickleLimits::default()).unwrap()
}

/// The rules of warnings and errors with their lines.
fn shown(findings: &[Finding]) -> Vec<(String, Option<u32>)> {
    let line = |one: &Finding| one.location.as_ref().map(|place| place.line);
    let mut all: Vec<_> = findings
        .iter()
        .filter(|one| one.severity > Severity::Info)
        .map(|one| (one.rule.to_string(), line(one)))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn iterations(snapshot: &Snapshot) -> usize {
    let (device, _) = snapshot.active_devices().next().unwrap();
    Program::of(snapshot, &Timeline::of(snapshot, device), &Frames::of(snapshot)).iterations.len()
}

fn faulty() -> impl Iterator<Item = (&'static Case, Vec<Finding>)> {
    let cases =
        case::all().iter().filter(|case| case.labels["expect"].as_array().is_some_and(|all| !all.is_empty()));
    cases.filter_map(|case| {
        let snapshot = case.snapshot();
        if iterations(&snapshot) < 3 {
            return None;
        }
        let found = findings(snapshot);
        (!shown(&found).is_empty()).then_some((case, found))
    })
}

fn part(case: &Case) -> Snapshot {
    let report = case.report();
    let last = iterations(&case.input.snapshot).min(5);
    let range = format!("{}..{last}", last - 2).parse().unwrap();
    reread(&slice(case.snapshot(), range, inherited(&report)).unwrap())
}

#[test]
fn a_slice_keeps_what_the_whole_shows_and_says_what_it_inherits() {
    let mut sliced_all = 0;
    for (case, whole) in faulty() {
        let sliced = findings(part(case));
        let (before, after) = (shown(&whole), shown(&sliced));
        let inherits = |one: &&Finding| one.evidence.iter().any(|one| one.name == "inherited");
        for one in sliced.iter().filter(inherits) {
            let same = |of: &Finding| of.rule == one.rule && of.fingerprint == one.fingerprint;
            assert!(whole.iter().any(same), "{}: {} is another finding in the slice", case.name, one.rule);
        }
        let lost: Vec<_> = before.iter().filter(|one| !after.contains(one)).collect();
        assert!(lost.is_empty(), "{}: {lost:?} is not in its slice", case.name);
        sliced_all += 1;
    }
    assert!(sliced_all >= 20, "only {sliced_all} recordings were sliced");
}

/// What three iterations of a recording show as a warning or an error, and the whole does not, or elsewhere: of a growth of
/// three steps nothing tells whether it goes on. A recording that is as short shows the same.
const ONLY_IN_PARTS: [(&str, &str); 17] = [
    ("bench-attention-settings-bug", "activations-without-backward"),
    ("cycle-closure-bug", "growing-residency"),
    ("cycle-gc-off-bug", "growing-residency"),
    ("gp-online-ucb-bug", "activations-without-backward"),
    ("graph-eval-sum-bug", "activations-without-backward"),
    ("graphpool-separate-bug", "private-pool-waste"),
    ("grow-replay-fixed", "growing-residency"),
    ("h2-treelstm-parent", "retained-graph"),
    ("ho-compiled", "overlapping-iterations"),
    ("ho-cyclegan", "growing-residency"),
    ("ho-detection", "fragmentation"),
    ("ho-serving", "growing-residency"),
    ("ho-trainer-cycle", "growing-residency"),
    ("nograd-teacher-bug", "overlapping-iterations"),
    ("pinned-prototypes-bug", "transient-spike"),
    ("style-runtime-cycle-bug", "growing-residency"),
    ("wild-prune-masks-bug", "late-zero-grad"),
];

#[test]
fn a_slice_shows_little_that_the_whole_does_not() {
    let mut more = Vec::new();
    for case in case::all() {
        if iterations(&case.input.snapshot) < 3 {
            continue;
        }
        let whole = shown(&findings(case.snapshot()));
        let new = shown(&findings(part(case))).into_iter().filter(|one| !whole.contains(one));
        more.extend(new.map(|(rule, line)| (case.name.clone(), rule, line)));
    }
    more.retain(|(name, rule, _)| !ONLY_IN_PARTS.contains(&(name.as_str(), rule.as_str())));
    assert!(more.is_empty(), "{more:?} only in a slice");
}

#[test]
fn a_forged_mark_adds_and_never_hides() {
    let (case, _) = faulty().next().unwrap();
    let honest = part(case);
    let mut forged = reread(&honest);
    let finding = |rule: &str, severity: &str| Inherited {
        rule: rule.to_owned(),
        severity: severity.to_owned(),
        confidence: "low".to_owned(),
        device: Some(0),
        place: Some(InheritedPlace { file: "/x.py".to_owned(), line: 1, function: "f".to_owned() }),
        stack: Vec::new(),
        zeroes_in_place: true,
    };
    let mut bare = reread(&honest);
    bare.excerpt.as_mut().unwrap().findings.clear();
    let seen = findings(bare);
    // Every finding of the slice once more and milder, and rules that there are none of.
    let mut claims = inherited(&check(vec![Input::of("it".to_owned(), honest)]));
    for claim in &mut claims {
        claim.severity = "info".to_owned();
    }
    claims.extend([finding("no-such-rule", "error"), finding("retained-graph", "info")]);
    forged.excerpt.as_mut().unwrap().findings = claims;
    let found = findings(reread(&forged));
    for one in &seen {
        let there = found.iter().any(|other| {
            (&other.rule, &other.location, other.severity) == (&one.rule, &one.location, one.severity)
        });
        assert!(there, "{}: {} is hidden", case.name, one.rule);
    }
    assert!(found.iter().all(|one| one.rule != "no-such-rule"));
    assert!(found.iter().any(|one| one.location.as_ref().is_some_and(|place| place.file == "/x.py")));
}

#[test]
fn without_names_a_mark_names_nobodys_files() {
    let (case, _) = faulty().next().unwrap();
    let part = part(case);
    let places = |snapshot: &Snapshot| -> Vec<InheritedPlace> {
        let excerpt = snapshot.excerpt.as_ref().unwrap();
        excerpt.findings.iter().filter_map(|one| one.place.clone()).collect()
    };
    let before = places(&part);
    let (count, lines) = (findings(reread(&part)).len(), shown(&findings(reread(&part))));
    let anonymous = reread(&anonymize(part));
    let after = places(&anonymous);
    assert!(!before.is_empty() && before.len() == after.len());
    for (before, after) in before.iter().zip(&after) {
        assert_ne!(before.file, after.file);
        assert_eq!(before.line, after.line);
    }
    let found = findings(anonymous);
    assert_eq!((found.len(), shown(&found)), (count, lines), "{}", case.name);
}

#[test]
fn a_mark_does_not_hide_that_a_recording_lost_its_beginning() {
    let is_told = |snapshot: Snapshot| {
        let found = findings(snapshot);
        found.into_iter().find(|one| one.rule == "truncated-history").map(|one| one.severity)
    };
    let mut rings = 0;
    for case in case::all().iter().filter(|case| is_told(case.snapshot()).is_some()) {
        let mut forged = case.snapshot();
        forged.excerpt = Some(Excerpt::of(1, 3, 3));
        assert_eq!(is_told(reread(&forged)), Some(Severity::Info), "{}", case.name);
        forged.excerpt.as_mut().unwrap().lost = true;
        assert_eq!(is_told(reread(&forged)), Some(Severity::Warning), "{}", case.name);
        rings += 1;
    }
    assert!(rings >= 3, "only {rings} recordings lost their beginning");
}
