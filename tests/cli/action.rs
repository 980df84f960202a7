//! The GitHub action's scripts with a runner's environment, the GitLab template's with its own, and the pre-commit hooks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{folder, recording, root, stderr, stdout};

/// A runner's folders and files, and the commands that it finds first.
struct Runner {
    folder: PathBuf,
}

impl Runner {
    fn new(name: &str) -> Runner {
        let folder = folder(name);
        fs::create_dir(folder.join("commands")).unwrap();
        Runner { folder }
    }

    /// Stands a script in for a command.
    fn stand_in(&self, command: &str, script: &str) -> &Runner {
        let path = self.folder.join("commands").join(command);
        fs::write(&path, format!("#!/usr/bin/env bash\n{script}\n")).unwrap();
        let made = Command::new("chmod").arg("+x").arg(&path).status().unwrap();
        assert!(made.success());
        self
    }

    fn bash(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        for file in ["output", "summary"] {
            fs::write(self.folder.join(file), "").unwrap();
        }
        let found = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args(["--noprofile", "--norc"])
            .args(arguments)
            .current_dir(root())
            .env("PATH", format!("{}:{found}", self.folder.join("commands").display()))
            .env("RUNNER_TEMP", &self.folder)
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("GITHUB_ACTION_PATH", root())
            .env("GITHUB_REPOSITORY", "team/classifier")
            .env("GITHUB_OUTPUT", self.folder.join("output"))
            .env("GITHUB_STEP_SUMMARY", self.folder.join("summary"))
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// Runs a script of the action: its outputs, and what the step's log says.
    fn step(&self, script: &str, variables: &[(&str, &str)]) -> (String, String) {
        let output = self.bash(&[&format!("action/{script}.sh")], variables);
        assert!(output.status.success(), "the step leaves the verdict to a later one: {}", stderr(&output));
        (self.read("output"), stdout(&output).to_owned())
    }

    /// The step that checks: its outputs, the job's summary, the log.
    fn check(&self, snapshots: &str, arguments: &str, base: &str) -> (String, String, String) {
        let sarif = self.folder.join("memlint.sarif").display().to_string();
        let variables = [
            ("BINARY", env!("CARGO_BIN_EXE_memlint")),
            ("SNAPSHOTS", snapshots),
            ("ARGUMENTS", arguments),
            ("SARIF", &sarif),
            ("FOLDER", "."),
            ("BASE", base),
        ];
        let (output, said) = self.step("check", &variables);
        (output, self.read("summary"), said)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap()
    }
}

#[test]
fn the_action_hands_on_the_verdict_and_writes_a_summary() {
    let runner = Runner::new("action");
    let (output, summary, _) = runner.check(&recording("seed-leak-list"), "", "");
    assert!(output.contains("exit-code=1\n") && output.contains("sarif="), "{output}");
    assert!(summary.contains("retained-graph"), "{summary}");
    let (output, _, _) = runner.check(&recording("seed-leak-list"), "--exit-zero\n--strict", "");
    assert!(output.contains("exit-code=0\n"), "{output}");
    let (output, _, _) = runner.check("nowhere.pickle", "", "");
    assert!(output.contains("exit-code=2\n"), "{output}");
}

#[test]
fn the_action_splits_its_inputs_as_a_shell_does_and_runs_nothing() {
    let runner = Runner::new("action words");
    let spaced = runner.folder.join("a b.pickle.zst");
    fs::copy(root().join(recording("seed-leak-list")), &spaced).unwrap();
    let report = runner.folder.join("report.json");
    let lines = format!("\r\n  '{}' \r\n", spaced.display());
    let arguments = format!("  --output-file 'json={}'  --exit-zero --strict\n", report.display());
    let (output, _, _) = runner.check(&lines, &arguments, "");
    assert!(output.contains("exit-code=0\n"), "{output}");
    assert!(fs::read_to_string(&report).unwrap().contains("a b.pickle.zst"));
    let touched = runner.folder.join("touched");
    let (output, _, _) = runner.check(&format!("$(touch '{0}') ; touch '{0}'", touched.display()), "", "");
    assert!(output.contains("exit-code=2\n") && !touched.exists(), "{output}");
}

#[test]
fn the_action_says_why_there_is_no_verdict() {
    let runner = Runner::new("action-no-verdict");
    let cases = [
        ("nowhere.pickle", "", "there is no file `nowhere.pickle`"),
        (&*recording("seed-linear"), "--frobnicate", "unexpected argument '--frobnicate'"),
        ("'unbalanced", "", "quote"),
        ("", "", "required arguments"),
        (&*recording("nostacks-bug"), "", "could not judge the recording"),
    ];
    for (snapshots, arguments, reason) in cases {
        let (output, summary, said) = runner.check(snapshots, arguments, "");
        assert!(output.contains("exit-code=2\n"), "{snapshots}: {output}");
        let error = said.lines().find(|line| line.starts_with("::error title=memlint: no verdict::"));
        assert!(error.is_some_and(|line| line.contains(reason)), "{snapshots}: {said}");
        assert!(summary.starts_with("## memlint: "), "{snapshots}: {summary}");
    }
}

#[test]
fn what_the_base_has_too_does_not_count() {
    let runner = Runner::new("action-against");
    let (output, _, _) = runner.check(&recording("seed-leak-list"), "", &recording("seed-leak-list"));
    assert!(output.contains("exit-code=0\n"), "{output}");
    let (bug, fixed) = (recording("seed-resnet50-bug"), recording("seed-resnet50-fixed"));
    let (output, _, said) = runner.check(&bug, "", &fixed);
    assert!(output.contains("exit-code=1\n") && said.contains("::error"), "{output}{said}");
    let (output, _, _) = runner.check(&bug, "", "nowhere");
    assert!(output.contains("exit-code=2\n"), "a base that is not there is no empty one: {output}");
}

/// Artifacts as GitHub lists them: of a fork's branch of the same name, of another branch, one that has expired, two of the base.
const ARTIFACTS: &str = r#"{"artifacts": [
    {"expired": false, "created_at": "2026-07-05T00:00:00Z", "workflow_run":
        {"id": 1, "head_branch": "main", "repository_id": 10, "head_repository_id": 66}},
    {"expired": false, "created_at": "2026-07-04T00:00:00Z", "workflow_run":
        {"id": 2, "head_branch": "other", "repository_id": 10, "head_repository_id": 10}},
    {"expired": true, "created_at": "2026-07-03T00:00:00Z", "workflow_run":
        {"id": 3, "head_branch": "main", "repository_id": 10, "head_repository_id": 10}},
    {"expired": false, "created_at": "2026-07-01T00:00:00Z", "workflow_run":
        {"id": 4, "head_branch": "main", "repository_id": 10, "head_repository_id": 10}},
    {"expired": false, "created_at": "2026-07-02T00:00:00Z", "workflow_run":
        {"id": 5, "head_branch": "main", "repository_id": 10, "head_repository_id": 10}}
]}"#;

