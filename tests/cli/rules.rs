//! What there is to find: `memlint rules` lists it, `memlint explain` explains it.

use std::fmt::Write;

use memlint::finding::Matter;
use memlint::rules::metas;
use serde_json::Value;

use crate::{folder, golden, memlint, memlint_in, stderr, stdout};

/// What `memlint explain` says, which exits with 0.
fn explained(arguments: &[&str]) -> String {
    let output = memlint(&[&["explain"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output).to_owned()
}

#[test]
fn every_rule_is_listed_with_its_group_level_and_sentence() {
    let list = memlint(&["rules"]);
    assert_eq!((list.status.code(), stderr(&list)), (Some(0), ""));
    golden("rules", stdout(&list));
    assert!(stdout(&list).lines().all(|line| line.chars().count() <= 80));
    let document: Value =
        serde_json::from_str(stdout(&memlint(&["rules", "--output-format", "json"]))).unwrap();
    assert_eq!(document["schema"], "memlint/1");
    let listed = document["rules"].as_array().unwrap();
    assert_eq!(listed.len(), metas().count());
    for (rule, meta) in listed.iter().zip(metas()) {
        let fields = ["name", "group", "level", "summary"].map(|field| rule[field].as_str().unwrap());
        assert_eq!(fields, [meta.name, meta.group.name(), meta.level.name(), meta.summary]);
        assert!(stdout(&list).contains(&format!("\n  {} ", meta.name)), "{}", meta.name);
    }
    let groups = document["groups"].as_array().unwrap();
    let asked_for = groups.iter().filter(|group| group["by_default"] == false);
    assert_eq!(asked_for.map(|group| &group["name"]).collect::<Vec<_>>(), ["advice"]);
}

#[test]
fn a_page_is_a_guide_and_its_examples_are_asked_for() {
    for meta in metas() {
        let guide = explained(&[meta.name]);
        assert!(guide.starts_with(&format!("# {}\n", meta.name)));
        assert!(guide.contains("\n## When to ignore it\n"), "{}", meta.name);
        assert!(!guide.contains("```trace") && !guide.contains("## Examples"), "{}", meta.name);
        let is_prose = |line: &&str| !line.starts_with(['|', '`']) && line.contains(". ");
        let longest = guide.lines().filter(is_prose).map(|line| line.chars().count()).max();
        assert!(longest.is_none_or(|longest| longest <= 80), "{}: {longest:?}", meta.name);
    }
    let (guide, whole) = (explained(&["growing-residency"]), explained(&["growing-residency", "--examples"]));
    assert!(guide.lines().count() < 140, "{}", guide.lines().count());
    let examples = whole.strip_prefix(&guide).unwrap();
    assert!(examples.starts_with("\n## Examples\n") && examples.contains("```trace\n"), "{examples}");
    assert!(guide.contains("\n## When it counts\n"));
    let all = explained(&["--all"]);
    assert!(metas().all(|meta| all.contains(&explained(&[meta.name]))));
    assert!(!all.contains("```trace") && explained(&["--all", "--examples"]).contains("```trace"));
}

#[test]
fn a_group_is_explained_by_its_rules_and_budgets_by_those_that_are_set() {
    golden("explain-group", &explained(&["leak", "--isolated"]));
    let folder = folder("explained-budgets");
    let budgets = || memlint_in(&folder, &["explain", "budget"]);
    std::fs::write(folder.join("memlint.toml"), "").unwrap();
    assert!(stdout(&budgets()).contains("\nNone is set here"), "{}", stdout(&budgets()));
    let one = "[budget.gpu]\nmetric = \"peak-reserved\"\nlimit = \"70GiB\"\n";
    std::fs::write(folder.join("memlint.toml"), one).unwrap();
    let set = stdout(&budgets()).to_owned();
    assert!(set.contains("  budget.gpu ") && set.contains("peak-reserved per run at most 70 GiB"), "{set}");
}

#[test]
fn a_name_that_can_mean_one_rule_alone_is_taken_for_it() {
    for (word, name) in
        [("retained", "retained-graph"), ("mising-zero-grads", "missing-zero-grad"), ("OOM", "oom")]
    {
        let output = memlint(&["explain", word]);
        assert_eq!(output.status.code(), Some(0), "{word}");
        assert_eq!(stdout(&output), explained(&[name]), "{word}");
        assert_eq!(stderr(&output), format!("there is no rule `{word}`; this is `{name}`\n"));
    }
}

#[test]
fn every_notice_is_explained() {
    for matter in Matter::ALL {
        let output = memlint(&["explain", matter.name()]);
        assert_eq!(output.status.code(), Some(0), "{}", matter.name());
        let first = matter.about().split(' ').take(5).collect::<Vec<_>>().join(" ");
        assert!(stdout(&output).contains(&first), "{}", stdout(&output));
    }
}

#[test]
fn a_name_that_can_mean_several_gets_them_all() {
    let mut told = String::new();
    for word in ["zero-grad", "gradients", "retaining", "qqq"] {
        let output = memlint(&["explain", word]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{word}");
        let _ = writeln!(told, "$ memlint explain {word}\n{}", stderr(&output));
    }
    golden("explain-unknown", &told);
}
