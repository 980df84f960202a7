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
fn memory_and_batches_are_asked_for() {
    let path = recording("seed-qwen-b2");
    let output = memlint(&["whatif", &path, "--batch-scale", "8", "--device-memory", "20GiB"]);
    golden("whatif-batch", stdout(&output));
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
