//! Every rule's specification, run: each `trace` block of `rules/*.md` becomes a snapshot, is read like any file, and
//! the rule has to say what the `expect` block after it says. Then the rules about rules: pages, headings, wording.

mod frames;
mod language;
mod page;
mod pool;
mod recording;
mod shape;

use std::fmt::Write as _;

use language::Expected;
use memlint::engine::{Input, check_with};
use memlint::finding::{Finding, Group, Severity};
use memlint::input::Origin;
use memlint::pickle::PickleLimits;
use memlint::rules::{RULES, Rule, metas};
use memlint::snapshot::Snapshot;
use memlint::unit::Bytes;
use memlint::verdict::Materiality;
use page::Page;

/// What one rule finds in a script.
fn run(rule: &'static dyn Rule, text: &str) -> Result<Vec<Finding>, String> {
    let scripts = language::scripts(text)?;
    let several = scripts.len() > 1;
    let mut inputs = Vec::new();
    for (rank, script) in (0_u32..).zip(&scripts) {
        let pickle = recording::pickle(script)?;
        let snapshot =
            Snapshot::read(pickle.as_slice(), &PickleLimits::default()).map_err(|error| error.to_string())?;
        let origin = Origin { job: Some("trace".to_owned()), rank: Some(rank), moment: Vec::new() };
        let origin = if several { origin } else { Origin::default() };
        inputs.push(Input { origin, ..Input::of("trace".to_owned(), snapshot) });
    }
    Ok(check_with(inputs, &[rule]).findings)
}

/// Why the findings are not what was expected.
fn disagreement(findings: &[Finding], expected: &Expected) -> Option<String> {
    let shown = || format!("found {:?}", findings.iter().map(summary).collect::<Vec<_>>());
    match (findings, expected) {
        ([], Expected::Silent) => None,
        (_, Expected::Silent) => Some(format!("expected silence, {}", shown())),
        ([finding, ..], Expected::Finding { severity, place, details, among })
            if findings.len() == *among =>
        {
            let here = finding.location.as_ref().map(|location| {
                let file = location.file.rsplit('/').next().unwrap_or_default();
                (file.to_owned(), location.line)
            });
            if finding.severity.name() != severity {
                return Some(format!("expected {severity}, {}", shown()));
            }
            if place.is_some() && here != *place {
                return Some(format!("expected it at {place:?}, {}", shown()));
            }
            details.iter().find_map(|(what, value)| detail(finding, what, value))
        }
        _ => Some(format!("expected one finding, {}", shown())),
    }
}

fn detail(finding: &Finding, what: &str, value: &str) -> Option<String> {
    let saved = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let is = match what {
        "confidence" => finding.confidence.name().to_owned(),
        "peak" => format!("-{}", saved(finding.impact.peak)),
        "growth" => saved(finding.impact.per_iteration),
        "message" if finding.message.contains(value) => value.to_owned(),
        "message" => finding.message.clone(),
        "help" if finding.help.contains(value) => value.to_owned(),
        "help" => finding.help.clone(),
        _ => return Some(format!("no such expectation: {what}")),
    };
    (is != value).then(|| format!("expected {what} {value}, found {is}"))
}

fn summary(finding: &Finding) -> String {
    let place = finding.location.as_ref().map(|location| format!("{}:{}", location.file, location.line));
    format!("{} at {}: {}", finding.severity.name(), place.unwrap_or_default(), finding.message)
}

