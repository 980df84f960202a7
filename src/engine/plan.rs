//! What is asked of every device.

use std::borrow::Cow;
use std::num::NonZeroU32;

use xxhash_rust::xxh3::xxh3_128;

use crate::config::{Budget, Selection, SetBy, Settings};
use crate::finding::{Finding, Matter, Notice, Severity};
use crate::picture::Room;
use crate::rules::{RULES, Rule, by_default};
use crate::unit::Bytes;
use crate::verdict::Materiality;

/// Rules that are switched off are named, as many of them.
const MOST_NAMED: usize = 3;

/// The rules and budgets that run, and what their findings count as.
#[derive(Clone)]
pub struct Plan<'a> {
    pub(super) rules: Vec<&'a dyn Rule>,
    pub(super) budgets: Vec<&'a Budget>,
    /// The memory of the device that the program is to run on.
    pub(super) capacity: Option<Bytes>,
    /// From which worth on a claim is a finding.
    pub(super) materiality: Materiality,
    /// How much of each device is to be drawn, where it is.
    pub(super) drawn: Option<Room>,
    /// How many ranks a job has, where somebody said so.
    pub(super) ranks: Option<NonZeroU32>,
    selection: Option<&'a Selection>,
}

impl<'a> Plan<'a> {
    /// Some rules, each at its own level.
    pub fn of_rules(rules: &[&'a dyn Rule]) -> Plan<'a> {
        Plan {
            rules: rules.to_vec(),
            budgets: Vec::new(),
            capacity: None,
            materiality: Materiality::default(),
            drawn: None,
            ranks: None,
            selection: None,
        }
    }

    /// The same with other bounds of materiality.
    #[must_use]
    pub fn with_materiality(self, materiality: Materiality) -> Plan<'a> {
        Plan { materiality, ..self }
    }

    /// The same, with a picture made of each device.
    #[must_use]
    pub fn drawing(self, room: Room) -> Plan<'a> {
        Plan { drawn: Some(room), ..self }
    }

    /// The same, where a job has so many ranks.
    #[must_use]
    pub fn of_ranks(self, ranks: Option<NonZeroU32>) -> Plan<'a> {
        Plan { ranks, ..self }
    }

    /// What the settings select, at the levels that they choose.
    pub fn of(settings: &'a Settings) -> Plan<'a> {
        let selection = &settings.selection;
        let rules = RULES.iter().copied().filter(|rule| selection.runs(rule.meta().name));
        let budgets = settings.budgets.iter().filter(|budget| selection.runs(&budget.rule));
        Plan {
            rules: rules.collect(),
            budgets: budgets.collect(),
            capacity: settings.device_memory.as_ref().map(|memory| memory.value),
            materiality: settings.materiality.table().clone(),
            drawn: None,
            ranks: None,
            selection: Some(selection),
        }
    }

    /// Which rules it leaves out that run where nobody says anything, and who says so.
    pub(super) fn switched_off(&self) -> Option<Notice> {
        let off: Vec<_> = self.selection?.switched_off().collect();
        // A job's parts are concluded beside a copy of the configuration: its path is no part of what is said.
        let origin = |by: &SetBy| match by {
            SetBy::File { .. } => "the configuration".to_owned(),
            other => other.to_string(),
        };
        let mut origins: Vec<String> = off.iter().map(|one| origin(&one.runs.origin)).collect();
        origins.sort_unstable();
        origins.dedup();
        let names: Vec<&str> = off.iter().take(MOST_NAMED).map(|one| &*one.rule.name).collect();
        let more = off.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!off.is_empty()).then(|| Notice {
            kind: Matter::RulesOff,
            severity: Severity::Info,
            message: format!(
                "{} switched off by {}: {}{more}",
                if off.len() == 1 { "1 rule is".to_owned() } else { format!("{} rules are", off.len()) },
                origins.join(", "),
                names.join(", ")
            ),
            help: "`memlint config` shows all rules with who set each".to_owned(),
            location: None,
        })
    }

    /// What tells this plan from another: two inputs that were examined by plans of one mark can be concluded together. The same
    /// for the same version of memlint.
    pub fn mark(&self) -> String {
        let levels = self.rules.iter().map(|rule| {
            let meta = rule.meta();
            let leveled = [Severity::Info, Severity::Warning, Severity::Error].map(|severity| {
                let mut finding = Finding::of(meta.name, meta.group, severity);
                self.level(&mut finding);
                finding.severity.name()
            });
            (meta.name, leveled)
        });
        let levels: Vec<_> = levels.collect();
        let all = format!("{levels:?} {:?} {:?} {:?}", self.budgets, self.capacity, self.materiality);
        format!("{:032x}", xxh3_128(all.as_bytes()))
    }

    /// Whether there is nothing to ask of a recording by itself.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.budgets.is_empty()
    }

    /// The rules that are asked: those that run, and those that run by default, since one may have the cause of another.
    pub(super) fn asked(&self) -> Vec<&'a dyn Rule> {
        let others = by_default().into_iter().filter(|rule| !self.runs(*rule));
        let others: Vec<&'a dyn Rule> = others.map(|rule| rule as &'a dyn Rule).collect();
        self.rules.iter().copied().chain(others).collect()
    }

    /// Whether a rule is one of those that run.
    pub(super) fn runs(&self, rule: &dyn Rule) -> bool {
        self.rules.iter().any(|one| one.meta().name == rule.meta().name)
    }

    /// Whether a finding is one of the rules' that run.
    pub(super) fn shows(&self, finding: &Finding) -> bool {
        self.rules.iter().any(|one| one.meta().name == finding.rule)
    }

    /// A finding made beside the rules at the level that was chosen for its rule; none where that is not selected.
    pub fn admitted(&self, mut finding: Finding) -> Option<Finding> {
        let is_selected = self.selection.is_none_or(|selection| selection.runs(&finding.rule));
        self.level(&mut finding);
        is_selected.then_some(finding)
    }

    /// The names of all that runs.
    pub(super) fn names(&self) -> impl Iterator<Item = Cow<'static, str>> {
        let rules = self.rules.iter().map(|rule| Cow::Borrowed(rule.meta().name));
        rules.chain(self.budgets.iter().map(|budget| Cow::Owned(budget.rule.clone())))
    }

    /// Gives a finding the level that was chosen for its rule.
    pub(super) fn level(&self, finding: &mut Finding) {
        if let Some(selection) = self.selection {
            selection.level(finding);
        }
    }
}
