//! What is asked of every device.

use crate::config::{Selection, Settings};
use crate::finding::Finding;
use crate::rules::{RULES, Rule};

/// The rules that run, and what their findings count as.
#[derive(Clone)]
pub struct Plan<'a> {
    pub(super) rules: Vec<&'a dyn Rule>,
    selection: Option<&'a Selection>,
}

impl<'a> Plan<'a> {
    /// Some rules, each at its own level.
    pub fn of_rules(rules: &[&'a dyn Rule]) -> Plan<'a> {
        Plan { rules: rules.to_vec(), selection: None }
    }

    /// What the settings select, at the levels that they choose.
    pub fn of(settings: &'a Settings) -> Plan<'a> {
        let selection = &settings.selection;
        let runs = |rule: &&'a dyn Rule| selection.runs(rule.meta().name);
        Plan { rules: RULES.iter().copied().filter(runs).collect(), selection: Some(selection) }
    }

    /// Gives a finding the level that was chosen for its rule.
    pub(super) fn level(&self, finding: &mut Finding) {
        if let Some(selection) = self.selection {
            selection.level(finding);
        }
    }
}