#[test]
#[ignore = "needs jq"]
fn the_newest_recording_of_the_base_branch_itself_is_fetched() {
    let runner = Runner::new("action-base");
    runner.stand_in(
        "gh",
        &format!(
            r#"case "$1 $2" in
  "api repos/team/classifier/actions/artifacts?name=snapshots&per_page=100") cat <<'JSON'
{ARTIFACTS}
JSON
  ;;
  "run download") [ "$3" = 5 ] && [ "$4 $5 $6 $7 $8" = "--repo team/classifier --name snapshots --dir" ] && mkdir "$9" ;;
  *) exit 1 ;;
esac"#
        ),
    );
    let (output, said) = runner.step("base", &[("ARTIFACT", "snapshots"), ("GITHUB_BASE_REF", "main")]);
    assert!(output.starts_with("folder=") && runner.folder.join("memlint-base").is_dir(), "{output}{said}");
    let (output, said) = runner.step("base", &[("ARTIFACT", "snapshots"), ("GITHUB_BASE_REF", "next")]);
    assert!(
        output.is_empty() && said.contains("::notice") && said.contains("next has no artifact"),
        "{said}"
    );
}

#[test]
fn without_a_base_the_head_is_judged_by_itself() {
    let runner = Runner::new("action-no-base");
    runner.stand_in("gh", "echo 'HTTP 403: Resource not accessible by integration' >&2; exit 1");
    let cases = [("", "main", ""), ("snapshots", "", ""), ("snapshots", "main", "::warning")];
    for (artifact, branch, expected) in cases {
        let (output, said) = runner.step("base", &[("ARTIFACT", artifact), ("GITHUB_BASE_REF", branch)]);
        assert!(output.is_empty() && said.starts_with(expected), "{artifact} {branch}: {said}");
    }
}

