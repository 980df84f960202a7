//! `memlint rules`: what there is to find, for people; and the rules of one group, for `memlint explain`.

use std::fmt::Write;

use super::look::{Ink, Look};
use crate::finding::{Group, Severity};
use crate::rules::{Meta, metas};
use crate::unit::shown_page;

/// Columns between a name, a level and a sentence.
const GAP: usize = 2;

/// A rule in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRule {
    /// Its name.
    pub name: String,
    /// The level of its findings, unless they or the configuration say otherwise.
    pub level: Severity,
    /// What it finds, in one phrase.
    pub summary: String,
}

/// memlint's own rules of a group.
pub fn of_group(group: Group) -> Vec<ListedRule> {
    let entry = |meta: &Meta| ListedRule {
        name: meta.name.to_owned(),
        level: meta.level,
        summary: meta.summary.to_owned(),
    };
    metas().filter(|meta| meta.group == group).map(entry).collect()
}

/// Writes every rule, by group.
pub fn render(look: &Look) -> String {
    let mut out = String::new();
    for group in Group::ALL {
        list(&mut out, group, &of_group(group), look);
        out.push('\n');
    }
    let more =
        "`memlint explain NAME` explains a rule or a group; `memlint config` shows what holds where you are.";
    let _ = writeln!(out, "{}", look.wrap(more, 0));
    shown_page(&out, look.color)
}

/// Writes what a group is about, and what to do with its name.
pub fn render_group(group: Group, rules: &[ListedRule], look: &Look) -> String {
    let mut out = String::new();
    list(&mut out, group, rules, look);
    let name = group.name();
    let more = if rules.is_empty() {
        "None is set here; docs/src/configuration.md of memlint's repository shows how.".to_owned()
    } else {
        format!(
            "`memlint explain RULE` explains one of them. `memlint check --select {name}` runs these alone, `--ignore \
             {name}` all others."
        )
    };
    let _ = writeln!(out, "\n{}", look.wrap(&more, 0));
    shown_page(&out, look.color)
}

/// What a group is about, and its rules below.
fn list(out: &mut String, group: Group, rules: &[ListedRule], look: &Look) {
    let head = format!("{}: {}", look.paint(Ink::Strong, group.name()), group.about());
    let _ = writeln!(out, "{}", look.wrap(&head, GAP));
    let names = metas().map(|meta| meta.name.len()).chain(rules.iter().map(|rule| rule.name.len()));
    let name = names.max().unwrap_or(0) + GAP;
    let level = Severity::Warning.name().len() + GAP;
    for rule in rules {
        let shown = look.paint(Ink::Severity(rule.level), rule.level.name());
        let blanks = " ".repeat(level - rule.level.name().len());
        let line = format!("{:GAP$}{:name$}{shown}{blanks}{}", "", rule.name, rule.summary);
        let _ = writeln!(out, "{}", look.wrap(&line, GAP + name + level));
    }
}
