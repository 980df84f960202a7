//! What the rules say of one input.
//!
//! In: an input, a plan. Out: for each device and rule one of three: it judged, and these are its findings; it is not
//! applicable; it is blind. Always: no rule is passed over.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::profile::Faulty;
use super::{Input, Plan, Recording, budget, finish, inherited, threads, undecided};
use crate::facts::Facts;
use crate::finding::{Absent, Finding, Group, Hidden, Silence, Skipped};
use crate::picture::Picture;
use crate::rules::{Claim, Need, Rule};
use crate::unit::DeviceIndex;
use crate::verdict::{self, Told};

/// What is left of one input when the rules have run: it costs little, the input may go.
#[derive(Debug, Serialize, Deserialize)]
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
        let Some(facts) = device.facts(&input.snapshot, &input.frames) else {
            for rule in plan.names() {
                examined.skip(device.device, rule, Silence::Blind(Hidden::Trace));
            }
            continue;
        };
        // Every rule that runs by default is asked, whatever was selected: which claim is the cause of another is no matter of
        // what somebody wants to see.
        let asked = plan.asked();
        let (mut claims, mut judging) = (Vec::new(), Vec::new());
        for (rule, outcome) in asked.iter().zip(threads::each(&asked, |rule| run(*rule, &facts))) {
            let (meta, is_selected) = (rule.meta(), plan.runs(*rule));
            let (claimed, judged) = outcome;
            claims.extend(claimed);
            match judged {
                Ok(()) => {
                    // Of one recording alone those between ranks say nothing: they are compared when all are there.
                    if is_selected && !meta.between_ranks {
                        judging.push(meta);
                    }
                }
                Err(silence) if is_selected => examined.skip(device.device, meta.name, silence),
                Err(_) => {}
            }
        }
        let settled = verdict::settle(&facts, &claims, &plan.materiality, plan.capacity);
        let shown: Vec<Told> = settled.into_iter().filter(|told| plan.shows(&told.finding)).collect();
        let decided = device.evidence.decided();
        for meta in judging {
            let is_of = |told: &&Told| told.finding.rule == meta.name;
            let hidden = decided.err().filter(|_| meta.group != Group::Input);
            match hidden.or_else(|| shown.iter().filter(is_of).find_map(|told| told.undecided)) {
                Some(hidden) => examined.skip(device.device, meta.name, Silence::Blind(hidden)),
                None => examined.judged(meta.group, meta.name),
            }
        }
        examined.faulty.push((device.device, Faulty::at_peak(&facts, &shown)));
        if let Some(room) = plan.drawn.filter(|_| device.evidence.levels().is_ok()) {
            examined.pictures.push((device.device, Picture::of(&facts, &shown, room)));
        }
        examined.findings.extend(shown.into_iter().map(|told| told.finding));
        for budget in &plan.budgets {
            match (budget::judge(budget, &facts, plan.capacity), decided) {
                // What is over it already stays so with what is missing.
                (Ok(None), Err(hidden)) => {
                    examined.skip(device.device, budget.rule.clone(), Silence::Blind(hidden));
                }
                (Ok(found), _) => {
                    examined.judged(Group::Budget, &budget.rule);
                    examined.findings.extend(found);
                }
                (Err(silence), _) => examined.skip(device.device, budget.rule.clone(), silence),
            }
        }
    }
    let Examined { mut findings, skipped, judged, pictures, faulty } = examined;
    inherited::add(input, &mut findings, plan);
    undecided::doubt(input, &mut findings);
    finish(&mut findings, plan);
    let rules = plan.names().collect();
    let mut recording = Recording { rules, judged: judged.len(), pictures, ..input.recording() };
    for (device, faulty) in faulty {
        if let Some(device) = recording.devices.iter_mut().find(|one| one.device == device) {
            faulty.tell(&mut device.profile);
        }
    }
    Examination { recording, findings, skipped }
}

/// What came of the rules so far.
#[derive(Default)]
struct Examined {
    findings: Vec<Finding>,
    skipped: Vec<Skipped>,
    /// The rules that judged the program on some device; those of the group `input` judge the recording.
    judged: BTreeSet<String>,
    pictures: Vec<(DeviceIndex, Picture)>,
    /// What of each device's peak findings are about.
    faulty: Vec<(DeviceIndex, Faulty)>,
}

impl Examined {
    fn judged(&mut self, group: Group, rule: &str) {
        if group != Group::Input {
            self.judged.insert(rule.to_owned());
        }
    }

    fn skip(&mut self, device: DeviceIndex, rule: impl Into<Cow<'static, str>>, silence: Silence) {
        self.skipped.push(Skipped { input: 0, device: Some(device), rule: rule.into(), silence });
    }
}

/// What a rule claims, and whether it could judge, or why not.
pub(super) fn run<'f>(rule: &dyn Rule, facts: &'f Facts<'f>) -> (Vec<Claim<'f>>, Result<(), Silence>) {
    let meta = rule.meta();
    let judges = Need::all_met(meta.needs, facts.evidence);
    let sees_part = || !meta.in_part.is_empty() && Need::all_met(meta.in_part, facts.evidence).is_ok();
    let claims = if judges.is_ok() || sees_part() { rule.claims(facts) } else { Vec::new() };
    (claims, judges)
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
