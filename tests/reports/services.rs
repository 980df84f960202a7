//! What CI services read, read back as they do: workflow commands, code quality, JUnit, Markdown.

use std::collections::{BTreeMap, BTreeSet};

use memlint::engine::{Report, Verdict};
use memlint::finding::{Finding, Severity, Standing};
use memlint::report::Format;
use roxmltree::{Document, Node};
use serde_json::Value;

use crate::fixture::{
    HOSTILE, PLAIN, at, blind, finding, findings, hostile, missing_zero_grad, none, nowhere, recording,
    report, sources, suppressed,
};
use crate::matrix::{written, written_failure};

fn write(format: Format, report: &Report) -> String {
    written(format, report, &sources(), &PLAIN)
}

/// A workflow command as the runner of GitHub Actions reads it.
#[derive(Debug)]
struct Command {
    kind: String,
    properties: BTreeMap<String, String>,
    message: String,
}

fn commands(text: &str) -> Vec<Command> {
    let unescape = |text: &str| text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%");
    let command = |line: &str| {
        let (head, message) = line.strip_prefix("::")?.split_once("::")?;
        let (kind, properties) = head.split_once(' ')?;
        let property = |one: &str| {
            let (name, value) = one.split_once('=').unwrap();
            (name.to_owned(), unescape(&value.replace("%3A", ":").replace("%2C", ",")))
        };
        let properties = properties.split(',').map(property).collect();
        Some(Command { kind: kind.to_owned(), properties, message: unescape(message) })
    };
    text.lines().filter(|line| line.starts_with("::")).map(|line| command(line).unwrap()).collect()
}

#[test]
fn github_annotates_the_lines_of_the_repository() {
    let commands = commands(&write(Format::Github, &findings()));
    let kinds: Vec<&str> = commands.iter().map(|command| command.kind.as_str()).collect();
    assert_eq!(kinds, ["error", "warning", "warning"], "the note and what does not count stay out");
    let worst = &commands[0];
    let keys = ["file", "line", "endLine", "col", "endColumn", "title"];
    let values = keys.map(|key| worst.properties[key].as_str());
    let file = "examples/seed-resnet50-bug/train.py";
    assert_eq!(values, [file, "17", "17", "9", "41", "memlint: missing-zero-grad"]);
    assert!(worst.message.contains("never released") && worst.message.contains("\nhelp: clear them once"));
    assert!(worst.message.contains("ranks 2 of 2, worst on rank 0"));
}

#[test]
fn github_gets_no_columns_of_an_expression_over_several_lines() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats-several-lines");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("several.py"), "def run():\n    y = model(\n        x,\n    )\n").unwrap();
    let spread =
        Finding { location: Some(at("/opt/several.py", 2, "run")), stack: Vec::new(), ..missing_zero_grad() };
    let sources = memlint::source::SourceMap::new([folder], Vec::new());
    let commands = commands(&written(Format::Github, &report(vec![spread]), &sources, &PLAIN));
    assert_eq!(commands[0].properties["endLine"], "4");
    assert!(!commands[0].properties.contains_key("col") && !commands[0].properties.contains_key("endColumn"));
}

#[test]
fn github_gets_the_ten_worst_and_how_many_more_there_are() {
    let mut many: Vec<Finding> =
        (0..30).map(|at| finding("one", Severity::Warning, &format!("warning {at}"))).collect();
    many.extend((0..3).map(|at| finding("two", Severity::Error, &format!("error {at}"))));
    let commands = commands(&write(Format::Github, &report(many)));
    assert_eq!(commands.len(), 11);
    let kinds: Vec<&str> = commands.iter().map(|command| command.kind.as_str()).collect();
    assert_eq!(kinds, [vec!["error"; 3], vec!["warning"; 7], vec!["notice"]].concat());
    assert!(commands[3].message.starts_with("warning 0"), "the report's order, which is by impact");
    assert!(
        commands[10].message.contains("23 more findings")
            && commands[10].message.contains("3 errors, 30 warnings")
    );
}

