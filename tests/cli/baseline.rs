//! `memlint check --baseline`: what passes, what does not, what is written, and what is refused.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{folder, golden, memlint_in, recording, root, stderr, stdout};

/// A folder with recordings of the corpus under short names.
fn with(name: &str, cases: &[&str]) -> PathBuf {
    let folder = folder(name);
    for case in cases {
        fs::copy(root().join(recording(case)), folder.join(format!("{case}.zst"))).unwrap();
    }
    folder
}

/// Exit status, standard error, standard output.
fn check(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = memlint_in(folder, &[&["check"], arguments].concat());
    (output.status.code().unwrap(), stderr(&output).to_owned(), stdout(&output).to_owned())
}

#[test]
fn a_known_leak_passes_and_another_does_not() {
    let folder = with("baseline", &["grow-replay-bug", "seed-resnet50-bug"]);
    let (code, said, _) =
        check(&folder, &["grow-replay-bug.zst", "--baseline", "b.json", "--update-baseline"]);
    assert_eq!((code, said.as_str()), (0, "b.json: 1 entry (1 new)\n"));
    assert_eq!(check(&folder, &["grow-replay-bug.zst", "--baseline", "b.json"]).0, 0);
    let (code, _, report) = check(&folder, &["seed-resnet50-bug.zst", "--baseline", "b.json"]);
    assert_eq!(code, 1);
    assert!(report.contains("missing-zero-grad"));
    assert_eq!(check(&folder, &["grow-replay-bug.zst"]).0, 1, "without it nothing is known");
}

