//! `check`, `stats`, `diff` and `whatif` of folders and patterns: the files that `check` finds there, a page or a document each.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

fn place(folder: &Path, files: &[(&str, &str)]) {
    for (name, case) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(root().join(recording(case)), path).unwrap();
    }
}

/// The documents of a command that exits with a status.
fn documents(folder: &Path, status: i32, arguments: &[&str]) -> Vec<Value> {
    let output = memlint_in(folder, &[arguments, &["--output-format", "json"]].concat());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(stdout(&output)).unwrap()
}

#[test]
fn stats_of_a_folder_are_those_of_its_files() {
    let folder = folder("stats-folder");
    let linear = "seed-linear";
    place(
        &folder,
        &[("run/rank0.pickle", linear), ("run/a/rank1.pickle", linear), ("run/.x.pickle", linear)],
    );
    let all = memlint_in(&folder, &["stats", "run"]);
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    let pages = ["run/a/rank1.pickle", "run/rank0.pickle"].map(|one| memlint_in(&folder, &["stats", one]));
    assert_eq!(stdout(&all), pages.each_ref().map(stdout).join("\n"));
    assert!(stderr(&all).contains("1 path was not looked at: `run/.x.pickle` (hidden)"), "{}", stderr(&all));
    let ranks: Vec<Value> =
        documents(&folder, 0, &["stats", "run"]).iter().map(|one| one["rank"].clone()).collect();
    assert_eq!(ranks, [1, 0]);
    assert_eq!(documents(&folder, 0, &["stats", "run/rank*"]).len(), 1, "an array, however many match");
    let alone = memlint_in(&folder, &["stats", "run/rank0.pickle", "--output-format", "json"]);
    assert!(serde_json::from_str::<Value>(stdout(&alone)).unwrap().is_object());
}

#[test]
fn what_cannot_be_read_does_not_hide_the_others() {
    let folder = folder("stats-unread");
    place(&folder, &[("run/rank0.pickle", "seed-linear"), ("run/rank2.pickle", "seed-linear")]);
    fs::write(folder.join("run/rank1.pickle"), b"").unwrap();
    assert_eq!(documents(&folder, 2, &["stats", "run"]).len(), 2);
    let said = memlint_in(&folder, &["stats", "run"]);
    assert!(stderr(&said).contains("`run/rank1.pickle` is empty"), "{}", stderr(&said));
    fs::write(folder.join("run/rank0.pickle"), b"").unwrap();
    fs::write(folder.join("run/rank2.pickle"), b"").unwrap();
    assert!(documents(&folder, 2, &["stats", "run"]).is_empty());
}

#[test]
fn what_is_said_of_one_of_several_snapshots_names_it() {
    let folder = folder("check-folder");
    place(&folder, &[("run/one.pickle", "nostacks-bug"), ("run/two.pickle", "grow-replay-bug")]);
    let told = |arguments: &[&str]| {
        let output = memlint_in(&folder, &[&["check", "run", "--isolated"], arguments].concat());
        stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let plain = told(&["--device-memory", "2GiB"]);
    assert!(plain.contains(" rules could not judge in run/one.pickle: "), "{plain}");
    assert!(plain.contains("were reserved on device 0 of run/one.pickle"), "{plain}");
    assert!(plain.contains("`memlint whatif run/one.pickle --device-memory 2GiB`"), "{plain}");
    let verbose = told(&["-v"]);
    assert!(verbose.contains("not judged in run/one.pickle: "), "{verbose}");
    assert!(verbose.contains("not applicable in all 2 snapshots: there is no other rank"), "{verbose}");
    let notes = verbose.matches("info: ").count();
    assert!(
        notes > 1 && verbose.matches("snapshot run/").count() >= notes,
        "each note names its own: {verbose}"
    );
    let concise = told(&["--output-format", "concise"]);
    assert!(concise.contains("; in run/two.pickle) help: "), "{concise}");
}

#[test]
fn what_other_settings_would_need_is_told_of_each() {
    let folder = folder("whatif-folder");
    place(&folder, &[("run/one.pickle", "seed-linear"), ("run/two.pickle", "seed-oom")]);
    let all = memlint_in(&folder, &["whatif", "run"]);
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    let pages = ["run/one.pickle", "run/two.pickle"].map(|one| memlint_in(&folder, &["whatif", one]));
    assert_eq!(stdout(&all), pages.each_ref().map(stdout).join("\n"));
    assert!(stdout(&all).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&all));
    assert_eq!(documents(&folder, 0, &["whatif", "run"]).len(), 2);
    fs::write(folder.join("run/one.pickle"), b"").unwrap();
    assert_eq!(documents(&folder, 2, &["whatif", "run"]).len(), 1, "what cannot be read hides no other");
}

