//! Jobs of several processes: folders, patterns, ranks; and what `stats` says of unknown parts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{folder, golden, memlint_in, recording, root, stderr, stdout};

/// Copies one small recording to several places of a folder.
fn place(folder: &Path, names: &[&str]) {
    copy("seed-linear", folder, names);
}

/// The names and ranks of what a check read.
fn read(folder: &Path, argument: &str) -> Vec<(String, Option<u64>)> {
    let arguments = ["check", argument, "--output-format", "json", "--exit-zero"];
    let output = memlint_in(folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let inputs = report["inputs"].as_array().unwrap();
    for finding in report["findings"].as_array().unwrap() {
        let input = inputs.iter().find(|input| input["path"] == finding["input"]).unwrap();
        assert_eq!(finding["rank"], input["rank"]);
    }
    inputs.iter().map(|one| (one["path"].as_str().unwrap().to_owned(), one["rank"].as_u64())).collect()
}

#[test]
fn subfolders_are_read_and_ranks_inferred() {
    let folder = folder("ranks");
    let (zero, one) =
        ("out/iteration_10/rank0_memory_snapshot.pickle", "out/iteration_10/rank1_memory_snapshot.pickle");
    place(&folder, &[one, zero, "out/last.pickle", "out/.cache/rank9.pickle", "out/a/b/c/d/e/rank8.pickle"]);
    fs::write(folder.join("out/iteration_10/train.log"), "loss 0.3").unwrap();
    fs::write(folder.join("out/weights.pt"), b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.").unwrap();
    let ranks = [(zero.to_owned(), Some(0)), (one.to_owned(), Some(1))];
    let all = [&ranks[..], &[("out/last.pickle".to_owned(), None)]].concat();
    assert_eq!(read(&folder, "out"), all, "sorted, without hidden files, deeper folders and other files");
    assert_eq!(read(&folder, "out/**/rank[01]*.pickle"), ranks);
    assert_eq!(read(&folder, "out/*.pickle"), all[2..]);
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed() {
    let folder = folder("links");
    place(&folder, &["out/rank2.pickle"]);
    std::os::unix::fs::symlink("..", folder.join("out/up")).unwrap();
    std::os::unix::fs::symlink("rank2.pickle", folder.join("out/rank3.pickle")).unwrap();
    let ranks: Vec<_> = read(&folder, "out").into_iter().map(|(_, rank)| rank).collect();
    assert_eq!(ranks, [Some(2), Some(3)], "a link to a file is a file");
}

#[test]
fn a_file_whose_name_looks_like_a_pattern_is_that_file() {
    let folder = folder("brackets");
    place(&folder, &["run[1].pickle", "run1.pickle"]);
    assert_eq!(read(&folder, "run[1].pickle"), [("run[1].pickle".to_owned(), None)]);
}

/// The findings of a check: rules, and the snapshots in which they are worst.
fn findings(folder: &Path, arguments: &[&str]) -> Vec<(String, String)> {
    let arguments = [&["check", "--output-format", "json", "--exit-zero"], arguments].concat();
    let output = memlint_in(folder, &arguments);
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = report["findings"].as_array().unwrap().iter();
    found.map(|one| (text(&one["name"]), text(&one["input"]))).collect()
}

fn copy(case: &str, folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(root().join(recording(case)), path).unwrap();
    }
}

#[test]
fn the_report_does_not_depend_on_how_many_are_read_at_a_time() {
    let folder = folder("at_a_time");
    copy("seed-resnet50-bug", &folder, &["run/rank0.pickle", "run/rank3.pickle"]);
    copy("seed-leak-list", &folder, &["run/rank1.pickle", "run/other.pickle"]);
    copy("seed-linear", &folder, &["run/rank2.pickle", "run/rank4.pickle"]);
    let orders = [
        vec!["run"],
        vec![
            "run/rank4.pickle",
            "run/rank3.pickle",
            "run/other.pickle",
            "run/rank2.pickle",
            "run/rank1.pickle",
        ],
        vec!["run/rank1.pickle", "run/rank0.pickle", "run/rank3.pickle", "run/rank1.pickle", "run"],
    ];
    for order in orders {
        for format in ["text", "json"] {
            let check = |jobs: &str| {
                let options = ["check", "-v", "--output-format", format, "--jobs", jobs];
                memlint_in(&folder, &[&options[..], &order].concat())
            };
            let one = check("1");
            assert_eq!(one.status.code(), Some(1), "{}", stderr(&one));
            for jobs in ["2", "4", "100"] {
                assert_eq!(stdout(&check(jobs)), stdout(&one), "--jobs {jobs} of {order:?}");
            }
        }
    }
    let none = memlint_in(&folder, &["check", "run", "--jobs", "0"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn ranks_and_moments_of_a_job_show_a_fault_once_and_other_programs_their_own() {
    let folder = folder("once");
    let of_job = ["1/rank0_x.pickle", "1/rank1_x.pickle", "20_exit/rank0_x.pickle", "20_exit/rank1_x.pickle"];
    let of_job = of_job.map(|name| format!("out/iteration_{name}"));
    copy("seed-leak-list", &folder, &of_job.each_ref().map(String::as_str));
    let growth = |found: Vec<(String, String)>| -> Vec<String> {
        found.into_iter().filter(|(rule, _)| rule == "growing-residency").map(|(_, input)| input).collect()
    };
    assert_eq!(growth(findings(&folder, &["out"])), [&*of_job[2]], "of equals the newest");
    let text = memlint_in(&folder, &["check", "out"]);
    assert!(stdout(&text).contains("  ranks       2 of 2 alike, shown for rank 0\n"), "{}", stdout(&text));
    copy("seed-leak-list", &folder, &["one/snapshot.pickle", "two/snapshot.pickle", "two/b.pickle"]);
    assert_eq!(growth(findings(&folder, &["one", "two"])).len(), 3, "nothing says that these are one job");
}

#[test]
fn a_rank_that_needs_more_than_the_others_is_a_finding() {
    let ranks = "snapshots/ranks/fsdp-imbalance";
    let output =
        memlint_in(root(), &["check", ranks, "--source-root", "examples/ranks", "--output-format", "json"]);
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    let named = |rule: &str| -> Vec<Value> {
        report["findings"].as_array().unwrap().iter().filter(|one| one["name"] == rule).cloned().collect()
    };
    let imbalance = named("rank-imbalance");
    assert_eq!(imbalance.len(), 1);
    let finding = &imbalance[0];
    assert_eq!(
        (&finding["severity"], &finding["rank"], &finding["device"]),
        (&"warning".into(), &1.into(), &1.into())
    );
    assert_eq!(finding["location"]["file"], "examples/ranks/fsdp_imbalance.py");
    assert_eq!(finding["location"]["line"], 38, "the logits: twice as long, and kept");
    // What the two processes measured themselves: torch.cuda.memory_stats()["requested_bytes.all.peak"].
    let (here, there) = (8_947_781_640_u64, 3_560_296_456);
    assert_eq!(finding["evidence"]["rank-peak"], here);
    assert_eq!(finding["evidence"]["median-of-others"], there);
    assert_eq!(finding["impact"]["peak_bytes"], here - there);
    assert_eq!(finding["evidence"]["growth"], 512 << 20);
    let notes: Vec<_> = named("lazy-optimizer-init");
    assert_eq!(notes.len(), 1, "both ranks make their optimizer's state in the first step");
    let alone = memlint_in(root(), &["check", &format!("{ranks}/rank1_memory_snapshot.pickle.zst")]);
    assert!(!stdout(&alone).contains("rank-imbalance"), "nothing to compare with");
}

#[test]
fn a_thousand_ranks_with_one_fault_fit_on_a_page_and_the_one_unlike_them_is_named() {
    let folder = folder("thousand");
    copy("cycle-closure-bug", &folder, &["run/rank0.pickle"]);
    copy("cycle-closure-fixed", &folder, &["run/rank7.pickle"]);
    for rank in (1..1000).filter(|rank| *rank != 7) {
        fs::hard_link(folder.join("run/rank0.pickle"), folder.join(format!("run/rank{rank}.pickle")))
            .unwrap();
    }
    let output = memlint_in(&folder, &["check", "run", "--isolated"]);
    let text = stdout(&output);
    assert!(text.lines().count() <= 60, "{} lines", text.lines().count());
    golden("text-thousand-ranks", text);
    let all = memlint_in(&folder, &["check", "run", "--isolated", "-v"]);
    assert!(stdout(&all).contains("\nrun/rank999.pickle:\n"), "-v shows each");
    let names: Vec<String> = read(&folder, "run").into_iter().map(|(name, _)| name).collect();
    assert_eq!((names[2].as_str(), names[10].as_str()), ("run/rank2.pickle", "run/rank10.pickle"));
}

#[test]
fn devices_of_one_process_are_no_ranks() {
    let found = findings(root(), &["snapshots/ranks/two-devices"]);
    let rules: Vec<&str> = found.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(rules, ["growing-residency", "lazy-optimizer-init"], "device 1 leaks; both initialise lazily");
}

#[test]
fn a_missing_rank_counts_as_a_warning() {
    let folder = folder("missing");
    copy("seed-resnet50-fixed", &folder, &["run/rank0.pickle", "run/rank1.pickle", "run/rank3.pickle"]);
    let status = |path: &str| memlint_in(&folder, &["check", path, "--fail-on", "warning"]).status.code();
    assert_eq!(status("run"), Some(1));
    assert_eq!(status("run/rank[01].pickle"), Some(0));
}

#[test]
fn stats_lists_every_unknown_key_where_asked() {
    let folder = folder("unknown");
    let mut pickle = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]".to_vec();
    for key in b'a'..=b'g' {
        pickle.extend([b"\x8c\x02x".as_slice(), &[key], b"K\x00"].concat());
    }
    pickle.extend(b"u.");
    fs::write(folder.join("it.pickle"), pickle).unwrap();
    let brief = memlint_in(&folder, &["stats", "it.pickle"]);
    assert!(stdout(&brief).contains("2 more") && !stdout(&brief).contains("`xg`"), "{}", stdout(&brief));
    let full = memlint_in(&folder, &["stats", "-v", "it.pickle"]);
    assert!(stdout(&full).contains("`xg` (1x)") && !stdout(&full).contains("more"), "{}", stdout(&full));
}
