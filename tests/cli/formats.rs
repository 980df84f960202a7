//! What a good snapshot gives: the verdict's exit code, text and JSON.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{folder, golden, memlint, memlint_in, recording, root, stderr, stdout};

fn json(arguments: &[&str]) -> Value {
    let output = memlint(arguments);
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_exit_code_follows_the_findings_and_fail_on() {
    let (bug, fixed) = (recording("seed-resnet50-bug"), recording("seed-resnet50-fixed"));
    let code = |arguments: &[&str]| memlint(arguments).status.code();
    assert_eq!(code(&["check", &bug]), Some(1));
    assert_eq!(code(&["check", &bug, "--exit-zero"]), Some(0));
    assert_eq!(code(&["check", &bug, "--fail-on", "never"]), Some(0));
    assert_eq!(code(&["check", &fixed]), Some(0));
    assert_eq!(code(&["check", &fixed, "--fail-on", "warning"]), Some(0));
    assert_eq!(code(&["check", &fixed, "--fail-on", "info"]), Some(1), "lazy-optimizer-init is a note");
    assert_eq!(code(&["check", &fixed, &bug]), Some(1), "one bad snapshot is enough");
}

#[test]
fn the_report_names_the_line_the_bytes_and_the_remedy() {
    let output = memlint(&["check", &recording("seed-resnet50-bug")]);
    let text = stdout(&output);
    for part in
        ["[missing-zero-grad]", "train.py:17:9", "loss_fn(pred, labels).backward()", "97.5 MiB", "zero_grad("]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(stderr(&output).is_empty());
}

#[test]
fn piped_text_is_plain_ascii_frames_of_80_columns() {
    for case in ["seed-resnet50-bug", "trunc-ring-bug", "grow-replay-bug"] {
        let output = memlint(&["check", "-v", &recording(case)]);
        let headline = |line: &&str| !line.contains("rules could not judge: ");
        for line in stdout(&output).lines().filter(headline) {
            assert!(line.is_ascii(), "{line}");
            let unbroken = line.contains(".py") || line.contains(" | ");
            assert!(unbroken || line.len() <= 80, "{} columns: {line}", line.len());
        }
    }
}

#[test]
fn colours_come_only_when_asked_for() {
    let bug = recording("seed-resnet50-bug");
    assert!(stdout(&memlint(&["check", &bug, "--color", "always"])).contains("\x1b[1;31merror:\x1b[0m"));
    assert!(!stdout(&memlint(&["check", &bug, "--color", "auto"])).contains('\x1b'));
    let error = memlint(&["check", "missing", "--color", "always"]);
    assert!(stderr(&error).contains("\x1b[1;31merror:\x1b[0m"), "{}", stderr(&error));
}

#[test]
fn sources_are_found_by_option_by_map_and_beside_the_snapshot() {
    let folder = folder("sources");
    let case = root().join("examples/seed-resnet50-bug/train.py");
    fs::copy(root().join(recording("seed-resnet50-bug")), folder.join("s.zst")).unwrap();
    let drawn = |arguments: &[&str]| {
        let output = memlint_in(&folder, arguments);
        stdout(&output).contains("| ") && stdout(&output).contains("loss_fn(pred, labels).backward()")
    };
    assert!(!drawn(&["check", "s.zst"]));
    let missing = memlint_in(&folder, &["check", "s.zst"]);
    assert!(stdout(&missing).contains("--source-root") && stdout(&missing).contains("--path-map"));

    fs::create_dir_all(folder.join("empty")).unwrap();
    fs::create_dir_all(folder.join("repo/seed-resnet50-bug")).unwrap();
    fs::copy(&case, folder.join("repo/seed-resnet50-bug/train.py")).unwrap();
    assert!(drawn(&["check", "s.zst", "--source-root", "repo"]));
    assert!(drawn(&["check", "s.zst", "--source-root", "empty", "--source-root", "repo"]));
    assert!(drawn(&["check", "s.zst", "--path-map", "/home/user/runs/xxxxxxxxx=repo"]));
    assert!(!drawn(&["check", "s.zst", "--source-root", "empty"]));

    // A file of the same name that cannot be the recorded one is passed over.
    fs::write(folder.join("train.py"), "print('another program')\n").unwrap();
    assert!(!drawn(&["check", "s.zst"]));
    assert!(drawn(&["check", "s.zst", "--source-root", ".", "--source-root", "repo"]));
    fs::copy(&case, folder.join("train.py")).unwrap();
    assert!(drawn(&["check", "s.zst"]));
}

#[test]
fn check_writes_the_documented_json() {
    let report = json(&["check", &recording("seed-resnet50-bug"), "--output-format", "json"]);
    assert_eq!(report["schema"], "memlint/1");
    assert_eq!(report["tool"]["name"], "memlint");
    let device = &report["inputs"][0]["devices"][0];
    assert_eq!(device["iterations"], 5);
    assert_eq!(device["peak_requested_bytes"], 470_210_256);
    assert_eq!(report["summary"]["errors"], 1);

    let finding = &report["findings"][0];
    assert_eq!((&finding["name"], &finding["group"]), (&"missing-zero-grad".into(), &"leak".into()));
    assert_eq!((&finding["severity"], &finding["device"]), (&"error".into(), &0.into()));
    let location = &finding["location"];
    assert!(location["file"].as_str().unwrap().ends_with("train.py"));
    let place = ["line", "column", "end_line", "end_column"].map(|key| location[key].as_u64());
    assert_eq!(place, [Some(17), Some(9), Some(17), Some(41)]);
    assert!(finding["impact"]["peak_bytes"].as_u64().is_some());
    assert!(finding["evidence"].as_object().is_some_and(|evidence| !evidence.is_empty()));
    assert!(finding["stack"][0]["line"].as_u64().is_some());
    assert!(finding["fingerprint"].as_str().unwrap().starts_with("v1:"));
    for key in ["message", "help", "confidence", "rank", "related"] {
        assert!(finding.get(key).is_some(), "{key}");
    }
    assert!(report["skipped"].is_array() && report["gaps"].is_array());
}

#[test]
fn fingerprints_do_not_depend_on_where_the_source_lies() {
    let bug = recording("seed-resnet50-bug");
    let of = |arguments: &[&str]| json(arguments)["findings"][0]["fingerprint"].clone();
    let found = of(&["check", &bug, "--output-format", "json"]);
    let missing = of(&["check", &bug, "--output-format", "json", "--source-root", "rules"]);
    assert_eq!(found, missing);
}

#[test]
fn stats_writes_every_allocation_when_asked() {
    let linear = recording("seed-linear");
    let stats = json(&["stats", &linear, "--output-format", "json"]);
    assert!(stats.get("allocations").is_none());
    let device = &stats["devices"][0];
    let roles: u64 = device["roles_at_peak"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(Some(roles), device["peak_requested_bytes"].as_u64());

    let stats = json(&["stats", &linear, "--output-format", "json", "--allocations"]);
    let allocations = stats["allocations"].as_array().unwrap();
    let born = allocations.iter().filter(|one| one["alloc_us"].is_u64()).count();
    assert!(born > 0 && born <= allocations.len());
    for one in allocations {
        assert!(one["bytes"].is_u64() && one["address"].is_u64() && one["role"].is_string());
        assert_eq!(one["free_event"].is_null(), one["free_us"].is_null());
    }
}

#[test]
fn stats_for_people_shows_the_iterations() {
    golden("stats", stdout(&memlint(&["stats", &recording("seed-resnet50-bug")])));
}

#[test]
fn a_folder_stands_for_its_snapshots() {
    let folder = folder("folder");
    for (case, name) in [("seed-linear", "b.zst"), ("seed-resnet50-fixed", "a.zst")] {
        fs::copy(root().join(recording(case)), folder.join(name)).unwrap();
    }
    fs::write(folder.join("notes.txt"), "two runs").unwrap();
    let output = memlint_in(&folder, &["check", "--output-format", "json", "."]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let paths: Vec<&str> =
        report["inputs"].as_array().unwrap().iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["./a.zst", "./b.zst"]);
    let text = memlint_in(&folder, &["check", "."]);
    assert!(stdout(&text).contains("./a.zst:\n"), "{}", stdout(&text));
}

#[test]
fn a_snapshot_can_come_through_a_pipe() {
    let file = fs::File::open(root().join(recording("seed-resnet50-bug"))).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_memlint")).args(["check", "-"]).stdin(file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_memlint"))
        .args(["stats", "--output-format", "json", "--allocations", &recording("seed-resnet50-bug")])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
}