#[test]
fn no_name_out_of_a_recording_becomes_a_command() {
    for format in [Format::Github, Format::Concise] {
        for sources in [sources(), nowhere()] {
            let text = written(format, &hostile(), &sources, &PLAIN);
            let expected = if format == Format::Github { 3 } else { 0 };
            let lines = text.lines().filter(|line| line.trim_start().starts_with("::")).count();
            assert_eq!(lines, expected, "{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']));
        }
    }
    let told = commands(&write(Format::Github, &hostile()));
    assert!(told[0].message.contains("x%0A,%"), "{:?}", told[0]);
}

#[test]
fn gitlab_gets_what_it_demands() {
    for report in [findings(), hostile()] {
        let issues: Vec<Value> = serde_json::from_str(&write(Format::Gitlab, &report)).unwrap();
        assert_eq!(issues.len(), report.open().count() + report.notices.len());
        let mut fingerprints = BTreeSet::new();
        for issue in &issues {
            let rule = issue["check_name"].as_str().unwrap();
            assert!(issue["description"].as_str().unwrap().starts_with(&format!("{rule}: ")));
            assert!(["info", "minor", "major", "critical"].contains(&issue["severity"].as_str().unwrap()));
            assert!(!issue["location"]["path"].as_str().unwrap().is_empty());
            assert!(issue["location"]["lines"]["begin"].as_u64().unwrap() >= 1);
            assert!(fingerprints.insert(issue["fingerprint"].as_str().unwrap().to_owned()));
        }
    }
    let issues: Vec<Value> = serde_json::from_str(&write(Format::Gitlab, &findings())).unwrap();
    assert_eq!(issues[0]["location"]["path"], "examples/seed-resnet50-bug/train.py");
    assert_eq!(
        (&issues[0]["severity"], &issues[0]["location"]["lines"]["begin"]),
        (&"critical".into(), &17.into())
    );
    assert_eq!(write(Format::Gitlab, &none()), "[]\n");
    assert_eq!(write(Format::Gitlab, &suppressed()), "[]\n");
    let failed: Vec<Value> = serde_json::from_str(&written_failure(Format::Gitlab)).unwrap();
    assert_eq!(failed[0]["severity"], "blocker", "an empty list would be a clean one");
}

#[test]
fn gitlab_fingerprints_are_unique_where_findings_are_equal() {
    let twice = report(vec![missing_zero_grad(), missing_zero_grad(), missing_zero_grad()]);
    let issues: Vec<Value> = serde_json::from_str(&write(Format::Gitlab, &twice)).unwrap();
    let unique: BTreeSet<&str> = issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    assert_eq!(unique.len(), 3);
}

fn count(node: Node<'_, '_>, name: &str) -> usize {
    node.descendants().filter(|one| one.has_tag_name(name)).count()
}

/// Counts in the attributes agree with the cases, and gives the outcome of each case.
fn outcomes(text: &str) -> BTreeMap<(String, String), String> {
    let document = Document::parse(text).unwrap();
    let root = document.root_element();
    assert!(root.has_tag_name("testsuites"));
    for suite in
        document.descendants().filter(|one| one.has_tag_name("testsuite") || one.has_tag_name("testsuites"))
    {
        for (attribute, element) in
            [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")]
        {
            assert_eq!(suite.attribute(attribute), Some(&*count(suite, element).to_string()), "{attribute}");
        }
    }
    let cases = document.descendants().filter(|one| one.has_tag_name("testcase"));
    let outcome = |case: Node<'_, '_>| {
        let told = case.children().filter(Node::is_element).map(|one| one.tag_name().name().to_owned());
        told.collect::<Vec<_>>().join(" ")
    };
    cases
        .map(|case| {
            let name = |key| case.attribute(key).unwrap().to_owned();
            ((name("classname"), name("name")), outcome(case))
        })
        .collect()
}

#[test]
fn junit_has_a_case_for_each_rule_and_snapshot() {
    let cases = outcomes(&write(Format::Junit, &findings()));
    let of = |snapshot: &str, rule: &str| cases[&(snapshot.to_owned(), rule.to_owned())].as_str();
    let (zero, one) = ("snapshot.pickle.zst", "rank1.pickle");
    assert_eq!(of(zero, "missing-zero-grad"), "failure");
    assert_eq!(of(one, "missing-zero-grad"), "failure", "it was found there, too");
    assert_eq!(of(one, "fragmentation"), "system-out", "a warning does not close this gate");
    assert_eq!(of(zero, "lazy-optimizer-init"), "system-out");
    assert_eq!(of(zero, "oom"), "skipped");
    assert_eq!(of(one, "oom"), "");
    assert_eq!(of(zero, "growing-residency"), "system-out", "ignored");
    assert_eq!(of("memlint", "unused-ignore"), "system-out");

    let document = write(Format::Junit, &findings());
    let document = Document::parse(&document).unwrap();
    let failed = document.descendants().find(|one| one.has_tag_name("failure")).unwrap();
    assert_eq!(failed.attribute("type"), Some("error"));
    assert!(failed.text().unwrap().contains("optimizer.zero_grad(set_to_none=True)"));
    let case = failed.parent().unwrap();
    assert_eq!(
        (case.attribute("file"), case.attribute("line")),
        (Some("examples/seed-resnet50-bug/train.py"), Some("17"))
    );
}

#[test]
fn junit_fails_where_the_gate_closes() {
    let mut report = findings();
    report.verdict = Verdict { fail_on: Some(Severity::Warning), failing: 3, ..Verdict::default() };
    let cases = outcomes(&write(Format::Junit, &report));
    assert_eq!(cases.values().filter(|outcome| outcome.contains("failure")).count(), 4);
    assert!(cases.values().any(|outcome| outcome == "system-out"), "the note");
    report.verdict = Verdict::default();
    assert!(!outcomes(&write(Format::Junit, &report)).values().any(|outcome| outcome.contains("failure")));
    assert!(outcomes(&written_failure(Format::Junit)).values().any(|outcome| outcome == "error"));
    assert_eq!(outcomes(&write(Format::Junit, &none())).values().filter(|one| one.is_empty()).count(), 3);
}

#[test]
fn junit_holds_whatever_a_recording_says() {
    let text = write(Format::Junit, &hostile());
    let cases = outcomes(&text);
    let shown = |text: &str| text.replace(['\r', '\u{1b}', '\u{fffe}'], "\u{fffd}").replace('\n', " ");
    let name = shown(&format!("rank1.pickle{HOSTILE}"));
    assert!(cases.keys().any(|(snapshot, _)| *snapshot == name), "{cases:?}");
}

/// The cells of a row of a table, as GitHub splits it.
fn cells(row: &str) -> usize {
    row.replace("\\\\", "").replace("\\|", "").matches('|').count()
}

/// A document without its code, in which nothing is markup.
fn without_fences(text: &str) -> String {
    let mut kept = String::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let marks: String = line.chars().take_while(|one| *one == '`').collect();
        match &open {
            None if marks.len() >= 3 => open = Some(marks),
            None => kept.extend([line, "\n"]),
            Some(fence) if marks.len() >= fence.len() && marks == line => open = None,
            Some(_) => {}
        }
    }
    assert_eq!(open, None, "{text}");
    kept
}

#[test]
fn markdown_is_not_broken_by_names() {
    for report in [findings(), suppressed(), hostile()] {
        let text = without_fences(&write(Format::Markdown, &report));
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count(), "{text}");
        assert_eq!(text.matches("<summary>").count(), text.matches("</summary>").count());
        assert!(!text.contains("<script>") && !text.contains(['\u{1b}', '\u{202e}', '\r']));
        for row in text.lines().filter(|line| line.starts_with("| ")) {
            assert_eq!(cells(row), 6, "{row}");
        }
        let headings = text.lines().filter(|line| line.starts_with('#')).count();
        assert_eq!(headings, 1, "{text}");
    }
    let rows = write(Format::Markdown, &hostile());
    let rows =
        rows.lines().filter(|line| line.starts_with("| error") || line.starts_with("| warning")).count();
    assert_eq!(rows, 2);
}

