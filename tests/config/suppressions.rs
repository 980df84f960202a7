//! Findings that somebody says are meant: by a comment at the line, or in the configuration.

use std::fs;
use std::path::{Path, PathBuf};

use memlint::config::{Overrides, Selection, Settings};
use memlint::engine::{Called, Callee, RecordedFile, RecordedLine, Recording, Report};
use memlint::finding::{Finding, Group, Hidden, Location, Notice, Severity, Silence, Skipped, Standing};
use memlint::gate::{Gate, Suppressions};
use memlint::source::SourceMap;

use crate::{folder, settings};

const PROGRAM: &str = "\
def train(model, loader):
    losses = []
    for batch in loader:
        losses.append(
            model(batch),
        )
        # memlint: ignore[late-zero-grad, growing-residency] both are known
        # (see the ticket)
        model(batch).backward()
        total = model(batch)  # memlint: ignore[oom] a test of the limit
        # memlint: ignore[transient-spike] far above

        other = model(batch)
";

/// A file of which a recording saw one line, and nothing of what that called.
fn recorded(path: &str) -> RecordedFile {
    let line = RecordedLine { line: 3, function: "train".to_owned(), called: Called::Unknown };
    RecordedFile { path: path.to_owned(), lines: vec![line] }
}

/// The same with what some lines called.
fn recorded_calls(path: &str, calls: &[(u32, &str)]) -> RecordedFile {
    let called = |name: &str| Called::Function(vec![Callee { name: name.to_owned(), certain: true }]);
    let line = |(line, name): &(u32, &str)| RecordedLine {
        line: *line,
        function: "train".to_owned(),
        called: called(name),
    };
    RecordedFile { path: path.to_owned(), lines: calls.iter().map(line).collect() }
}

struct Program {
    folder: PathBuf,
}

impl Program {
    fn new(name: &str, text: &str) -> Program {
        let folder = folder(name);
        fs::write(folder.join("train.py"), text).unwrap();
        Program { folder }
    }

