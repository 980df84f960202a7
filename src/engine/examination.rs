//! What the rules say of one input.
//!
//! In: an input, a plan. Out: for each device and rule one of three: it judged, and these are its findings; it is not
//! applicable; it is blind. Always: no rule is passed over.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Input, Plan, Recording, budget, finish, threads};
use crate::facts::Facts;
use crate::finding::{Absent, Finding, Group, Hidden, Silence, Skipped};
use crate::rules::{Need, Rule};
use crate::unit::DeviceIndex;

/// What is left of one input when the rules have run: it costs little, the input may go.
#[derive(Debug)]
pub struct Examination {
    /// What a report shows of the input.
    pub recording: Recording,
    /// What the rules found.
    pub findings: Vec<Finding>,
    /// Rules that did not judge a device.
    pub skipped: Vec<Skipped>,
}

impl Examination {
    /// No other rank's recording is there to be compared with this one.
    pub(super) fn has_no_ranks(&mut self, plan: &Plan) {
        for rule in plan.rules.iter().map(|rule| rule.meta()).filter(|rule| rule.between_ranks) {
            self.skipped.retain(|one| one.rule != rule.name);
            let silence = Silence::NotApplicable(Absent::Ranks);
            self.skipped.push(Skipped { input: 0, device: None, rule: rule.name.into(), silence });
        }
    }
}

/// Runs the rules of a plan on every device of an input. What a rule needs and a device lacks is reported, not passed over.
pub fn examine(input: &Input, plan: &Plan) -> Examination {
    let mut examined = Examined::default();
    for device in &input.devices {
        let Some(facts) = device.facts(&input.snapshot, &input.code) else {
            for rule in plan.names() {
                examined.skip(device.device, rule, Silence::Blind(Hidden::Trace));
            }
            continue;
        };
        let outcomes = threads::each(&plan.rules, |rule| run(*rule, &facts));
        for (rule, outcome) in plan.rules.iter().map(|rule| rule.meta()).zip(outcomes) {
            match outcome {
                // Of one recording alone it says nothing: the ranks are compared when all are there.
                Ok(_) if rule.between_ranks => {}
                Ok(found) => examined.judged(rule.group, rule.name, found),
                Err(silence) => examined.skip(device.device, rule.name, silence),
            }
        }
        for budget in &plan.budgets {
            match budget::judge(budget, &facts, plan.capacity) {
                Ok(found) => examined.judged(Group::Budget, &budget.rule, found),
                Err(silence) => examined.skip(device.device, budget.rule.clone(), silence),
            }
        }
    }
    let Examined { mut findings, skipped, judged } = examined;
    finish(&mut findings, plan);
    let rules = plan.names().collect();
    Examination {
        recording: Recording { rules, judged: judged.len(), ..input.recording() },
        findings,
        skipped,
    }
}

/// What came of the rules so far.
#[derive(Default)]
struct Examined {
    findings: Vec<Finding>,
    skipped: Vec<Skipped>,
    /// The rules that judged the program on some device; those of the group `input` judge the recording.
    judged: BTreeSet<String>,
}

impl Examined {
    fn judged(&mut self, group: Group, rule: &str, found: impl IntoIterator<Item = Finding>) {
        if group != Group::Input {
            self.judged.insert(rule.to_owned());
        }
        self.findings.extend(found);
    }

    fn skip(&mut self, device: DeviceIndex, rule: impl Into<Cow<'static, str>>, silence: Silence) {
        self.skipped.push(Skipped { input: 0, device: Some(device), rule: rule.into(), silence });
    }
}

/// What a rule finds, or why it cannot tell.
fn run(rule: &dyn Rule, facts: &Facts) -> Result<Vec<Finding>, Silence> {
    Need::all_met(rule.meta().needs, facts.evidence)?;
    Ok(rule.check(facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::check;
    use crate::rules;
    use crate::snapshot::{DeviceTrace, Segment, Snapshot};
    use crate::unit::Bytes;

    /// A device that holds a segment, and of which nothing was recorded.
    fn bare() -> Input {
        let mut snapshot = Snapshot::default();
        snapshot.devices.push(DeviceTrace::default());
        snapshot.segments.push(Segment { total_size: Bytes::MIB, ..Segment::default() });
        Input::of("bare".to_owned(), snapshot)
    }

    #[test]
    fn a_device_without_a_trace_is_not_passed_over() {
        let mut input = bare();
        input.snapshot.devices.clear();
        let examination = examine(&input, &Plan::of_rules(rules::RULES));
        assert_eq!(examination.skipped.len(), rules::RULES.len());
        assert!(examination.skipped.iter().all(|one| one.blind() == Some(Hidden::Trace)));
    }

    #[test]
    fn every_rule_is_blind_where_nothing_was_recorded() {
        let report = check(vec![bare()]);
        assert!(report.findings.is_empty());
        assert_eq!(report.skipped.len(), rules::by_default().len());
        let blind = report.skipped.iter().filter(|one| one.blind() == Some(Hidden::Trace)).count();
        assert_eq!(blind, report.skipped.len() - 1, "all but the comparison of ranks");
        assert_eq!(report.recordings[0].judged, 0);
    }
}
