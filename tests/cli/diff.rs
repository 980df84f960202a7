//! `memlint diff`: the answer in the first line, the figures below, and no verdict.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{folder, golden, memlint, memlint_in, recording, root, stderr, stdout};

/// The comparison of two recordings of the corpus as JSON.
fn compared(base: &str, head: &str) -> Value {
    let output = memlint(&["diff", &recording(base), &recording(head), "--output-format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_first_line_is_the_answer() {
    let first = |base: &str, head: &str| {
        let output = memlint(&["diff", "-q", &recording(base), &recording(head)]);
        stdout(&output).lines().next().unwrap().to_owned()
    };
    assert_eq!(
        first("seed-resnet50-bug", "seed-resnet50-fixed"),
        "peak 448.4 MiB -> 423.2 MiB (-25.3 MiB), 1 finding gone"
    );
    assert_eq!(
        first("seed-resnet50-fixed", "seed-resnet50-bug"),
        "peak 423.2 MiB -> 448.4 MiB (+25.3 MiB), 1 finding new"
    );
    assert_eq!(first("seed-resnet50-bug", "seed-resnet50-bug"), "peak unchanged at 448.4 MiB");
    assert!(first("grow-replay-fixed", "grow-replay-bug").contains("now grows by 27.6 MiB per iteration"));
}

#[test]
fn twins_side_by_side() {
    let of = |case: &str| {
        let [bug, fixed] = ["bug", "fixed"].map(|twin| recording(&format!("{case}-{twin}")));
        stdout(&memlint(&["diff", &bug, &fixed])).to_owned()
    };
    golden("diff-missing-zero-grad", &of("seed-resnet50"));
    golden("diff-leak", &of("grow-replay"));
    golden("diff-noise", &of("cycle-closure"));
}

#[test]
fn every_twin_is_better_than_its_fault_and_fits_into_80_columns() {
    for entry in fs::read_dir(root().join("snapshots")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(case) = name.strip_suffix("-fixed") else { continue };
        let [bug, fixed] = ["bug", "fixed"].map(|twin| recording(&format!("{case}-{twin}")));
        let output = memlint(&["diff", "-v", &bug, &fixed]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{case}");
        assert!(text.lines().take(2).any(|line| line.contains(" gone")), "{case}: {text}");
        for line in text.lines().filter(|line| !line.contains(".py")) {
            assert!(line.chars().count() <= 80, "{case}: {line}");
        }
    }
}

#[test]
fn moved_lines_are_followed() {
    let diff = compared("grow-replay-bug", "grow-replay-fixed");
    let sites = diff["devices"][0]["call_sites"].as_array().unwrap();
    let leak = &sites[0];
    assert_eq!((&leak["base"]["line"], &leak["head"]["line"]), (&34.into(), &35.into()));
    assert_eq!(leak["bytes_per_iteration"]["base"], 28_901_376);
    assert_eq!(leak["bytes_per_iteration"]["head"], 0);
}

#[test]
fn the_json_adds_up() {
    let diff = compared("seed-resnet50-bug", "seed-resnet50-fixed");
    assert_eq!(diff["schema"], "memlint/1");
    assert_eq!(
        (&diff["findings"][0]["turn"], &diff["findings"][0]["name"]),
        (&"gone".into(), &"missing-zero-grad".into())
    );
    let device = &diff["devices"][0];
    for side in ["base", "head"] {
        let peak = device["peak_requested_bytes"][side].as_u64().unwrap();
        let sum = |list: &str, key: &str| -> u64 {
            device[list].as_array().unwrap().iter().filter_map(|one| one[key][side].as_u64()).sum()
        };
        assert_eq!(sum("roles_at_peak", "bytes"), peak, "{side}");
        assert_eq!(sum("call_sites", "peak_bytes"), peak, "{side}");
    }
    assert_eq!(device["compared_iterations"], 5);
    assert_eq!(device["allocations_per_iteration"], serde_json::json!({ "base": 667, "head": 667 }));
}

#[test]
fn recordings_of_different_length_are_compared_as_far_as_both_go() {
    let folder = folder("diff-lengths");
    fs::copy(root().join(recording("grow-replay-bug")), folder.join("long.zst")).unwrap();
    let cut = ["slice", "long.zst", "--iterations", "1..12", "-o", "short.pickle"];
    assert_eq!(memlint_in(&folder, &cut).status.code(), Some(0));
    let output = memlint_in(&folder, &["diff", "long.zst", "short.pickle", "--output-format", "json"]);
    let diff: Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = &diff["devices"][0];
    let iterations =
        ["base_iterations", "head_iterations", "compared_iterations"].map(|key| device[key].as_u64());
    assert_eq!(iterations, [Some(30), Some(12), Some(12)]);
    for figure in ["peak_requested_bytes", "peak_reserved_bytes", "bytes_per_iteration"] {
        assert_eq!(device[figure]["change"], "same", "{figure}: {device}");
    }
    assert!(diff["findings"].as_array().unwrap().is_empty(), "the leak is the same: {}", diff["findings"]);
    let text = memlint_in(&folder, &["diff", "long.zst", "short.pickle"]);
    let begins = "the first 12 iterations (the base has 30, the head 12): peak unchanged";
    assert!(
        stdout(&text).split_whitespace().collect::<Vec<_>>().join(" ").starts_with(begins),
        "{}",
        stdout(&text)
    );
}

#[test]
fn recordings_of_different_programs_are_said_to_be() {
    let output = memlint(&["diff", &recording("seed-linear"), &recording("grow-session-cache-bug")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("no call site of device 0 is the same in both"), "{}", stdout(&output));
    let output = memlint(&["diff", &recording("nostacks-bug"), &recording("seed-resnet50-bug")]);
    let said = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("could not look at the base"), "{said}");
}

#[test]
fn what_cannot_be_read_is_not_compared() {
    let bug = recording("seed-resnet50-bug");
    for (base, head) in [("missing.pickle", bug.as_str()), (bug.as_str(), "README.md"), ("-", "-")] {
        let output = memlint(&["diff", base, head]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{base} {head}");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_memlint"))
        .args(["diff", "-", &recording("seed-resnet50-fixed")])
        .current_dir(root())
        .stdin(fs::File::open(root().join(bug)).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
