//! Timelines of PyTorch's profiler: `stats` shows them, nothing else takes them.

use std::fs;

use serde_json::Value;

use crate::{folder, golden, memlint, memlint_in, stderr, stdout};

const LEAK: &str = "tests/data/profiler/leak.raw.json.gz";

#[test]
fn stats_shows_what_a_timeline_tells_and_what_it_does_not() {
    let mut told = String::new();
    for name in ["leak.raw.json.gz", "steps.json.gz", "whole-cpu.raw.json.gz", "leak.trace.json.gz"] {
        let path = format!("tests/data/profiler/{name}");
        let output = memlint(&["stats", &path]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""), "{name}");
        told.push_str(stdout(&output));
        told.push('\n');
    }
    golden("stats-profiler", &told);
}

#[test]
fn the_json_says_that_it_is_a_timeline() {
    let output = memlint(&["stats", LEAK, "--output-format", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let timeline = &json["profiler_timeline"];
    assert_eq!(json["schema"], "memlint/1");
    assert!(
        json.get("devices").is_none(),
        "a timeline has no devices, and an empty list would look like one without memory"
    );
    assert_eq!((timeline["form"].as_str(), timeline["rows"].as_u64()), (Some("events"), Some(1_159)));
    assert_eq!(timeline["peak_bytes"], 11_725_864);
    let at_peak: u64 =
        timeline["categories_at_peak"].as_object().unwrap().values().map(|one| one.as_u64().unwrap()).sum();
    assert_eq!(at_peak, 11_725_864);
    assert_eq!(timeline["growth"]["bytes_per_pass"], 524_288);
    assert_eq!(timeline["passes"].as_array().unwrap().len(), 8);
    let kinds: Vec<&str> =
        json["gaps"].as_array().unwrap().iter().map(|gap| gap["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["no-stacks", "no-allocator"]);
}

#[test]
fn nothing_else_takes_a_timeline() {
    let out = folder("timeline-out").join("out.pickle");
    let out = out.to_str().unwrap();
    let trace = "tests/data/profiler/leak.trace.json.gz";
    for arguments in [
        &["check", LEAK][..],
        &["check", "--exit-zero", LEAK],
        &["anonymize", LEAK, "-o", out],
        &["check", trace],
    ] {
        let output = memlint(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{arguments:?}");
        let message = stderr(&output);
        assert!(message.contains("memlint stats") && message.contains("_dump_snapshot"), "{message}");
    }
}

#[test]
fn a_timeline_comes_through_a_pipe_and_with_a_limit() {
    let output = memlint(&["stats", LEAK, "--max-nodes", "20"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`--max-nodes`"), "{}", stderr(&output));
    let output = memlint(&["stats", LEAK, "--max-bytes", "1KiB"]);
    assert!(stderr(&output).contains("`--max-bytes`"), "{}", stderr(&output));
}

#[test]
fn a_timeline_of_another_device_is_empty_and_says_why() {
    let folder = folder("empty-timeline");
    fs::write(folder.join("gpu.json"), "[[], []]").unwrap();
    let output = memlint_in(&folder, &["stats", "gpu.json"]);
    assert_eq!(output.status.code(), Some(0));
    let told = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("`cuda:0` and `cuda` are different"), "{told}");
}

#[test]
fn a_drawn_timeline_is_refused_by_its_name() {
    let folder = folder("drawn-timeline");
    let page = "<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title></head>\n<body></body></html>";
    fs::write(folder.join("drawn.html"), page).unwrap();
    for command in ["check", "stats"] {
        let output = memlint_in(&folder, &[command, "drawn.html"]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{command}");
        assert!(
            stderr(&output).contains("picture") && stderr(&output).contains(".raw.json.gz"),
            "{}",
            stderr(&output)
        );
    }
}