    /// Judges findings at lines of the program.
    fn judge(&self, findings: &[(&'static str, u32)], settings: &Settings, today: &str) -> Report {
        self.judge_recorded(&recorded("/opt/job/train.py"), findings, settings, today)
    }

    /// Judges findings at lines of a file as a recording saw it.
    fn judge_recorded(
        &self,
        file: &RecordedFile,
        findings: &[(&'static str, u32)],
        settings: &Settings,
        today: &str,
    ) -> Report {
        let at = |line| Location { file: file.path.clone(), line, function: "train".to_owned() };
        let finding = |(rule, line): &(&'static str, u32)| Finding {
            location: Some(at(*line)),
            ..Finding::of(*rule, Group::Leak, Severity::Error)
        };
        let mut report = Report {
            recordings: vec![Recording { files: vec![file.clone()], ..Recording::default() }],
            findings: findings.iter().map(finding).collect(),
            ..Report::default()
        };
        let files = SourceMap::new([self.folder.clone()], Vec::new()).seen_by(&report.recordings);
        let Settings { ignores, selection, .. } = settings;
        Suppressions { ignores, selection, today: today.parse().unwrap() }.apply(&mut report, &files);
        Gate { fail_on: Some(Severity::Error), strict: false }.judge(&mut report);
        report
    }

    /// Judges without a configuration.
    fn plain(&self, findings: &[(&'static str, u32)]) -> Report {
        self.judge(findings, &settings("", Overrides::default()), "2027-01-01")
    }
}

/// Why each finding is ignored, and by which line.
fn reasons(report: &Report) -> Vec<Option<(&str, &str)>> {
    let mut reasons = Vec::new();
    for finding in &report.findings {
        reasons.push(match &finding.standing {
            Standing::Ignored { reason, by } => Some((&**reason, by.rsplit('/').next().unwrap_or(by))),
            _ => None,
        });
    }
    reasons
}

fn kinds(notices: &[Notice]) -> Vec<(&str, u32, Severity)> {
    let line = |notice: &Notice| notice.location.as_ref().map_or(0, |location| location.line);
    notices.iter().map(|notice| (notice.kind.name(), line(notice), notice.severity)).collect()
}

#[test]
fn a_comment_stands_for_its_line_and_for_the_code_right_below() {
    let program = Program::new("ignore-lines", PROGRAM);
    let report = program.plain(&[
        ("oom", 10),
        ("late-zero-grad", 9),
        ("growing-residency", 9),
        ("oom", 9),
        ("transient-spike", 13),
    ]);
    assert_eq!(
        reasons(&report),
        [
            Some(("a test of the limit", "train.py:10")),
            Some(("both are known", "train.py:7")),
            Some(("both are known", "train.py:7")),
            None,
            None,
        ],
        "another rule's comment, and one above a blank line, say nothing",
    );
    assert_eq!(kinds(&report.notices), [("unused-ignore", 11, Severity::Info)]);
    assert_eq!(report.verdict.failing, 2);
}

#[test]
fn a_comment_stands_for_the_whole_statement() {
    let text = PROGRAM
        .replace("            model(batch),\n", "            model(batch),  # memlint: ignore[oom] one\n");
    let text = text.replace(
        "        # memlint: ignore[late-zero-grad, growing-residency] both are known\n",
        "        # nothing\n",
    );
    let program =
        Program::new("ignore-statement", &text.replace("  # memlint: ignore[oom] a test of the limit", ""));
    assert_eq!(reasons(&program.plain(&[("oom", 4)])), [Some(("one", "train.py:5"))]);
    assert_eq!(reasons(&program.plain(&[("oom", 5)])), [Some(("one", "train.py:5"))]);
    assert_eq!(reasons(&program.plain(&[("oom", 9)])), [None]);
    assert_eq!(
        reasons(&program.plain(&[("oom", 3)])),
        [None],
        "a statement inside does not speak for the loop"
    );
}

#[test]
fn what_is_not_understood_is_not_applied_and_said() {
    let at = |line| ("oom", line);
    let elsewhere = Program::new("ignore-elsewhere", "x = 1  # memlint: ignore\ny = 2\nz = 3\n");
    assert!(
        elsewhere.plain(&[]).notices.is_empty(),
        "the file is not the recorded one: line 3 is not in `train`"
    );
    let program = Program::new(
        "ignore-malformed",
        "def train():\n    x = 1  # memlint: ignore\n    y = 2  # memlint: ignore[oom]\n    z = 3  # memlint: ignore[ooom] typo\n",
    );
    let report = program.plain(&[at(2), at(3), at(4)]);
    assert_eq!(reasons(&report), [None, None, None]);
    assert_eq!(
        kinds(&report.notices),
        [
            ("malformed-ignore", 2, Severity::Warning),
            ("malformed-ignore", 3, Severity::Warning),
            ("unknown-rule", 4, Severity::Warning),
        ]
    );
    assert_eq!(report.notices[2].help, "did you mean `oom`?");
}

#[test]
fn a_path_that_fits_nowhere_is_held_against_where_something_was_found() {
    let program = Program::new("ignore-elsewhere", PROGRAM);
    let settings = settings(
        "[[rules.late-zero-grad.ignore]]\npath = \"src/nowhere.py\"\nreason = \"meant\"\n",
        Overrides::default(),
    );
    let report = program.judge(&[("late-zero-grad", 2)], &settings, "2027-01-01");
    let notice = report.notices.iter().find(|one| one.message.contains("hides nothing")).unwrap();
    assert!(
        notice.help.contains("this rule found something in ") && notice.help.contains(".py"),
        "{}",
        notice.help
    );
}

#[test]
fn what_was_not_judged_is_not_called_unused() {
    let program = Program::new("ignore-unjudged", PROGRAM);
    let without = settings(
        "[lint]\nignore = [\"oom\", \"late-zero-grad\", \"growing-residency\"]\n",
        Overrides::default(),
    );
    let unused =
        |report: &Report| report.notices.iter().map(|notice| notice.message.clone()).collect::<Vec<_>>();
    let report = program.judge(&[], &without, "2027-01-01");
    assert_eq!(unused(&report), ["the ignore of `transient-spike` hides nothing"]);
    let mut skipped = Report {
        recordings: report.recordings,
        skipped: vec![Skipped {
            input: 0,
            device: None,
            rule: "transient-spike".into(),
            silence: Silence::Blind(Hidden::Iterations),
        }],
        ..Report::default()
    };
    let files = SourceMap::new([program.folder.clone()], Vec::new()).seen_by(&skipped.recordings);
    let selection: &Selection = &without.selection;
    Suppressions { ignores: &[], selection, today: "2027-01-01".parse().unwrap() }
        .apply(&mut skipped, &files);
    assert!(unused(&skipped).is_empty(), "{:?}", skipped.notices);
}

#[test]
fn the_configuration_ignores_by_path_and_function_until_its_day() {
    let program = Program::new("ignore-configured", "def train():\n    pass\n    x = 1\n");
    let text = "[[rules.oom.ignore]]\npath = \"job/*.py\"\nreason = \"known\"\nuntil = \"2027-01-31\"\n\
                [[rules.oom.ignore]]\nfunction = \"evaluate\"\nreason = \"other\"\n";
    let settings = settings(text, Overrides::default());
    let before = program.judge(&[("oom", 3), ("fragmentation", 3)], &settings, "2027-01-31");
    assert_eq!(reasons(&before), [Some(("known", "memlint.toml:1")), None]);
    assert_eq!(kinds(&before.notices), [("unused-ignore", 5, Severity::Info)]);
    assert_eq!(before.notices[0].location.as_ref().unwrap().file, "ci/memlint.toml");
    let after = program.judge(&[("oom", 3)], &settings, "2027-02-01");
    assert_eq!(reasons(&after), [None]);
    assert_eq!(
        kinds(&after.notices),
        [("expired-ignore", 1, Severity::Warning), ("unused-ignore", 5, Severity::Info)]
    );
    assert_eq!(after.notices[0].message, "the ignore of `oom` ended on 2027-01-31 and is not applied");
    assert_eq!(after.verdict.failing, 1);
}

#[test]
fn without_the_source_no_comment_speaks() {
    let program = Program { folder: Path::new("/nowhere").to_owned() };
    let report = program.plain(&[("oom", 10)]);
    assert_eq!(reasons(&report), [None]);
    assert!(report.notices.is_empty());
}

/// A loop that keeps what it computes, `comment` above the line that does.
fn leaking(comment: &str) -> String {
    format!(
        "def train(model, loader):\n    kept = []\n    for batch in loader:\n        loss = model(batch)\n{comment}        \
         kept.append(augment(loss))\n        loss.backward()\n"
    )
}

const ABOVE: &str = "        # memlint: ignore[growing-residency] 200 steps at most\n";

#[test]
fn a_comment_that_came_in_after_the_recording_moves_no_line() {
    let program = Program::new("ignore-added", &leaking(ABOVE));
    let file = recorded_calls("/opt/job/train.py", &[(5, "augment"), (6, "backward")]);
    let settings = settings("", Overrides::default());
    let report = program.judge_recorded(&file, &[("growing-residency", 5)], &settings, "2027-01-01");
    assert_eq!(reasons(&report), [Some(("200 steps at most", "train.py:5"))]);
    let at_once = recorded_calls("/opt/job/train.py", &[(6, "augment"), (7, "backward")]);
    let report = program.judge_recorded(&at_once, &[("growing-residency", 6)], &settings, "2027-01-01");
    assert_eq!(reasons(&report), [Some(("200 steps at most", "train.py:5"))], "or was there already");
}

#[test]
fn in_a_changed_file_a_comment_speaks_where_its_call_is_found_again() {
    let shifted = format!("import os\n\n\n{}", leaking(ABOVE));
    let program = Program::new("ignore-shifted", &shifted);
    let settings = settings("", Overrides::default());
    let found = recorded_calls("/opt/job/train.py", &[(4, "model"), (5, "augment"), (6, "backward")]);
    let report = program.judge_recorded(&found, &[("growing-residency", 5)], &settings, "2027-01-01");
    assert_eq!(reasons(&report), [Some(("200 steps at most", "train.py:8"))]);
    // The lines above and below it have to have moved as far: otherwise the call may be another one of its name.
    for around in [
        &[(4, "model"), (5, "augment")][..],
        &[(5, "augment"), (6, "backward")],
        &[(2, "model"), (5, "augment"), (6, "backward")],
    ] {
        let alone = recorded_calls("/opt/job/train.py", around);
        let report = program.judge_recorded(&alone, &[("growing-residency", 5)], &settings, "2027-01-01");
        assert_eq!(reasons(&report), [None], "{around:?}");
    }
    // Nothing tells which line an unnamed call has become.
    let lost = recorded_calls("/opt/job/train.py", &[(5, "wrapped"), (6, "backward")]);
    let report = program.judge_recorded(&lost, &[("growing-residency", 5)], &settings, "2027-01-01");
    assert_eq!(reasons(&report), [None]);
    assert_eq!(kinds(&report.notices), [("ignore-out-of-place", 8, Severity::Warning)]);
    assert_eq!(report.verdict.failing, 1);
}

#[test]
fn a_file_of_the_same_name_hides_nothing() {
    let folder = folder("ignore-other");
    fs::create_dir_all(folder.join("other")).unwrap();
    fs::write(folder.join("other/train.py"), leaking(ABOVE)).unwrap();
    let program = Program { folder: folder.join("other") };
    let settings = settings("", Overrides::default());
    let judge = |program: &Program, files: &[&str]| {
        let mut all: Vec<RecordedFile> =
            files.iter().map(|path| recorded_calls(path, &[(6, "augment"), (7, "backward")])).collect();
        let blamed = all.remove(0);
        let at = Location { file: blamed.path.clone(), line: 6, function: "train".to_owned() };
        let finding = Finding::of("growing-residency", Group::Leak, Severity::Error);
        let mut report = Report {
            recordings: vec![Recording {
                files: std::iter::once(blamed).chain(all).collect(),
                ..Recording::default()
            }],
            findings: vec![Finding { location: Some(at), ..finding }],
            ..Report::default()
        };
        let files = SourceMap::new([program.folder.clone()], Vec::new()).seen_by(&report.recordings);
        let Settings { ignores, selection, .. } = &settings;
        let today = "2027-01-01".parse().unwrap();
        Suppressions { ignores, selection, today }.apply(&mut report, &files);
        (reasons(&report)[0].is_some(), report.notices.iter().map(|one| one.kind.name()).collect::<Vec<_>>())
    };
    // One component agrees, and the recorded file did not lie at the root of its program.
    let below = ["/opt/job/tasks/train.py", "/opt/job/lib/loop.py"];
    assert_eq!(judge(&program, &below), (false, vec!["ignore-by-name"]));
    assert_eq!(
        judge(&program, &["/opt/job/train.py", "/opt/job/lib/loop.py"]),
        (true, vec![]),
        "at the root"
    );
    assert_eq!(
        judge(&program, &["/opt/other/train.py", "/home/me/loop.py"]),
        (true, vec![]),
        "two components"
    );
}
