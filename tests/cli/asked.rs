//! Green means that what was asked for was looked at: every rank, every file, every rule and budget that was named.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{folder, memlint_in, recording, root, stderr, stdout};

/// A recording in which nothing is wrong.
const SOUND: &str = "seed-resnet50-fixed";

fn place(folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(root().join(recording(SOUND)), path).unwrap();
    }
}

/// Exit status of a check, and all that it says.
fn check(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = memlint_in(folder, &[&["check"], arguments].concat());
    (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
}

/// The same without breaks of lines.
fn unwrapped(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_rank_that_the_base_has_alone_is_missed() {
    let folder = folder("asked-base");
    place(&folder, &["base/rank0.pickle", "base/rank1.pickle", "base/rank2.pickle"]);
    place(&folder, &["head/rank0.pickle", "head/rank1.pickle", "one/rank0.pickle"]);
    let (status, said) = check(&folder, &["head", "--against", "base"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("rank 2 has no snapshot here, and one in the base"), "{said}");
    let (status, said) = check(&folder, &["head", "--against", "base", "--strict"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("not all snapshots were looked at"), "{said}");
    assert_eq!(check(&folder, &["base", "--against", "base", "--strict"]).0, Some(0));
    assert_eq!(check(&folder, &["head", "--against", "one/rank0.pickle", "--strict"]).0, Some(0));
}

#[test]
fn a_file_that_is_named_like_the_others_is_read_whatever_is_in_it() {
    let folder = folder("asked-named");
    place(&folder, &["out/rank0.memory", "out/rank1.memory"]);
    fs::write(folder.join("out/rank0.log"), "loss 0.3").unwrap();
    fs::write(folder.join("out/notes2.txt"), "nothing").unwrap();
    let (status, said) = check(&folder, &["out", "--strict"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("no findings in 2 snapshots"), "{said}");
    for (name, content) in [
        ("rank2.memory", &b""[..]),
        ("rank2.memory.tmp", b""),
        ("rank2.memory.bz2", b"BZh91AY&SY"),
        ("other.pickle.7z", b"7z\xbc\xaf\x27\x1c"),
    ] {
        let path = folder.join("out").join(name);
        fs::write(&path, content).unwrap();
        let (status, said) = check(&folder, &["out"]);
        assert_eq!(status, Some(2), "{name}: {said}");
        assert!(said.contains("1 of 3 files could not be read") && said.contains(name), "{said}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_job_of_so_many_ranks_misses_its_last() {
    let folder = folder("asked-ranks");
    place(&folder, &["out/rank0.pickle", "out/rank1.pickle", "run.pickle"]);
    assert_eq!(check(&folder, &["out", "--strict", "--ranks", "2"]).0, Some(0));
    let (status, said) = check(&folder, &["out", "--strict", "--ranks", "4"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(
        said.contains("ranks 2, 3 have no snapshot in") && unwrapped(&said).contains("2 ranks of 4"),
        "{said}"
    );
    let (_, said) = check(&folder, &["run.pickle", "--ranks", "2"]);
    assert!(
        unwrapped(&said).contains("ranks 0, 1 have no snapshot that tells its rank by its name"),
        "{said}"
    );
    for rank in ["0", "1"] {
        let (snapshot, part) = (format!("out/rank{rank}.pickle"), format!("rank{rank}.memlint"));
        assert_eq!(memlint_in(&folder, &["examine", &snapshot, "-o", &part]).status.code(), Some(0));
    }
    let conclude = |ranks: &str| memlint_in(&folder, &["conclude", ".", "--ranks", ranks]).status.code();
    assert_eq!((conclude("2"), conclude("3")), (Some(0), Some(2)));
}

#[test]
fn rules_that_compare_judge_nothing_alone() {
    let folder = folder("asked-compare");
    place(&folder, &["rank0.pickle", "rank1.pickle"]);
    for rules in ["peak-regression", "peak-regression,growth-regression"] {
        let (status, said) = check(&folder, &["rank0.pickle", "--select", rules]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("--against BASE"), "{said}");
        let compared = ["rank0.pickle", "--select", rules, "--against", "rank1.pickle"];
        assert_eq!(check(&folder, &compared).0, Some(0));
    }
    let (status, said) = check(&folder, &["rank0.pickle", "--select", "rank-imbalance"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("no rule could judge") && said.contains("all ranks together"), "{said}");
    assert_eq!(check(&folder, &[".", "--select", "rank-imbalance"]).0, Some(0));
}

#[test]
fn a_budget_that_measures_nothing_is_told() {
    let folder = folder("asked-budget");
    place(&folder, &["run.pickle"]);
    let budget = |of: &str| {
        let text = format!(
            "[budget.cache]\nmetric = \"call-site-bytes\"\ncall-site = \"{of}\"\nlimit = \"70GiB\"\n"
        );
        fs::write(folder.join("memlint.toml"), text).unwrap();
    };
    budget("no_such_function");
    let (status, said) = check(&folder, &["run.pickle"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("budget.cache measured nothing: no allocation was made at the call site"),
        "{said}"
    );
    let (status, said) = check(&folder, &["run.pickle", "--strict"]);
    assert_eq!(status, Some(2), "{said}");
    budget("train.py");
    let (status, said) = check(&folder, &["run.pickle", "--strict"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("measured nothing"), "{said}");
}

#[test]
fn a_baseline_that_a_base_stands_in_for_is_named() {
    let folder = folder("asked-baseline");
    place(&folder, &["run.pickle", "base.pickle"]);
    fs::write(folder.join("memlint.toml"), "[baseline]\nfile = \"known.json\"\n").unwrap();
    let (status, said) = check(&folder, &["run.pickle", "--against", "base.pickle", "-v"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("known.json` is not heeded"), "{said}");
}

#[test]
fn the_last_lines_say_what_became_of_what_was_found() {
    let warned = recording("latezero-vit-bug");
    let said = |more: &[&str]| check(root(), &[&[&*warned, "--isolated"], more].concat());
    for (more, status, line) in [
        (&[][..], 0, "\npassed: nothing at or above error\n"),
        (&["--fail-on", "never"], 0, "\npassed: by `--fail-on never` nothing fails\n"),
        (&["--fail-on", "warning"], 1, "\nfailed: 1 finding at or above warning\n"),
    ] {
        let (code, said) = said(more);
        assert_eq!(code, Some(status), "{said}");
        assert!(said.contains(line), "{line} is not in {said}");
    }
}

#[test]
fn programs_are_told_on_standard_output_that_there_is_no_verdict() {
    let folder = folder("asked-output");
    fs::write(folder.join("bad.pickle"), "no snapshot").unwrap();
    let output = |format: &str| memlint_in(&folder, &["check", "bad.pickle", "--output-format", format]);
    for format in ["json", "sarif", "gitlab"] {
        let output = output(format);
        assert_eq!(output.status.code(), Some(2));
        let document: Value = serde_json::from_str(stdout(&output)).unwrap();
        assert!(document.to_string().contains("bad.pickle"), "{document}");
    }
    assert!(stdout(&output("junit")).contains("<error"), "{}", stdout(&output("junit")));
    let annotation = output("github");
    assert!(stdout(&annotation).starts_with("::error title=memlint::no verdict"), "{}", stdout(&annotation));
    for format in ["text", "concise"] {
        assert_eq!(stdout(&output(format)), "", "the error is on standard error");
    }
}

#[test]
fn a_budget_holds_whatever_is_selected() {
    let folder = folder("asked-selected");
    place(&folder, &["run.pickle"]);
    fs::write(folder.join("memlint.toml"), "[budget.peak]\nmetric = \"peak-requested\"\nlimit = \"1MiB\"\n")
        .unwrap();
    for (arguments, status) in [
        (&["run.pickle", "--select", "leak"][..], 1),
        (&["run.pickle", "--select", "leak", "--ignore", "budget"], 0),
        (&["run.pickle", "--ignore", "budget.peak"], 0),
    ] {
        let (found, said) = check(&folder, arguments);
        assert_eq!(found, Some(status), "{arguments:?}: {said}");
    }
}

#[test]
fn a_budget_of_a_role_is_blind_without_stacks() {
    let folder = folder("asked-role");
    fs::copy(root().join(recording("nostacks-bug")), folder.join("run.pickle")).unwrap();
    let budget = "[budget.activations]\nmetric = \"role-bytes\"\nrole = \"activation\"\nlimit = \"1KiB\"\n";
    fs::write(folder.join("memlint.toml"), budget).unwrap();
    let (status, said) = check(&folder, &["run.pickle", "--strict", "-v"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("budget.activations"), "{said}");
}

#[test]
fn no_verdict_is_told_as_a_failure() {
    let folder = folder("asked-fails");
    place(&folder, &["out/rank0.pickle"]);
    fs::write(folder.join("out/rank1.pickle"), "no snapshot").unwrap();
    let output = memlint_in(&folder, &["check", "out", "--output-format", "json"]);
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(report["verdict"]["outcome"], "no-verdict");
    assert_eq!(report["verdict"]["fails"], true);
}

#[test]
fn what_stands_behind_a_snapshot_in_its_file_is_refused() {
    let folder = folder("asked-behind");
    place(&folder, &["run.pickle.zst"]);
    let packed = fs::read(folder.join("run.pickle.zst")).unwrap();
    let one = zstd::decode_all(packed.as_slice()).unwrap();
    fs::write(folder.join("one.pickle"), &one).unwrap();
    assert_eq!(check(&folder, &["one.pickle"]).0, Some(0));
    let twice = [one.as_slice(), &one].concat();
    let over_a_longer = [one.as_slice(), b"K\x01"].concat();
    for (name, bytes) in [("twice.pickle", twice), ("over.pickle", over_a_longer)] {
        fs::write(folder.join(name), bytes).unwrap();
        let (status, said) = check(&folder, &[name]);
        assert_eq!(status, Some(2), "{said}");
        assert!(unwrapped(&said).contains(&format!("ends at byte {}", one.len())), "{said}");
    }
    fs::write(folder.join("packed.pickle.zst"), [packed.as_slice(), &packed].concat()).unwrap();
    assert_eq!(check(&folder, &["packed.pickle.zst"]).0, Some(2), "frames of one stream");
}

#[test]
fn a_configuration_that_is_there_and_cannot_be_read_is_no_verdict() {
    let folder = folder("asked-link");
    place(&folder, &["run.pickle"]);
    std::os::unix::fs::symlink("gone.toml", folder.join("memlint.toml")).unwrap();
    let (status, said) = check(&folder, &["run.pickle"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("memlint.toml"), "{said}");
    fs::remove_file(folder.join("memlint.toml")).unwrap();
    assert_eq!(check(&folder, &["run.pickle"]).0, Some(0));
    fs::create_dir(folder.join("memlint.toml")).unwrap();
    assert_eq!(check(&folder, &["run.pickle"]).0, Some(2));
}

#[test]
fn growth_that_too_few_iterations_hide_is_told() {
    let folder = folder("asked-growth");
    place(&folder, &["long.pickle"]);
    let cut = ["slice", "long.pickle", "--iterations", "2..3", "-o", "short.pickle"];
    assert_eq!(memlint_in(&folder, &cut).status.code(), Some(0));
    for (head, base) in [("long.pickle", "short.pickle"), ("short.pickle", "long.pickle")] {
        let (status, said) = check(&folder, &[head, "--against", base, "--strict"]);
        assert_eq!(status, Some(2), "{said}");
        assert!(unwrapped(&said).contains("growth is not compared on device 0"), "{said}");
    }
    let (_, said) = check(&folder, &["short.pickle", "--against", "short.pickle"]);
    assert!(!said.contains("growth is not compared"), "{said}");
}

#[test]
fn a_budget_is_told_however_sure_its_measure_is() {
    let folder = folder("asked-sure");
    place(&folder, &["run.pickle"]);
    let budget = "[budget.activations]\nmetric = \"role-bytes\"\nrole = \"activation\"\nlimit = \"1KiB\"\n";
    fs::write(folder.join("memlint.toml"), budget).unwrap();
    for confidence in ["low", "high"] {
        let (status, said) = check(&folder, &["run.pickle", "--min-confidence", confidence]);
        assert_eq!(status, Some(1), "{said}");
    }
}

#[test]
fn what_a_missing_rank_may_show_stays_in_the_baseline() {
    let folder = folder("asked-prune");
    for name in ["rank0.pickle", "rank2.pickle"] {
        fs::create_dir_all(folder.join("out")).unwrap();
        fs::copy(root().join(recording(SOUND)), folder.join("out").join(name)).unwrap();
    }
    fs::copy(root().join(recording("seed-leak-list")), folder.join("out/rank1.pickle")).unwrap();
    let write = |flag: &str| check(&folder, &["out", "--baseline", "known.json", flag]);
    let known = || fs::read_to_string(folder.join("known.json")).unwrap();
    let (status, said) = write("--update-baseline");
    assert_eq!(status, Some(0), "{said}");
    let written = known();
    assert!(written.contains("growing-residency"), "{written}");
    fs::remove_file(folder.join("out/rank1.pickle")).unwrap();
    for flag in ["--prune-baseline", "--update-baseline"] {
        let (_, said) = write(flag);
        assert!(said.contains("rank 1 has no snapshot") && !said.contains("not found any more"), "{said}");
        assert_eq!(known(), written, "{flag}");
    }
    fs::rename(folder.join("out/rank2.pickle"), folder.join("out/rank1.pickle")).unwrap();
    write("--prune-baseline");
    assert!(!known().contains("growing-residency"), "{}", known());
}

#[test]
fn no_strict_verdict_names_the_rules_that_could_not_judge() {
    let said = check(root(), &[&recording("nostacks-bug"), "--isolated", "--strict"]).1;
    let said = unwrapped(&said);
    assert!(
        said.contains("(activations-without-backward") && said.contains(" more) could not judge"),
        "{said}"
    );
}
