//! What may be named where rules are selected: rules, budgets, groups, and `all`.

use super::budget::Budget;
use super::error::Fault;
use crate::finding::{Group, Severity};
use crate::rules::{Meta, metas};
use crate::unit::suggestion;

/// The word for every rule there is.
const ALL: &str = "all";

/// Something that finds: a rule of memlint's or a budget of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detector {
    /// Its name.
    pub name: String,
    /// Its group's name.
    pub group: &'static str,
    /// The level that it has of its own.
    pub level: Severity,
    /// Whether it runs where nobody says so.
    pub by_default: bool,
}

/// Everything that may be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    known: Vec<Detector>,
    groups: Vec<&'static str>,
}

/// One or several rules under one name. Ordered by how specific it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// Every rule.
    All,
    /// The rules of a group.
    Group(&'static str),
    /// One rule.
    Rule(String),
}

impl Catalogue {
    /// The rules of memlint and some budgets.
    pub fn with(budgets: &[Budget]) -> Catalogue {
        let rule = |meta: &'static Meta| Detector {
            name: meta.name.to_owned(),
            group: meta.group.name(),
            level: meta.level,
            by_default: meta.group.is_default(),
        };
        let own = metas().map(rule);
        let set = budgets.iter().map(|one| Detector {
            name: one.rule.clone(),
            group: Group::Budget.name(),
            level: one.severity().unwrap_or(Severity::Error),
            by_default: true,
        });
        let known: Vec<Detector> = own.chain(set).collect();
        let mut groups = Vec::new();
        for group in known.iter().map(|one| one.group).chain([Group::Budget.name()]) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        Catalogue { known, groups }
    }

    /// Rules in the order of the catalogue, then budgets by name.
    pub fn known(&self) -> &[Detector] {
        &self.known
    }

    /// What a name stands for.
    pub fn choice(&self, name: &str) -> Result<Choice, Fault> {
        if name == ALL {
            return Ok(Choice::All);
        }
        if let Some(group) = self.groups.iter().find(|group| **group == name) {
            return Ok(Choice::Group(group));
        }
        if self.known.iter().any(|one| one.name == name) {
            return Ok(Choice::Rule(name.to_owned()));
        }
        Err(Fault::UnknownName { name: name.to_owned(), hint: suggestion(name, "names", self.names()) })
    }

    /// Every name: rules, groups, and `all`.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.known.iter().map(|one| one.name.as_str()).chain(self.groups.iter().copied()).chain([ALL])
    }
}

impl Choice {
    /// From the least specific to the most.
    pub(super) const LEVELS: u8 = 3;

    /// 0 is every rule, 1 a group, 2 one rule.
    pub(super) const fn specificity(&self) -> u8 {
        match self {
            Choice::All => 0,
            Choice::Group(_) => 1,
            Choice::Rule(_) => Choice::LEVELS - 1,
        }
    }

    /// Whether it stands for a rule, among others or alone.
    pub fn covers(&self, rule: &Detector) -> bool {
        match self {
            Choice::All => true,
            Choice::Group(group) => *group == rule.group,
            Choice::Rule(name) => *name == rule.name,
        }
    }

    /// How it is written.
    pub fn name(&self) -> &str {
        match self {
            Choice::All => ALL,
            Choice::Group(group) => group,
            Choice::Rule(name) => name,
        }
    }
}

/// What is wrong with the name of a rule that is none.
pub(super) fn unknown_rule(name: &str) -> Fault {
    if metas().any(|meta| meta.group.name() == name) {
        return Fault::GroupForRule(name.to_owned());
    }
    let hint = suggestion(name, "rules", metas().map(|meta| meta.name));
    Fault::UnknownRule { name: name.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rule_is_called_like_a_group() {
        let catalogue = Catalogue::with(&[]);
        for known in catalogue.known() {
            assert!(!catalogue.groups.contains(&known.name.as_str()) && known.name != ALL, "{}", known.name);
            assert!(!known.name.starts_with(Budget::PREFIX), "{}", known.name);
        }
    }

    #[test]
    fn names_are_rules_groups_or_all() {
        let catalogue = Catalogue::with(&[]);
        assert_eq!(catalogue.choice("all"), Ok(Choice::All));
        assert_eq!(catalogue.choice("leak"), Ok(Choice::Group("leak")));
        assert_eq!(catalogue.choice("budget"), Ok(Choice::Group("budget")));
        assert_eq!(catalogue.choice("oom"), Ok(Choice::Rule("oom".to_owned())));
        let told = |name| catalogue.choice(name).unwrap_err();
        assert!(matches!(told("laek"), Fault::UnknownName { hint, .. } if hint == "did you mean `leak`?"));
        assert!(matches!(told("Leak"), Fault::UnknownName { .. }));
    }
}