#[test]
fn ranks_are_compared_with_the_same_ranks() {
    let folder = folder("diff-folders");
    let (bug, fixed) = ("seed-resnet50-bug", "seed-resnet50-fixed");
    place(&folder, &[("base/rank0.pickle", bug), ("base/rank1.pickle", fixed), ("base/rank2.pickle", bug)]);
    place(&folder, &[("head/rank1.pickle", bug), ("head/rank0.pickle", fixed)]);
    let pairs = |documents: &[Value]| -> Vec<(String, String)> {
        let text = |one: &Value| one.as_str().unwrap().to_owned();
        documents.iter().map(|one| (text(&one["base"]), text(&one["head"]))).collect()
    };
    let pair = |base: &str, head: &str| (format!("base/{base}.pickle"), format!("head/{head}.pickle"));
    let compared = documents(&folder, 0, &["diff", "base", "head"]);
    assert_eq!(pairs(&compared), [pair("rank0", "rank0"), pair("rank1", "rank1")]);
    let one = documents(&folder, 0, &["diff", "base/rank0.pickle", "head"]);
    assert_eq!(pairs(&one), [pair("rank0", "rank0"), pair("rank0", "rank1")], "one stands for all");
    let text = memlint_in(&folder, &["diff", "base", "head"]);
    let each = [0, 1].map(|rank| {
        let [base, head] = ["base", "head"].map(|side| format!("{side}/rank{rank}.pickle"));
        stdout(&memlint_in(&folder, &["diff", &base, &head])).to_owned()
    });
    assert_eq!(stdout(&text), each.join("\n"));
    let left = "warning: nothing was compared with `base/rank2.pickle` of the base\n";
    assert_eq!(stderr(&text), left);
    let back = memlint_in(&folder, &["diff", "head", "base"]);
    assert_eq!(back.status.code(), Some(2));
    assert!(stderr(&back).contains("`head` has no snapshot to hold `base/rank2.pickle` against"));
    assert_eq!(stdout(&back).matches("\n  head        base/rank").count(), 2, "the others are compared");
}

#[test]
fn files_of_a_folder_that_may_hold_a_snapshot_are_named() {
    let folder = folder("unknown-files");
    fs::copy(root().join(recording("seed-resnet50-fixed")), folder.join("rank0.pickle.zst")).unwrap();
    let strict = || {
        let output = memlint_in(&folder, &["check", ".", "--isolated", "--strict"]);
        (output.status.code(), stderr(&output).to_owned() + stdout(&output))
    };
    assert_eq!(strict().0, Some(0));
    let packed = fs::read(root().join(recording("seed-resnet50-fixed"))).unwrap();
    for (name, content, told) in
        [("rank1.bin", &packed[..12], "packed and cut off"), ("rank1.dump", &[][..], "(empty)")]
    {
        fs::write(folder.join(name), content).unwrap();
        let (code, said) = strict();
        assert!(code == Some(2) && said.contains(told), "{name}: {code:?} {said}");
        fs::remove_file(folder.join(name)).unwrap();
    }
    // A mark, a log of a rank that has its snapshot.
    for name in ["_SUCCESS", "rank0.err"] {
        fs::write(folder.join(name), "").unwrap();
    }
    assert_eq!(strict().0, Some(0), "{}", strict().1);
}
