//! What is installed beside memlint, and the GitHub action.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{folder, memlint, memlint_in, recording, root, stderr, stdout};

#[test]
fn shells_complete_the_arguments() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = memlint(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("update-baseline"), "{shell}");
    }
    assert_eq!(memlint(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = folder("manual");
    assert!(stdout(&memlint(&["man"])).contains(".TH memlint 1"));
    assert!(memlint_in(&folder, &["man", "."]).status.success());
    for page in ["memlint.1", "memlint-check.1", "memlint-diff.1", "memlint-config.1"] {
        assert!(fs::read_to_string(folder.join(page)).unwrap().contains(".SH NAME"), "{page}");
    }
    let missing = memlint(&["man", "nowhere/at/all"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("nowhere/at/all"));
}

/// The script of the action's step that checks.
fn script() -> String {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    let step = action.split("id: check\n").nth(1).unwrap();
    let body = step.split("run: |\n").nth(1).unwrap();
    let lines = body.lines().take_while(|line| line.is_empty() || line.starts_with("        "));
    lines.map(|line| line.trim_start_matches("        ")).collect::<Vec<_>>().join("\n")
}

/// Runs the action's check as a runner does: its outputs and its summary.
fn act(folder: &Path, snapshots: &str, arguments: &str) -> (String, String) {
    let [output, summary] = ["output", "summary"].map(|name| folder.join(name));
    for file in [&output, &summary] {
        fs::write(file, "").unwrap();
    }
    let status = Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()])
        .current_dir(root())
        .env("BINARY", env!("CARGO_BIN_EXE_memlint"))
        .env("SNAPSHOTS", snapshots)
        .env("ARGUMENTS", arguments)
        .env("SARIF", folder.join("memlint.sarif"))
        .env("FOLDER", ".")
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_OUTPUT", &output)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    assert!(status.status.success(), "the step leaves the verdict to a later one: {}", stderr(&status));
    (fs::read_to_string(output).unwrap(), fs::read_to_string(summary).unwrap())
}

#[test]
fn the_action_hands_on_the_verdict_and_writes_a_summary() {
    let folder = folder("action");
    let (output, summary) = act(&folder, &recording("seed-leak-list"), "");
    assert!(output.contains("exit-code=1\n") && output.contains("sarif="), "{output}");
    assert!(summary.contains("retained-graph"), "{summary}");
    let (output, _) = act(&folder, &recording("seed-leak-list"), "--exit-zero\n--strict");
    assert!(output.contains("exit-code=0\n"), "{output}");
    let (output, _) = act(&folder, "nowhere.pickle", "");
    assert!(output.contains("exit-code=2\n"), "{output}");
}
