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
    let (output, summary, _) = act_and_say(folder, snapshots, arguments);
    (output, summary)
}

/// The same, and what the step's log says.
fn act_and_say(folder: &Path, snapshots: &str, arguments: &str) -> (String, String, String) {
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
        .env("MEMLINT_STRICT", "true")
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_OUTPUT", &output)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    assert!(status.status.success(), "the step leaves the verdict to a later one: {}", stderr(&status));
    let read = |path| fs::read_to_string(path).unwrap();
    (read(output), read(summary), stdout(&status).to_owned())
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

#[test]
fn the_action_splits_its_inputs_as_a_shell_does_and_runs_nothing() {
    let folder = folder("action words");
    let spaced = folder.join("a b.pickle.zst");
    fs::copy(root().join(recording("seed-leak-list")), &spaced).unwrap();
    let report = folder.join("report.json");
    let lines = format!("\r\n  '{}' \r\n", spaced.display());
    let arguments = format!("  --output-file 'json={}'  --exit-zero --strict\n", report.display());
    let (output, _) = act(&folder, &lines, &arguments);
    assert!(output.contains("exit-code=0\n"), "{output}");
    assert!(fs::read_to_string(&report).unwrap().contains("a b.pickle.zst"));
    let touched = folder.join("touched");
    let (output, _) = act(&folder, &format!("$(touch '{0}') ; touch '{0}'", touched.display()), "");
    assert!(output.contains("exit-code=2\n") && !touched.exists(), "{output}");
}

#[test]
fn the_action_says_why_there_is_no_verdict() {
    let folder = folder("action-no-verdict");
    let cases = [
        ("nowhere.pickle", "", "there is no file `nowhere.pickle`"),
        (&*recording("seed-linear"), "--frobnicate", "unexpected argument '--frobnicate'"),
        ("'unbalanced", "", "quote"),
        ("", "", "required arguments"),
        (&*recording("nostacks-bug"), "", "12 of 25 rules could not judge the recording"),
    ];
    for (snapshots, arguments, reason) in cases {
        let (output, summary, said) = act_and_say(&folder, snapshots, arguments);
        assert!(output.contains("exit-code=2\n"), "{snapshots}: {output}");
        let error = said.lines().find(|line| line.starts_with("::error title=memlint: no verdict::"));
        assert!(error.is_some_and(|line| line.contains(reason)), "{snapshots}: {said}");
        assert!(summary.starts_with("## memlint: "), "{snapshots}: {summary}");
    }
}

#[test]
fn whatever_runs_memlint_is_strict_and_judges_the_run_that_went_out_of_memory() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    assert!(read("action.yml").contains("MEMLINT_STRICT: \"true\""));
    assert!(read("action.yml").contains("github.event.pull_request.head.repo.fork != true"));
    assert!(read(".pre-commit-hooks.yaml").contains("entry: memlint check --strict\n"));
    assert!(read("examples/sample-repository/memlint.toml").contains("strict = true\n"));
    let gitlab = read("examples/ci/gitlab.yml");
    assert!(gitlab.contains("memlint check --strict snapshots"));
    assert_eq!(gitlab.matches("when: always").count(), 3, "what was recorded, the judging, its reports");
    assert!(!gitlab.contains("MEMLINT_RE"), "memlint refuses variables of its own that it does not know");
    assert_eq!(read("examples/ci/github.yml").matches("if: always()").count(), 2);
}
