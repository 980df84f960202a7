//! `--output-file`: one analysis, many outputs; and what they hold where there is no verdict.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{folder, memlint, memlint_in, recording, root, stderr, stdout};

const FORMATS: [&str; 10] =
    ["text", "concise", "json", "jsonl", "sarif", "github", "gitlab", "junit", "markdown", "html"];

/// `--output-file FORMAT=FORMAT.out` for every format.
fn everywhere() -> Vec<String> {
    FORMATS.iter().flat_map(|format| ["--output-file".to_owned(), format!("{format}={format}.out")]).collect()
}

fn check(folder: &Path, snapshot: &str) -> Option<i32> {
    let outputs = everywhere();
    let mut arguments = vec!["check", snapshot];
    arguments.extend(outputs.iter().map(String::as_str));
    memlint_in(folder, &arguments).status.code()
}

fn read(folder: &Path, format: &str) -> String {
    fs::read_to_string(folder.join(format!("{format}.out"))).unwrap()
}

#[test]
fn one_analysis_writes_every_format() {
    let folder = folder("outputs-every");
    let bug = root().join(recording("seed-resnet50-bug"));
    assert_eq!(check(&folder, bug.to_str().unwrap()), Some(1));
    for format in FORMATS {
        // A page is packed; its own tests unpack it.
        assert!(format == "html" || read(&folder, format).contains("missing-zero-grad"), "{format}");
        let direct = memlint_in(&folder, &["check", bug.to_str().unwrap(), "--output-format", format]);
        assert_eq!((direct.status.code(), stdout(&direct)), (Some(1), &*read(&folder, format)), "{format}");
    }
}

#[test]
fn where_there_is_no_verdict_no_file_holds_an_older_one() {
    let folder = folder("outputs-stale");
    let fixed = root().join(recording("seed-resnet50-fixed"));
    assert_eq!(check(&folder, fixed.to_str().unwrap()), Some(0));
    fs::write(folder.join("empty.pickle"), "").unwrap();
    assert_eq!(check(&folder, "empty.pickle"), Some(2));
    for format in FORMATS {
        let text = read(&folder, format);
        assert!(text.contains("empty.pickle") && !text.contains("seed-resnet50-fixed"), "{format}: {text}");
    }
    let sarif: Value = serde_json::from_str(&read(&folder, "sarif")).unwrap();
    assert_eq!(sarif["runs"][0]["invocations"][0]["executionSuccessful"], false);
    let json: Value = serde_json::from_str(&read(&folder, "json")).unwrap();
    assert!(json["error"]["message"].is_string() && json.get("findings").is_none());
    assert!(read(&folder, "gitlab").contains("blocker") && read(&folder, "junit").contains("<error "));
    assert!(read(&folder, "github").starts_with("::error "));
}

#[test]
fn a_report_that_cannot_be_written_leaves_no_other_that_passes() {
    let folder = folder("outputs-unwritable");
    let fixed = root().join(recording("seed-resnet50-fixed"));
    let arguments =
        ["check", fixed.to_str().unwrap(), "--output-file", "json=a.json", "--output-file", "json=no/b.json"];
    let output = memlint_in(&folder, &arguments);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    let json: Value = serde_json::from_slice(&fs::read(folder.join("a.json")).unwrap()).unwrap();
    assert!(json["error"]["message"].as_str().unwrap().contains("no/b.json"));
}

#[test]
fn snapshots_and_reports_are_not_replaced_by_reports() {
    let folder = folder("outputs-taken");
    fs::copy(root().join(recording("seed-linear")), folder.join("s.zst")).unwrap();
    let before = fs::read(folder.join("s.zst")).unwrap();
    let itself = memlint_in(&folder, &["check", "s.zst", "--output-file", "json=./s.zst"]);
    assert_eq!(itself.status.code(), Some(2));
    assert!(stderr(&itself).contains("it is a snapshot"), "{}", stderr(&itself));
    assert_eq!(fs::read(folder.join("s.zst")).unwrap(), before);
    let twice =
        memlint_in(&folder, &["check", "s.zst", "--output-file", "json=a", "--output-file", "sarif=a"]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(stderr(&twice).contains("given twice") && !folder.join("a").exists());
}

#[test]
fn files_are_named_from_the_root_of_the_repository() {
    let folder = folder("outputs-repository");
    fs::create_dir_all(folder.join("repo/.git")).unwrap();
    fs::create_dir_all(folder.join("repo/jobs")).unwrap();
    fs::copy(root().join("examples/seed-resnet50-bug/train.py"), folder.join("repo/jobs/train.py")).unwrap();
    let bug = root().join(recording("seed-resnet50-bug"));
    let arguments = ["check", bug.to_str().unwrap(), "--output-format", "github", "--source-root"];
    for (current, sources) in
        [("repo", "jobs"), ("repo/jobs", "."), ("repo", folder.join("repo/jobs").to_str().unwrap())]
    {
        let output = memlint_in(&folder.join(current), &[&arguments[..], &[sources]].concat());
        assert!(stdout(&output).starts_with("::error file=jobs/train.py,line=17,"), "{}", stdout(&output));
    }
}

#[test]
fn the_schema_of_the_output_is_the_committed_one() {
    let output = memlint(&["schema", "output"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    assert!(stdout(&output) == fs::read_to_string(root().join("schemas/output.json")).unwrap());
    assert_eq!(memlint(&["schema", "nothing"]).status.code(), Some(2));
}

#[test]
fn text_is_as_wide_as_columns_say() {
    let widest = |columns: Option<&str>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_memlint"));
        command.current_dir(root()).args([
            "check",
            &recording("seed-resnet50-bug"),
            "--isolated",
            "--source-root",
            "examples",
        ]);
        match columns {
            Some(columns) => command.env("COLUMNS", columns),
            None => command.env_remove("COLUMNS"),
        };
        let output = command.output().unwrap();
        stdout(&output).lines().map(|line| line.chars().count()).max().unwrap()
    };
    let usual = widest(None);
    assert!((60..=80).contains(&usual), "{usual}");
    assert!((81..=160).contains(&widest(Some("160"))));
    assert!((41..=60).contains(&widest(Some("60"))));
    for none in ["", "0", "7", "many", "-80", "1000000"] {
        assert_eq!(widest(Some(none)), usual, "{none:?}");
    }
}