#[test]
fn examples_hold() {
    let mut failures = Vec::new();
    for rule in RULES {
        let name = rule.meta().name;
        let examples = Page::of(rule.meta().page).examples;
        for (number, example) in examples.iter().enumerate() {
            let outcome = language::expected(&example.expect).and_then(|expected| {
                let findings = run(*rule, &example.trace)?;
                disagreement(&findings, &expected).map_or(Ok(()), Err)
            });
            if let Err(reason) = outcome {
                failures.push(format!("{name}, example {}: {reason}", number + 1));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_rule_shows_a_finding_and_a_silence() {
    for rule in RULES {
        let examples = Page::of(rule.meta().page).examples;
        let silent = |expect: &str| expect.trim() == "silent";
        let (quiet, loud): (Vec<_>, Vec<_>) = examples.iter().partition(|example| silent(&example.expect));
        assert!(!quiet.is_empty() && !loud.is_empty(), "{}", rule.meta().name);
    }
}

#[test]
fn pages_have_the_same_headings_and_their_rule_as_title() {
    for rule in RULES {
        let page = Page::of(rule.meta().page);
        assert_eq!(page.title, rule.meta().name);
        let headings = [
            "What it detects",
            "Why it costs memory",
            "How to fix it",
            "When to ignore it",
            "Options",
            "Examples",
        ];
        assert_eq!(page.headings, headings, "{}", rule.meta().name);
    }
}

#[test]
fn pages_name_the_table_that_sets_their_rule() {
    let table = Materiality::default();
    for rule in RULES {
        let meta = rule.meta();
        let is_named = meta.page.contains(&format!("\n`[materiality.{}]`", meta.name));
        assert_eq!(is_named, table.row(meta.name).is_some(), "{}", meta.name);
    }
}

#[test]
fn every_page_belongs_to_a_rule() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules");
    let mut pages: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .filter(|name| name != "README")
        .collect();
    pages.sort();
    let mut names: Vec<&str> = metas().map(|meta| meta.name).collect();
    names.sort_unstable();
    assert_eq!(pages, names);
}

/// The table of `rules/README.md`.
fn index() -> String {
    let mut table = "| rule | group | level | what it finds |\n|---|---|---|---|\n".to_owned();
    for meta in metas() {
        let (name, group, level) = (meta.name, meta.group.name(), meta.level.name());
        let _ = writeln!(table, "| [{name}]({name}.md) | {group} | {level} | {} |", meta.summary);
    }
    table
}

#[test]
fn the_index_lists_every_rule() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/README.md")).unwrap();
    let table = readme.split_once("\n| rule").map(|(_, rest)| format!("| rule{rest}")).unwrap_or_default();
    assert_eq!(table, index(), "the table of rules/README.md has to be");
}

#[test]
fn names_and_summaries_read_alike() {
    for rule in RULES {
        let meta = rule.meta();
        assert!(
            meta.name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'),
            "{}",
            meta.name
        );
        assert_eq!(wording(meta.summary), None, "{}", meta.name);
        assert_eq!(memlint::rules::named(meta.name).map(|found| found.meta().name), Some(meta.name));
    }
}

#[test]
fn messages_stand_alone_and_carry_what_reports_need() {
    for rule in RULES {
        for example in Page::of(rule.meta().page).examples {
            for finding in run(*rule, &example.trace).unwrap() {
                assert_eq!(wording(&finding.message), None, "{}", finding.message);
                assert!(finding.label.chars().count() <= 70, "{}", finding.label);
                assert!(!finding.help.is_empty() && !finding.help.ends_with('.'), "{}", finding.help);
                assert_eq!(finding.rule, rule.meta().name);
                // Without any stack there is no place, and a rank that needs less than the others has no line that does.
                let less = finding.rule == "rank-imbalance" && finding.impact.peak.is_none();
                assert!(
                    finding.location.is_some() || finding.rule == "no-stacks" || less,
                    "{}",
                    finding.rule
                );
                assert!(!finding.evidence.is_empty(), "{}", finding.rule);
                assert!(finding.evidence.iter().all(|measure| !measure.text.ends_with('.')));
                let is_leak = finding.group == Group::Leak && finding.severity == Severity::Error;
                let impact = &finding.impact;
                let saves = impact.resident.or(impact.per_iteration).or(impact.peak);
                assert!(!is_leak || saves.is_some(), "{}", finding.rule);
            }
        }
    }
}

/// What is wrong with a message: it starts in lower case, ends without a stop, and has fewer than 80 characters.
fn wording(message: &str) -> Option<&'static str> {
    if message.starts_with(|first: char| first.is_uppercase()) {
        Some("starts with a capital")
    } else if message.ends_with(['.', '!', ':']) {
        Some("ends with a stop")
    } else if message.chars().count() >= 80 {
        Some("has 80 characters or more")
    } else {
        None
    }
}