#[test]
fn what_is_written_reads_well_and_is_the_same_every_time() {
    let folder = with("baseline-text", &["seed-leak-list", "thrash-empty-cache-bug"]);
    let both =
        ["seed-leak-list.zst", "thrash-empty-cache-bug.zst", "--baseline", "b.json", "--update-baseline"];
    assert_eq!(check(&folder, &both).0, 0);
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    golden("baseline", &text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    fs::remove_file(folder.join("b.json")).unwrap();
    check(&folder, &["thrash-empty-cache-bug.zst", "seed-leak-list.zst", both[2], both[3], both[4]]);
    assert_eq!(
        fs::read_to_string(folder.join("b.json")).unwrap(),
        text,
        "the order of inputs does not matter"
    );
    let (_, said, _) = check(&folder, &both);
    assert_eq!(said, "b.json: 4 entries (as before)\n");
}

#[test]
fn reasons_stay_when_the_rest_is_updated() {
    let folder = with("baseline-reason", &["grow-replay-bug"]);
    let update = ["grow-replay-bug.zst", "--baseline", "b.json", "--update-baseline", "-q"];
    assert_eq!(check(&folder, &update).1, "", "quiet");
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    let mut written: Value = serde_json::from_str(&text).unwrap();
    written["entries"][0]["reason"] = "the buffer is bounded in production".into();
    written["entries"][0]["where"] = "train.py:1 in nowhere".into();
    fs::write(folder.join("b.json"), written.to_string()).unwrap();
    check(&folder, &update);
    let again: Value = serde_json::from_str(&fs::read_to_string(folder.join("b.json")).unwrap()).unwrap();
    assert_eq!(again["entries"][0]["reason"], "the buffer is bounded in production");
    assert_eq!(again["entries"][0]["where"], "train.py:34 in observe");
}

#[test]
fn pruning_only_removes() {
    let folder = with("baseline-prune", &["grow-replay-bug", "seed-resnet50-bug", "seed-resnet50-fixed"]);
    let both = ["grow-replay-bug.zst", "seed-resnet50-bug.zst", "--baseline", "b.json", "--update-baseline"];
    assert_eq!(check(&folder, &both).0, 0);
    let prune = |snapshot| check(&folder, &[snapshot, "--baseline", "b.json", "--prune-baseline"]);
    let (code, said, _) = prune("seed-resnet50-bug.zst");
    assert_eq!((code, said.as_str()), (0, "b.json: 1 entry (1 gone)\n"));
    let (code, said, _) = prune("grow-replay-bug.zst");
    assert_eq!((code, said.as_str()), (1, "b.json: 0 entries (1 gone)\n"), "the leak is not added");
}

#[test]
fn entries_that_match_nothing_are_a_warning() {
    let folder = with("baseline-stale", &["seed-resnet50-bug", "seed-resnet50-fixed"]);
    check(&folder, &["seed-resnet50-bug.zst", "--baseline", "b.json", "--update-baseline"]);
    let fixed = ["seed-resnet50-fixed.zst", "--baseline", "b.json"];
    assert_eq!(check(&folder, &fixed).0, 0);
    let (code, _, _) = check(&folder, &[&fixed[..], &["--fail-on", "warning"]].concat());
    assert_eq!(code, 1, "a warning like any other");
}

#[test]
fn a_baseline_that_cannot_be_trusted_is_no_verdict() {
    let folder = with("baseline-bad", &["grow-replay-bug"]);
    check(&folder, &["grow-replay-bug.zst", "--baseline", "good.json", "--update-baseline"]);
    let good = fs::read_to_string(folder.join("good.json")).unwrap();
    let entry = serde_json::from_str::<Value>(&good).unwrap()["entries"][0].clone();
    let one = |key: &str, value: Value| {
        let mut entry = entry.clone();
        entry[key] = value;
        serde_json::json!({ "version": 1, "entries": [entry] }).to_string()
    };
    let twice = serde_json::to_string_pretty(&serde_json::json!({ "version": 1, "entries": [entry, entry] }));
    let bad = [
        ("empty", String::new()),
        ("cut", good.get(..good.len() / 2).unwrap().to_owned()),
        ("not-json", "version = 1\n".to_owned()),
        ("list", "[]".to_owned()),
        ("no-version", r#"{"entries": []}"#.to_owned()),
        ("newer", good.replace("\"version\": 1", "\"version\": 2")),
        ("zero", good.replace("\"version\": 1", "\"version\": 0")),
        ("no-entries", r#"{"version": 1}"#.to_owned()),
        ("unknown-key", r#"{"version": 1, "entries": [], "ignore": "all"}"#.to_owned()),
        ("misspelt-reason", one("reasons", "meant".into())),
        ("text-for-number", one("measure", serde_json::json!({ "peak_bytes": "800 MiB" }))),
        ("negative", one("measure", serde_json::json!({ "peak_bytes": -1 }))),
        ("severity", one("severity", "fatal".into())),
        ("fingerprint", one("fingerprint", "v1:12".into())),
        ("unknown-rule", one("rule", "growing-residence".into())),
        ("entry-no-object", r#"{"version": 1, "entries": ["growing-residency"]}"#.to_owned()),
        ("repeated", twice.unwrap()),
    ];
    let mut said = String::new();
    for (name, text) in bad {
        fs::write(folder.join("bad.json"), text).unwrap();
        for flag in ["--fail-on=never", "--update-baseline", "--prune-baseline"] {
            let (code, error, report) =
                check(&folder, &["grow-replay-bug.zst", "--baseline", "bad.json", flag]);
            assert_eq!((code, report.as_str()), (2, ""), "{name} {flag}");
            if flag == "--fail-on=never" {
                let _ = writeln!(said, "{name}: {error}");
            }
        }
    }
    golden("bad-baseline", &said);
}

#[test]
fn a_baseline_that_is_not_there_is_no_verdict() {
    let folder = with("baseline-missing", &["grow-replay-bug"]);
    for flag in ["--fail-on=never", "--prune-baseline"] {
        let (code, error, _) = check(&folder, &["grow-replay-bug.zst", "--baseline", "b.json", flag]);
        assert_eq!(code, 2);
        assert!(error.contains("`b.json`") && error.contains("--update-baseline"), "{error}");
    }
    for flag in ["--update-baseline", "--prune-baseline"] {
        let (code, error, _) = check(&folder, &["grow-replay-bug.zst", flag]);
        assert_eq!(code, 2);
        assert!(error.contains("does not say which file"), "{error}");
    }
    let (code, _, _) = check(&folder, &["grow-replay-bug.zst", "--baseline", ".", "--update-baseline"]);
    assert_eq!(code, 2, "a folder is no baseline");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing was written");
}

#[test]
fn a_check_that_fails_writes_no_baseline() {
    let folder = with("baseline-unwritten", &["grow-replay-bug"]);
    let update = ["grow-replay-bug.zst", "missing.zst", "--baseline", "b.json", "--update-baseline"];
    assert_eq!(check(&folder, &update).0, 2);
    assert!(!folder.join("b.json").exists());
}

#[test]
fn the_tolerance_decides_what_has_grown() {
    let folder = with("baseline-tolerance", &["grow-replay-bug"]);
    check(&folder, &["grow-replay-bug.zst", "--baseline", "b.json", "--update-baseline"]);
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    let mut written: Value = serde_json::from_str(&text).unwrap();
    let grows = written["entries"][0]["measure"]["bytes_per_iteration"].as_u64().unwrap();
    written["entries"][0]["measure"]["bytes_per_iteration"] = (grows * 4 / 5).into();
    fs::write(folder.join("b.json"), written.to_string()).unwrap();
    let with = |tolerance| {
        let arguments = ["grow-replay-bug.zst", "--baseline", "b.json", "--baseline-tolerance", tolerance];
        check(&folder, &arguments)
    };
    let (code, _, report) = with("10%");
    assert_eq!(code, 1, "a quarter more than known");
    assert!(report.contains("22.1 MiB per iteration in"), "{report}");
    assert_eq!(with("30%").0, 0);
    assert_eq!((with("10MB").0, with("-5%").0), (2, 2));
}

#[test]
fn an_entry_of_a_budget_that_is_gone_is_stale_and_no_error() {
    let folder = with("baseline-budget", &["seed-linear"]);
    fs::write(
        folder.join("memlint.toml"),
        "[lint]\nselect = [\"budget\"]\n\n[budget.small]\nmetric = \"peak-requested\"\nlimit = 1\n",
    )
    .unwrap();
    let check = |arguments: &[&str]| {
        check(&folder, &[&["seed-linear.zst", "--baseline", "b.json"], arguments].concat())
    };
    assert_eq!(check(&["--update-baseline"]).1, "b.json: 1 entry (1 new)\n");
    assert_eq!(check(&[]).0, 0);
    let (code, said, _) = check(&["--isolated"]);
    assert_eq!(code, 0, "{said}");
}

/// Sets a number of the only entry of `b.json`; `None` leaves it without any, as an earlier memlint wrote it.
fn measured(folder: &Path, bytes_at_once: Option<u64>) {
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    let mut written: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(written["entries"].as_array().unwrap().len(), 1, "{text}");
    let measure =
        bytes_at_once.map_or(serde_json::json!({}), |bytes| serde_json::json!({ "bytes_at_once": bytes }));
    written["entries"][0]["measure"] = measure;
    fs::write(folder.join("b.json"), written.to_string()).unwrap();
}

#[test]
fn a_budget_that_is_passed_by_more_than_is_known_is_told() {
    let folder = with("baseline-budget-grown", &["seed-linear"]);
    let limit = "[lint]\nselect = [\"budget\"]\n\n[budget.card]\nmetric = \"peak-requested\"\nlimit = 1\n";
    fs::write(folder.join("memlint.toml"), limit).unwrap();
    grows_by_more_than_is_known(&folder, "seed-linear.zst");
}

#[test]
fn a_failure_that_wanted_more_than_is_known_is_told() {
    let folder = with("baseline-oom-grown", &["seed-oom"]);
    fs::write(folder.join("memlint.toml"), "[lint]\nselect = [\"oom\"]\n").unwrap();
    grows_by_more_than_is_known(&folder, "seed-oom.zst");
}

/// An entry covers what is no larger, tells what is, and covers nothing where it has no number.
fn grows_by_more_than_is_known(folder: &Path, snapshot: &str) {
    let run = |more: &[&str]| check(folder, &[&[snapshot, "--baseline", "b.json"], more].concat());
    assert_eq!(run(&["--update-baseline"]).0, 0);
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    let bytes = written["entries"][0]["measure"]["bytes_at_once"].as_u64().unwrap();
    assert_eq!(run(&["--baseline-tolerance", "0%"]).0, 0);
    measured(folder, Some(bytes / 2));
    let (code, _, report) = run(&[]);
    assert_eq!(code, 1, "twice as large as known");
    assert!(report.contains("at once in the baseline, now"), "{report}");
    measured(folder, None);
    let (code, _, report) = run(&["--baseline-tolerance", "500%"]);
    assert_eq!(code, 1, "a size that nobody wrote down covers none");
    assert!(report.replace("\n  ", " ").contains("--update-baseline"), "{report}");
    assert_eq!((run(&["--update-baseline"]).0, run(&[]).0), (0, 0), "renewed");
}
