//! The baseline over recordings: what still matches, and what does not.

use memlint::engine::Report;
use memlint::finding::{Finding, Impact, Severity, Standing, Tolerance};
use memlint::gate::{Baseline, Terms};
use memlint::snapshot::Snapshot;

use crate::altered;
use crate::{report, snapshot};

/// One fault of each family, recorded with and without C++ frames.
const CASES: [&str; 7] = [
    "seed-resnet50-bug",
    "grow-replay-bug",
    "graph-rl-values-bug",
    "latezero-vit-bug",
    "cycle-closure-bug",
    "cat-kv-cache-bug",
    "xstream-record-bug",
];

fn terms() -> Terms<'static> {
    Terms { name: "memlint-baseline.json", tolerance: Tolerance::default(), selected: &|_| true }
}

/// The baseline of a report, written and read again.
fn baseline_of(report: &Report) -> Baseline {
    let mut text = Vec::new();
    Baseline::default().updated(report, &terms()).write(&mut text).unwrap();
    Baseline::read(std::str::from_utf8(&text).unwrap()).unwrap()
}

/// How many findings beyond notes stay open, and how many entries match nothing.
fn left(baseline: &Baseline, snapshot: Snapshot) -> (usize, usize) {
    let mut report = report(snapshot);
    baseline.settle(&mut report, &terms());
    let open = report.open().filter(|finding| finding.severity > Severity::Info).count();
    (open, report.notices.len())
}

#[test]
fn entries_survive_edits_checkouts_libraries_and_addresses() {
    for case in CASES {
        let baseline = baseline_of(&report(snapshot(case)));
        assert_eq!(left(&baseline, snapshot(case)), (0, 0), "{case}: as it was");
        for (alteration, altered) in [
            ("lines moved", altered::edited_elsewhere(snapshot(case))),
            ("another checkout", altered::elsewhere(snapshot(case))),
            ("a newer PyTorch", altered::newer_pytorch(snapshot(case))),
            ("another time", altered::at_another_time(snapshot(case))),
            ("another length", altered::shorter(snapshot(case))),
        ] {
            assert_eq!(left(&baseline, altered), (0, 0), "{case}: {alteration}");
        }
    }
}

#[test]
fn another_function_is_another_finding_and_the_entry_is_stale() {
    for case in CASES {
        let before = report(snapshot(case));
        let known = before.findings.iter().filter(|finding| finding.severity > Severity::Info).count();
        let (open, stale) = left(&baseline_of(&before), altered::in_another_function(snapshot(case)));
        assert!(open > 0 && stale > 0, "{case}: {open} open and {stale} stale of {known}");
    }
}

#[test]
fn a_finding_that_has_grown_is_open_and_one_that_has_shrunk_is_not() {
    let small = report(snapshot("grow-replay-bug"));
    let large = || report(altered::larger(snapshot("grow-replay-bug"), 4));
    let baseline = baseline_of(&small);
    let mut grown = large();
    baseline.settle(&mut grown, &terms());
    let finding = &grown.findings[0];
    assert_eq!((&*finding.rule, &finding.standing), ("growing-residency", &Standing::Open));
    let text = &finding.evidence.last().unwrap().text;
    assert_eq!(text, "27.6 MiB per iteration in the baseline, now 110.3 MiB");

    let mut shrunk = report(snapshot("grow-replay-bug"));
    baseline_of(&large()).settle(&mut shrunk, &terms());
    assert_eq!(shrunk.findings[0].standing, Standing::Baselined);
    let text = &shrunk.findings[0].evidence.last().unwrap().text;
    assert!(text.starts_with("110.3 MiB per iteration in the baseline, now 27.6 MiB"), "{text}");
    assert!(text.contains("--update-baseline"), "{text}");
    // What a second line keeps, a hundredth of it, was worth a warning when it was four times as large.
    let stale: Vec<_> = shrunk.notices.iter().map(|notice| notice.kind.name()).collect();
    assert_eq!(stale, ["stale-baseline-entry"]);
}

#[test]
fn a_rule_that_could_not_look_leaves_its_entries_alone() {
    let baseline = baseline_of(&report(snapshot("grow-replay-bug")));
    let blind = || altered::with_stacks(snapshot("grow-replay-bug"), |_| Vec::new());
    let mut unseen = report(blind());
    assert!(unseen.skipped.iter().any(|skipped| skipped.rule == "growing-residency"));
    assert_eq!(baseline.pruned(&unseen, &terms()), baseline);
    let mut kept = Vec::new();
    baseline.updated(&unseen, &terms()).write(&mut kept).unwrap();
    assert!(String::from_utf8(kept).unwrap().contains("growing-residency"));
    baseline.settle(&mut unseen, &terms());
    assert!(unseen.notices.is_empty(), "{:?}", unseen.notices);

    let ignored = Terms { selected: &|rule| rule != "growing-residency", ..terms() };
    let mut fixed = report(snapshot("grow-replay-fixed"));
    baseline.settle(&mut fixed, &ignored);
    assert!(fixed.notices.is_empty());
    baseline.settle(&mut fixed, &terms());
    assert_eq!(fixed.notices[0].kind.name(), "stale-baseline-entry");
}

#[test]
fn a_second_finding_does_not_hide_behind_one_entry() {
    let once = report(snapshot("grow-replay-bug"));
    let baseline = baseline_of(&once);
    let mut twice = report(snapshot("grow-replay-bug"));
    let double = twice.findings[0].clone();
    twice.findings.push(double);
    baseline.settle(&mut twice, &terms());
    let counts =
        |finding: &&Finding| finding.rule == "growing-residency" && finding.severity > Severity::Info;
    let open: Vec<_> = twice.open().filter(counts).collect();
    assert_eq!(open.len(), 1);
    assert!(open[0].evidence.last().unwrap().text.contains("1 finding of this kind here"));

    let both = baseline_of(&{
        let mut both = report(snapshot("grow-replay-bug"));
        let double = both.findings[0].clone();
        both.findings.push(double);
        both
    });
    both.settle(&mut twice, &terms());
    assert_eq!(twice.open().filter(counts).count(), 0);
}

/// Findings about the recording itself, and one about a share of the steps: there is nothing of theirs that could be counted in bytes.
const WITHOUT_SIZE: [&str; 3] = ["truncated-history", "no-stacks", "skipped-optimizer-step"];

#[test]
fn whatever_can_be_known_has_a_size_or_says_that_it_has_none() {
    for case in [
        "seed-oom",
        "thrash-empty-cache-bug",
        "optstate-recreate-bug",
        "cycle-closure-bug",
        "trunc-ring-bug",
        "nostacks-bug",
        "frag-curriculum-bug",
        "latezero-vit-bug",
    ] {
        let mut known = report(snapshot(case));
        baseline_of(&known).settle(&mut known, &terms());
        for finding in known.findings.iter().filter(|finding| finding.severity > Severity::Info) {
            assert_eq!(finding.standing, Standing::Baselined, "{case}: {}", finding.rule);
            let measured = finding.impact != Impact::default();
            assert_eq!(measured, !WITHOUT_SIZE.contains(&&*finding.rule), "{case}: {}", finding.rule);
            let said = finding.evidence.last().is_some_and(|measure| measure.text.contains("no size"));
            assert_eq!(said, !measured, "{case}: {}", finding.rule);
        }
    }
}
