//! `memlint whatif`: scenarios ranked, questions refused.

use std::fmt::Write;

use serde_json::Value;

use crate::{golden, memlint, recording, stderr, stdout};

fn asked(case: &str, arguments: &[&str]) -> Value {
    let path = recording(case);
    let output = memlint(&[&["whatif", &path, "--output-format", "json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn settings_worth_trying_are_ranked() {
    let output = memlint(&["whatif", &recording("seed-fragmentation")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    golden("whatif", stdout(&output));
    let document = asked("seed-fragmentation", &[]);
    let device = &document["devices"][0];
    let peaks: Vec<u64> = device["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["peak_reserved_bytes"].as_u64().unwrap())
        .collect();
    assert!(peaks.is_sorted() && peaks.len() > 5, "{peaks:?}");
    let own = device["scenarios"].as_array().unwrap().iter().find(|one| one["set"] == serde_json::json!({}));
    assert_eq!(own.unwrap()["peak_reserved_bytes"], device["recorded"]["peak_reserved_bytes"]);
    assert_eq!(device["recorded"]["exact"], true);
}

#[test]
fn a_question_has_one_scenario() {
    let set = ["--set", "expandable_segments:True", "--set", "roundup_power2_divisions:[256:1,>:2]"];
    let document = asked("seed-fragmentation", &set);
    let scenarios = document["devices"][0]["scenarios"].as_array().unwrap();
    let expected =
        serde_json::json!({"expandable_segments": "True", "roundup_power2_divisions": "[256:1,>:2]"});
    assert_eq!(scenarios.len(), 1);
    assert_eq!(scenarios[0]["set"], expected);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let settings = "expandable_segments:True,roundup_power2_divisions:[256:1,>:2]";
    for more in [&[][..], &["--set", settings], &["--batch-scale", "2"]] {
        let output = memlint(&[&["whatif", &recording("oom-second-step-bug")], more].concat());
        let wide: Vec<&str> = stdout(&output).lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty() && !stdout(&output).is_empty(), "{wide:#?}");
    }
}

#[test]
fn memory_and_batches_are_asked_for() {
    let path = recording("seed-qwen-b2");
    let output = memlint(&["whatif", &path, "--batch-scale", "8", "--device-memory", "20GiB"]);
    golden("whatif-batch", stdout(&output));
}

#[test]
fn findings_are_left_out() {
    let path = recording("seed-resnet50-bug");
    golden("whatif-without", stdout(&memlint(&["whatif", &path, "--without", "missing-zero-grad"])));
    let plain = asked("seed-resnet50-bug", &[]);
    let by_rule = asked("seed-resnet50-bug", &["--without", "missing-zero-grad"]);
    let left_out = &by_rule["devices"][0]["without"][0];
    let identity = left_out["fingerprint"].as_str().unwrap();
    // The version and the first digits are enough, and both ways of asking mean the same.
    for beginning in [identity, &identity[..8], &identity[3..8]] {
        assert_eq!(asked("seed-resnet50-bug", &["--without", beginning]), by_rule, "{beginning}");
    }
    let recorded = plain["devices"][0]["recorded"]["peak_requested_bytes"].as_u64().unwrap();
    for scenario in by_rule["devices"][0]["scenarios"].as_array().unwrap() {
        let saved = recorded - scenario["peak_requested_bytes"].as_u64().unwrap();
        assert_eq!(Some(saved), left_out["saves_peak_bytes"].as_u64(), "{scenario}");
    }
    assert_eq!(plain["devices"][0]["without"], serde_json::json!([]));
}

/// Memory in which the program does not fit, and does without what it keeps for nothing.
#[test]
fn what_is_left_out_leaves_room() {
    let fits = |more: &[&str]| {
        let little = ["--set", "expandable_segments:True", "--device-memory", "445MiB"];
        let document = asked("seed-resnet50-bug", &[&little, more].concat());
        document["devices"][0]["scenarios"][0]["out_of_memory"].is_null()
    };
    assert!(!fits(&[]));
    assert!(fits(&["--without", "missing-zero-grad"]));
}

#[test]
fn what_cannot_be_left_out_is_refused() {
    let mut told = String::new();
    for (case, wrong) in [
        ("seed-resnet50-bug", "0ddba11"),
        ("seed-resnet50-bug", "fragmentation"),
        ("seed-resnet50-fixed", "missing-zero-grad"),
        ("seed-resnet50-bug", "v1:"),
        ("seed-resnet50-bug", "missing-zero"),
        ("seed-fragmentation", "fragmentation"),
        ("ho-hftrainer-preds", "e"),
    ] {
        let output = memlint(&["whatif", &recording(case), "--without", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert_eq!(stdout(&output), "", "{wrong}");
        let _ = writeln!(told, "$ memlint whatif {case} --without '{wrong}'\n{}", stderr(&output));
    }
    golden("whatif-without-refused", &told);
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let path = recording("seed-qwen-b2");
    let mut told = String::new();
    for wrong in [
        ["--set", "expandable_segment:True"],
        ["--set", "expandable_segments"],
        ["--set", "max_split_size_mb:4"],
        ["--set", "pinned_num_register_threads:4"],
        ["--set", "backend:cudaMallocAsync"],
        ["--set", "max_split_size_mb:64,max_split_size_mb:128"],
        ["--set", "per_process_memory_fraction:0.5"],
        ["--device-memory", "1GiB"],
        ["--device-memory", "0"],
        ["--device-memory", "much"],
        ["--batch-scale", "0"],
        ["--batch-scale", "-2"],
    ] {
        let output = memlint(&["whatif", &path, wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert_eq!(stdout(&output), "", "{wrong:?}");
        let _ = writeln!(told, "$ memlint whatif SNAPSHOT {} '{}'\n{}", wrong[0], wrong[1], stderr(&output));
    }
    golden("whatif-refused", &told);
}