#[test]
fn the_binary_is_the_one_at_hand_or_that_of_the_release_or_is_built() {
    let runner = Runner::new("action-binary");
    let (output, _) = runner.step("install", &[("BINARY", "/opt/memlint")]);
    assert_eq!(output, "binary=/opt/memlint\n");
    runner.stand_in("gh", "exit 1");
    let (output, _) = runner.step("install", &[]);
    assert!(output.contains("key=memlint-Linux-X64-") && output.contains("/memlint/bin/memlint"), "{output}");
    // A release's wheel holds the binary; what unpacks it is stood in for, too.
    let tag = format!("v{}", env!("CARGO_PKG_VERSION"));
    runner.stand_in(
        "gh",
        &format!(r#"[ "$3 $4 $5" = "{tag} --repo memlint/memlint" ] && mkdir -p "$9" && touch "$9/a.whl""#),
    );
    runner.stand_in("unzip", r#"mkdir -p "${@: -1}" && echo 'echo memlint' > "${@: -1}/memlint""#);
    let (output, said) = runner.step("install", &[]);
    assert!(output.starts_with("binary=") && !output.contains("key="), "{output}{said}");
}

/// The script of a template's job that judges.
fn script_of_gitlab(template: &str) -> String {
    let template = fs::read_to_string(root().join("examples/ci").join(template)).unwrap();
    let body = template.split("    - |\n").nth(1).unwrap();
    let lines = body.lines().take_while(|line| line.starts_with("      "));
    lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
}

#[test]
#[ignore = "needs Python"]
fn a_merge_request_is_compared_with_what_its_target_recorded() {
    for (template, job) in [("gitlab.yml", "memory-snapshot"), ("gitlab-no-gpu.yml", "memory")] {
        a_merge_request_is_compared(template, job);
    }
}

fn a_merge_request_is_compared(template: &str, job: &str) {
    let runner = Runner::new(template);
    let script = format!("cd '{}'\n{}", runner.folder.display(), script_of_gitlab(template));
    let head = runner.folder.join("snapshots");
    fs::create_dir_all(&head).unwrap();
    let bug = root().join(recording("seed-resnet50-bug"));
    fs::copy(&bug, head.join("main.pickle.zst")).unwrap();
    runner.stand_in("memlint", &format!("exec {} \"$@\" --isolated", env!("CARGO_BIN_EXE_memlint")));
    let url = format!("https://git/api/projects/7/jobs/artifacts/release%2F1/download?job={job}");
    let zip = "import sys, zipfile; zipfile.ZipFile('base.zip', 'w').write(sys.argv[1], 'snapshots/main.pickle.zst')";
    runner
        .stand_in("curl", &format!(r#"[ "${{@: -1}}" = "{url}" ] && python3 -c "{zip}" {}"#, bug.display()));
    runner.stand_in("python", "exec python3 \"$@\"");
    let merge = [
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "release/1"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "7"),
        ("CI_API_V4_URL", "https://git/api"),
        ("CI_JOB_TOKEN", "token"),
    ];
    let status = |output: &Output| output.status.code();
    let known = runner.bash(&["-c", &script], &merge);
    assert_eq!(status(&known), Some(0), "the target has it, too: {}{}", stdout(&known), stderr(&known));
    let pushed = runner.bash(&["-c", &script], &[]);
    assert_eq!(status(&pushed), Some(1), "{}", stderr(&pushed));
    runner.stand_in("curl", "exit 22");
    let first = runner.bash(&["-c", &script], &merge);
    assert_eq!(status(&first), Some(1), "{}", stderr(&first));
    assert!(stdout(&first).contains("all findings count"));
}

#[test]
fn the_hook_looks_at_recordings_and_at_no_other_pickles() {
    let hooks = fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    let pattern = hooks.lines().filter_map(|line| line.strip_prefix("  files: ")).next_back().unwrap();
    let files = regex::Regex::new(pattern).unwrap();
    let looked_at = [
        "snapshot.pickle",
        "out/snapshot_3.pkl.gz",
        "oom.pickle",
        "main.pickle.zst",
        "examples/sample-repository/snapshots/main.pickle.zst",
        "snapshots/main.pickle",
        "recording-1/rank3.pickle.zst",
        "iteration_10/rank3_memory_snapshot.pickle",
    ];
    for file in looked_at {
        assert!(files.is_match(file), "{file}");
    }
    for file in ["data/mnist.pickle", "vocabulary.pkl.gz", "ranking.pkl", "snapshots/README.md"] {
        assert!(!files.is_match(file), "{file}");
    }
    assert!(hooks.contains("require_serial: true"));
}

#[test]
fn whatever_runs_memlint_is_strict_and_judges_the_run_that_went_out_of_memory() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    assert!(read("action/check.sh").contains("export MEMLINT_STRICT=true"));
    assert!(read("action.yml").contains("github.event.pull_request.head.repo.fork != true"));
    assert!(read(".pre-commit-hooks.yaml").contains("entry: memlint check --strict\n"));
    assert!(read("examples/sample-repository/memlint.toml").contains("strict = true\n"));
    let gitlab = read("examples/ci/gitlab.yml");
    assert!(gitlab.contains("memlint check --strict snapshots"));
    assert_eq!(
        gitlab.matches("when: always").count(),
        4,
        "what was recorded, the judging twice, its reports"
    );
    assert!(!gitlab.contains("MEMLINT_RE"), "memlint refuses variables of its own that it does not know");
    assert_eq!(read("examples/ci/github.yml").matches("if: always()").count(), 2);
    assert_eq!(read("examples/ci/github-no-gpu.yml").matches("if: always()").count(), 2);
    assert!(read("examples/ci/gitlab-no-gpu.yml").contains("memlint check --strict snapshots \"$@\""));
}

#[test]
fn the_action_runs_its_scripts() {
    let action = fs::read_to_string(root().join("action.yml")).unwrap();
    for script in fs::read_dir(root().join("action")).unwrap() {
        let name = script.unwrap().file_name();
        let path = Path::new("action").join(name).display().to_string();
        assert!(action.contains(&format!("\"$GITHUB_ACTION_PATH/{path}\"")), "{path}");
    }
}
