//! What is said of the recordings of the corpus, in a form that can be compared.

use memlint::engine::{Device, Input, check};
use memlint::finding::{Finding, Severity};
use memlint::snapshot::Snapshot;
use memlint::unit::Index;

/// A finding by rule, severity, function and line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) rule: String,
    pub(crate) severity: Severity,
    pub(crate) function: Option<String>,
    pub(crate) line: Option<u32>,
}

impl Found {
    pub(crate) fn of(finding: &Finding) -> Found {
        let place = finding.location.as_ref();
        Found {
            rule: finding.rule.to_string(),
            severity: finding.severity,
            function: place.map(|place| place.function.clone()),
            line: place.map(|place| place.line),
        }
    }

    /// Whether it is about something that piles up.
    pub(crate) fn is_growth(&self) -> bool {
        ["growing-residency", "retained-graph"].contains(&self.rule.as_str())
    }
}

/// What a check says of a snapshot, in an order that does not depend on it.
pub(crate) fn found(snapshot: Snapshot) -> Vec<Found> {
    let report = check(vec![Input::of("it".to_owned(), snapshot)]);
    let mut all: Vec<Found> = report.findings.iter().map(Found::of).collect();
    all.sort();
    all
}

/// The device that went round most iterations, and its ordinal.
pub(crate) fn busiest(input: &Input) -> Option<(&Device, usize)> {
    let device = input.devices.iter().max_by_key(|device| device.program.iterations.len())?;
    Some((device, device.device.position()))
}
