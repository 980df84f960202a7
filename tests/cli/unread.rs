//! One bad file of several, and what of a folder is not looked at.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

const BUG: &str = "seed-resnet50-bug";
const FIXED: &str = "seed-resnet50-fixed";

fn copy(case: &str, folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(root().join(recording(case)), path).unwrap();
    }
}

/// A job of four ranks: two good ones, one half written, one empty.
fn job(name: &str, case: &str) -> std::path::PathBuf {
    let folder = folder(name);
    copy(case, &folder, &["run/rank0.pickle.zst", "run/rank3.pickle.zst"]);
    let whole = fs::read(root().join(recording(case))).unwrap();
    fs::write(folder.join("run/rank1.pickle.zst"), &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.join("run/rank2.pickle.zst"), b"").unwrap();
    folder
}

fn check(folder: &Path, more: &[&str]) -> Output {
    memlint_in(folder, &[&["check", "run", "--isolated"], more].concat())
}

fn first_line(output: &Output) -> &str {
    stdout(output).lines().next().unwrap_or_default()
}

fn json(folder: &Path, more: &[&str]) -> Value {
    serde_json::from_str(stdout(&check(folder, &[&["--output-format", "json"], more].concat()))).unwrap()
}

#[test]
fn bad_files_leave_no_verdict_and_hide_nothing_of_the_others() {
    let folder = job("unread-bug", BUG);
    for jobs in ["1", "2", "4"] {
        let output = check(&folder, &["--jobs", jobs]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(first_line(&output), "no verdict: 2 of 4 files could not be read");
        let said = stdout(&output);
        let (half, empty) =
            (said.find("rank1.pickle.zst` cannot be").unwrap(), said.find("is empty").unwrap());
        assert!(half < empty && empty < said.find("[missing-zero-grad]").unwrap(), "{said}");
        assert!(!said.contains("missing-rank"), "a rank that could not be read is not missing: {said}");
        assert!(stderr(&output).starts_with("error: 2 of 4 files could not be read"), "{}", stderr(&output));
    }
    let report = json(&folder, &[]);
    let of = |key: &str, field: &str| -> Vec<Value> {
        report[key].as_array().unwrap().iter().map(|one| one[field].clone()).collect()
    };
    assert_eq!(of("inputs", "path"), ["run/rank0.pickle.zst", "run/rank3.pickle.zst"]);
    assert_eq!(of("unread", "path"), ["run/rank1.pickle.zst", "run/rank2.pickle.zst"]);
    assert_eq!(of("unread", "rank"), [1, 2]);
    assert_eq!(
        (&report["verdict"]["outcome"], &report["verdict"]["unread"]),
        (&"no-verdict".into(), &2.into())
    );
    assert_eq!(report["summary"]["errors"], 1);
}

#[test]
fn every_format_names_every_bad_file() {
    let folder = job("unread-formats", FIXED);
    let of = |format: &str| stdout(&check(&folder, &["--output-format", format])).to_owned();
    for format in ["text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown"] {
        let text = of(format).replace('\\', "");
        for (name, reason) in
            [("rank1.pickle.zst", "cannot be decompressed"), ("rank2.pickle.zst", "is empty")]
        {
            assert!(text.contains(name) && text.contains(reason), "{format}: {text}");
        }
    }
    let sarif: Value = serde_json::from_str(&of("sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
    assert!(sarif["runs"][0]["results"].is_array(), "the others' findings are there");
    let junit = of("junit");
    let document = roxmltree::Document::parse(&junit).unwrap();
    let broken = document.descendants().filter(|one| one.has_tag_name("error"));
    let names: Vec<&str> = broken.filter_map(|one| one.parent()?.attribute("classname")).collect();
    assert_eq!(names, ["run/rank1.pickle.zst", "run/rank2.pickle.zst", "memlint"]);
    assert!(of("markdown").starts_with("## memlint: no verdict: 2 of 4 files could not be read\n"));
}

#[test]
fn a_bad_file_is_not_excused_and_changes_no_baseline() {
    let folder = job("unread-baseline", BUG);
    assert_eq!(check(&folder, &["--exit-zero"]).status.code(), Some(2), "nothing is known of it");
    let baseline = ["--baseline", "b.json", "--update-baseline", "--exit-zero"];
    let good = ["check", "run/rank0.pickle.zst", "--isolated"];
    assert_eq!(memlint_in(&folder, &[&good[..], &baseline].concat()).status.code(), Some(0));
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    let gone = text.replace("missing-zero-grad", "retained-graph");
    fs::write(folder.join("b.json"), &gone).unwrap();
    let pruned = check(&folder, &["--baseline", "b.json", "--prune-baseline"]);
    assert_eq!(pruned.status.code(), Some(2));
    assert!(!stdout(&pruned).contains("stale-baseline-entry"), "{}", stdout(&pruned));
    let kept = fs::read_to_string(folder.join("b.json")).unwrap();
    assert!(kept == gone, "what an unread rank may still have is not pruned");
    assert!(stderr(&pruned).contains("b.json: not written"), "{}", stderr(&pruned));
}

#[test]
fn where_no_file_is_good_there_is_a_report_all_the_same_and_one_alone_is_an_error() {
    let folder = folder("unread-all");
    fs::create_dir_all(folder.join("run")).unwrap();
    for name in ["a.pickle", "b.pickle"] {
        fs::write(folder.join("run").join(name), b"").unwrap();
    }
    let output = check(&folder, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(first_line(&output), "no verdict: 2 of 2 files could not be read");
    let missing = memlint_in(&folder, &["check", "run/a.pickle", "nowhere.pickle"]);
    assert!(stdout(&missing).contains("there is no file `nowhere.pickle`"), "{}", stdout(&missing));
    let alone = memlint_in(&folder, &["check", "run/a.pickle", "--output-file", "json=r.json"]);
    assert_eq!((alone.status.code(), stdout(&alone)), (Some(2), ""));
    assert!(stderr(&alone).contains("`run/a.pickle` is empty"), "{}", stderr(&alone));
    assert!(fs::read_to_string(folder.join("r.json")).unwrap().contains("\"error\""));
}

#[cfg(unix)]
#[test]
fn what_is_not_looked_at_is_counted_said_and_missed_by_a_strict_gate() {
    let folder = folder("unread-left-out");
    copy(FIXED, &folder, &["run/rank0.pickle.zst", "elsewhere/rank1.pickle.zst"]);
    assert_eq!(
        check(&folder, &["--strict"]).status.code(),
        Some(0),
        "{}",
        stdout(&check(&folder, &["--strict"]))
    );
    let pipe = folder.join("run/rank4.pickle");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    copy(
        FIXED,
        &folder,
        &["run/.rank2.pickle.zst", "run/.cache/rank3.pickle.zst", "run/1/2/3/4/5/rank5.pickle"],
    );
    std::os::unix::fs::symlink("../elsewhere", folder.join("run/linked")).unwrap();
    // What leads back, holds no snapshot or is a file is nothing to speak of.
    std::os::unix::fs::symlink("..", folder.join("run/1/back")).unwrap();
    fs::create_dir_all(folder.join("run/.git")).unwrap();
    std::os::unix::fs::symlink("rank0.pickle.zst", folder.join("run/last.pickle.zst")).unwrap();
    let plain = check(&folder, &["--jobs", "1"]);
    assert_eq!(plain.status.code(), Some(0), "{}", stderr(&plain));
    assert!(first_line(&plain).ends_with(", but not all snapshots were looked at"), "{}", first_line(&plain));
    let said = stdout(&plain).split_whitespace().collect::<Vec<_>>().join(" ");
    let listed = "5 paths were not looked at: `run/.cache` (hidden), `run/.rank2.pickle.zst` (hidden), \
                  `run/1/2/3/4/5` (too deep), `run/linked` (a link to a folder), `run/rank4.pickle` (no regular file)";
    assert!(said.contains(listed), "{said}");
    let strict = check(&folder, &["--strict"]);
    assert_eq!(strict.status.code(), Some(2));
    assert!(stderr(&strict).contains("not all snapshots were looked at"), "{}", stderr(&strict));
    assert_eq!(check(&folder, &["--strict", "--exit-zero"]).status.code(), Some(0));
    let by_pattern = memlint_in(&folder, &["check", "run/rank*", "--isolated", "--strict"]);
    assert_eq!(by_pattern.status.code(), Some(2), "a pattern opens no pipe either: {}", stdout(&by_pattern));
    assert!(stdout(&by_pattern).contains("1 path was not looked at: `run/rank4.pickle`"));
    let named = ["check", "run", "run/.rank2.pickle.zst", "--isolated"];
    assert!(
        !stdout(&memlint_in(&folder, &named)).contains("`run/.rank2.pickle.zst` (hidden)"),
        "what is named is looked at"
    );
}

#[test]
fn a_missing_middle_rank_is_said_first_and_missed_by_a_strict_gate() {
    let folder = folder("unread-missing-rank");
    copy(FIXED, &folder, &["run/rank0.pickle.zst", "run/rank1.pickle.zst", "run/rank3.pickle.zst"]);
    let plain = check(&folder, &[]);
    assert_eq!(plain.status.code(), Some(0));
    assert!(first_line(&plain).ends_with(", but not all snapshots were looked at"), "{}", first_line(&plain));
    assert!(stdout(&plain).contains("rank 2 has no snapshot"), "{}", stdout(&plain));
    assert_eq!(check(&folder, &["--strict"]).status.code(), Some(2));
}