#[test]
fn the_same_snapshot_gives_the_same_bytes() {
    let case = recording("amp-skipped-bug");
    for format in ["text", "json", "sarif", "markdown", "junit"] {
        let run = || memlint(&["check", "-v", &case, "--output-format", format]).stdout;
        assert_eq!(run(), run());
    }
}

#[test]
fn gradients_zeroed_by_hand_are_a_note_where_the_source_shows_it() {
    let folder = folder("zeroed-by-hand");
    let program = fs::read_to_string(root().join("examples/seed-resnet50-bug/train.py")).unwrap();
    let clear =
        "\ndef clear(model):\n    for parameter in model.parameters():\n        parameter.grad.zero_()\n";
    let dead_code = program.clone() + clear;
    // On the backward pass's own line, so that the recorded lines stay where they are.
    let by_hand = dead_code.replace(".backward()\n", ".backward(); clear(model)\n");
    assert_ne!(by_hand, dead_code);
    let snapshot = recording("seed-resnet50-bug");
    let check = |program: &str| {
        fs::write(folder.join("train.py"), program).unwrap();
        memlint(&["check", &snapshot, "-v", "--source-root", folder.to_str().unwrap()])
    };
    assert_eq!(check(&dead_code).status.code(), Some(1), "a function that nobody calls excuses nothing");
    let output = check(&by_hand);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(
        stdout(&output).contains("info: gradients of iteration 1 are never cleared"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn positions_count_from_zero_and_lines_from_one() {
    let stats = json(&["stats", &recording("grow-replay-bug"), "--output-format", "json"]);
    let device = &stats["devices"][0];
    let iterations = device["iterations"].as_array().unwrap();
    assert_eq!((&iterations[0]["index"], &device["peak_iteration"]), (&0.into(), &29.into()));
    assert!(device["peak_event"].as_u64() < device["events"].as_u64());
    let text = memlint(&["stats", &recording("grow-replay-bug")]);
    assert!(stdout(&text).contains("iteration 30"), "people count from 1: {}", stdout(&text));
    let output = memlint(&["check", &recording("seed-resnet50-bug"), "--output-format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let location = &report["findings"][0]["location"];
    let source = fs::read_to_string(root().join(location["file"].as_str().unwrap())).unwrap();
    let at = |key: &str| usize::try_from(location[key].as_u64().unwrap()).unwrap() - 1;
    let line: Vec<char> = source.lines().nth(at("line")).unwrap().chars().collect();
    let expression: String = line[at("column")..at("end_column")].iter().collect();
    assert_eq!(expression, "loss_fn(pred, labels).backward()");
}