#[test]
fn markdown_says_what_the_gate_does() {
    let text = write(Format::Markdown, &findings());
    assert!(
        text.starts_with(
            "## memlint: 1 error, 2 warnings, 1 note (not counted: 1 ignored, 1 in the baseline)\n"
        ),
        "{text}"
    );
    assert!(text.contains("**The gate closes**: 1 finding at or above error."));
    assert!(text.contains("| error | missing-zero-grad |") && text.contains("25.3 MiB of the peak"));
    assert!(text.contains("█") && text.contains("░"), "memory of the iterations is drawn");
    assert!(write(Format::Markdown, &none()).contains("**The gate is open**"));
    let mut blind = blind();
    let text = write(Format::Markdown, &blind);
    assert!(text.starts_with("## memlint: 1 of 3 rules could not judge: record 5"), "{text}");
    blind.verdict.blind = 1;
    assert!(write(Format::Markdown, &blind).contains("**There is no verdict**"), "--strict");
    let mut unnamed = none();
    unnamed.recordings = vec![recording(); 6];
    unnamed.findings = vec![Finding { standing: Standing::Open, ..missing_zero_grad() }; 60];
    let text = write(Format::Markdown, &unnamed);
    assert!(text.contains("10 more findings left out here") && text.contains("2 more devices not drawn"));
}
