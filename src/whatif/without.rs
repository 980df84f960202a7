//! What a program would need without some of its faults.
//!
//! In: what was asked for, a rule or the beginning of a fingerprint, and the findings of each device with the changes that
//! mend them. Out: the findings that are meant, the changes of them all, and what else could be asked for. Always: what is asked for is there, and one thing
//! or all of a rule; a finding that no other lifetimes mend cannot be left out.

use std::collections::BTreeSet;
use std::str::FromStr;

use thiserror::Error;

use super::WhatIfError;
use crate::engine::{Input, remedies};
use crate::finding::{Finding, Fingerprint, Severity};
use crate::lives::{Change, Changes};
use crate::replay::End;
use crate::rules;
use crate::unit::{AllocationId, shown_name};
use crate::verdict::Told;

/// What is to be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Without {
    /// All findings of a rule.
    Rule(&'static str),
    /// The finding whose fingerprint begins so, in lower case, its version left out.
    Fingerprint(String),
}

/// Why a text names no finding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "write a rule, such as missing-zero-grad, or the beginning of a fingerprint, as in `memlint check --output-format json`"
)]
pub struct WithoutError;

impl FromStr for Without {
    type Err = WithoutError;

    fn from_str(text: &str) -> Result<Without, WithoutError> {
        if let Some(rule) = rules::named(text) {
            return Ok(Without::Rule(rule.meta().name));
        }
        let digits = text.strip_prefix(Fingerprint::VERSION).unwrap_or(text);
        let is_beginning = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_beginning.then(|| Without::Fingerprint(digits.to_ascii_lowercase())).ok_or(WithoutError)
    }
}

impl Without {
    fn means(&self, finding: &Finding) -> bool {
        match self {
            Without::Rule(rule) => finding.rule == *rule,
            Without::Fingerprint(beginning) => digits(finding).starts_with(beginning),
        }
    }

    /// As it was asked for.
    fn text(&self) -> String {
        match self {
            Without::Rule(rule) => (*rule).to_owned(),
            Without::Fingerprint(beginning) => beginning.clone(),
        }
    }
}

/// The digits of a finding's fingerprint.
fn digits(finding: &Finding) -> String {
    let whole = finding.fingerprint.to_string();
    whole.strip_prefix(Fingerprint::VERSION).unwrap_or(&whole).to_owned()
}

/// A finding that is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Mended {
    /// The finding.
    pub finding: Finding,
    /// How many allocations never were or end at another time.
    pub allocations: usize,
}

/// What is left out of one device.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) findings: Vec<Mended>,
    /// Warnings and errors that could be left out, too.
    pub(super) open: Vec<Finding>,
    lives: Changes,
}

impl Removed {
    /// The ends of all that is changed.
    pub(super) fn ends(&self) -> Vec<(AllocationId, End)> {
        let end = |change| match change {
            Change::Remove => None,
            Change::EndAt(event) => Some(event),
        };
        self.lives.settled().into_iter().map(|(id, change)| (id, end(change))).collect()
    }

    fn add(&mut self, told: Told) {
        let allocations = told.lives.settled().len();
        self.lives = std::mem::take(&mut self.lives).and(&told.lives);
        self.findings.push(Mended { finding: told.finding, allocations });
    }

    fn leave_open(&mut self, told: Told) {
        if told.finding.severity > Severity::Info {
            self.open.push(told.finding);
        }
    }
}

/// What is asked to be left out, device by device.
pub(super) fn left_out(input: &Input, asked: &[Without]) -> Result<Vec<Removed>, WhatIfError> {
    let mut all: Vec<Removed> = input.devices.iter().map(|_| Removed::default()).collect();
    let found: Vec<Vec<Told>> = input.devices.iter().map(|device| remedies(input, device)).collect();
    for one in asked {
        check(one, &found)?;
    }
    for (device, told) in all.iter_mut().zip(found) {
        for one in told.into_iter().filter(|one| !one.lives.is_empty()) {
            let is_meant = asked.iter().any(|asked| asked.means(&one.finding));
            if is_meant { device.add(one) } else { device.leave_open(one) }
        }
    }
    Ok(all)
}

/// Whether what is asked for is there, is one, and can be left out.
fn check(asked: &Without, found: &[Vec<Told>]) -> Result<(), WhatIfError> {
    let meant: Vec<&Told> = found.iter().flatten().filter(|one| asked.means(&one.finding)).collect();
    let asked_for = asked.text();
    if meant.is_empty() {
        let others = found.iter().flatten().filter(|one| !one.lives.is_empty());
        return Err(WhatIfError::NoSuchFinding { asked: asked_for, there: listed(others) });
    }
    let identities: BTreeSet<Fingerprint> = meant.iter().map(|one| one.finding.fingerprint).collect();
    if matches!(asked, Without::Fingerprint(_)) && identities.len() > 1 {
        return Err(WhatIfError::SeveralFindings { asked: asked_for, there: listed(meant.into_iter()) });
    }
    if meant.iter().all(|one| one.lives.is_empty()) {
        let rules: BTreeSet<String> = meant.iter().map(|one| one.finding.rule.to_string()).collect();
        let rule = rules.into_iter().next().unwrap_or_default();
        return Err(WhatIfError::NothingToLeaveOut { asked: asked_for, rule });
    }
    Ok(())
}

/// Findings with their identities, each once: `v1:35ab... missing-zero-grad train.py:17 in main`.
fn listed<'t>(told: impl Iterator<Item = &'t Told>) -> String {
    let line = |one: &Told| {
        let finding = &one.finding;
        format!("{} {} {}", finding.fingerprint, finding.rule, shown_name(&finding.whereabouts()))
    };
    let lines: BTreeSet<String> = told.map(line).collect();
    if lines.is_empty() { "none".to_owned() } else { lines.into_iter().collect::<Vec<_>>().join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_asked_for_by_rule_or_by_the_beginning_of_a_fingerprint() {
        assert_eq!("oom".parse(), Ok(Without::Rule("oom")));
        assert_eq!("v1:35AB".parse(), Ok(Without::Fingerprint("35ab".to_owned())));
        assert_eq!("35ab".parse(), Ok(Without::Fingerprint("35ab".to_owned())));
        for wrong in ["", "v1:", "v2:35ab", "missing-zero", "35 ab"] {
            assert_eq!(wrong.parse::<Without>(), Err(WithoutError), "{wrong}");
        }
    }
}
