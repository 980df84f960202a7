//! From snapshots to a report: understands each device, runs the rules, sorts what they found.
//!
//! In: snapshots with their names. Out: a [`Report`], everything that a format may show. Always: no file is opened, and
//! equal snapshots give equal reports.

mod budget;
mod forecast;
mod inherited;
mod job;
mod merged;
mod plan;
mod profile;
mod recording;
mod report;
mod threads;
mod witness;

pub use inherited::inherited;
pub use plan::Plan;
pub use profile::{IterationMemory, Line, Profile};
pub use recording::{MainLoop, RecordedDevice, Recording};
pub use report::{Report, Verdict};
pub use witness::{Called, Callee, RecordedFile, RecordedLine};

use std::borrow::Cow;

use crate::facts::{Code, Facts, Inputs};
use crate::finding::{Finding, Fingerprint, Skipped};
use crate::input::Origin;
use crate::program::Program;
use crate::replay::Replay;
use crate::role::Roles;
use crate::rules::{self, Need, Rule};
use crate::snapshot::Snapshot;
use crate::timeline::Timeline;
use crate::unit::{DeviceIndex, Index};

/// One snapshot, read and understood.
#[derive(Debug)]
pub struct Input {
    /// What messages call it: the path as given, or `<stdin>`.
    pub name: String,
    /// Where it belongs: of which job, by which rank, when.
    pub origin: Origin,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Whose code its frames are: one table for all devices.
    pub code: Code,
    /// Every device that did something, by ordinal.
    pub devices: Vec<Device>,
}

/// What is known of one device.
#[derive(Debug)]
pub struct Device {
    /// Its ordinal.
    pub device: DeviceIndex,
    /// Its allocations and curves.
    pub timeline: Timeline,
    /// Its allocator.
    pub replay: Replay,
    /// What the program did on it.
    pub program: Program,
    /// What its allocations hold.
    pub roles: Roles,
    /// What its peak consists of, and what each iteration needed.
    pub profile: Profile,
}

impl Input {
    /// Understands a snapshot; where it belongs, it does not know.
    pub fn of(name: String, snapshot: Snapshot) -> Input {
        let code = Code::of(&snapshot);
        let device = |(device, _)| Device::of(&snapshot, &code, device);
        let devices = snapshot.active_devices().map(device).collect();
        Input { name, origin: Origin::default(), snapshot, code, devices }
    }

    /// What a report shows of it whatever the rules say; no rule was asked yet.
    pub fn recording(&self) -> Recording {
        Recording::of(self)
    }
}

/// What is left of one input when the rules have run: it costs little, the input may go.
#[derive(Debug)]
pub struct Examination {
    /// What a report shows of the input.
    pub recording: Recording,
    /// What the rules found.
    pub findings: Vec<Finding>,
    /// Rules that could not run.
    pub skipped: Vec<Skipped>,
}

/// Runs the rules of a plan on every device of an input. What a rule needs and a device lacks is reported, not passed over.
pub fn examine(input: &Input, plan: &Plan) -> Examination {
    let (mut findings, mut skipped) = (Vec::new(), Vec::new());
    for device in &input.devices {
        let Some(facts) = device.facts(&input.snapshot, &input.code) else {
            skipped.extend(plan.names().map(|rule| unseen(rule, device.device)));
            continue;
        };
        for (rule, outcome) in plan.rules.iter().zip(threads::each(&plan.rules, |rule| run(*rule, &facts))) {
            match outcome {
                Ok(found) => findings.extend(found),
                Err((need, reason)) => skipped.push(Skipped {
                    input: 0,
                    rule: rule.meta().name.into(),
                    reason: reason.to_owned(),
                    blind: matches!(need, Need::History | Need::Stacks),
                }),
            }
        }
        for budget in &plan.budgets {
            match budget::judge(budget, &facts, plan.capacity) {
                Ok(found) => findings.extend(found),
                Err(unjudged) => skipped.push(unjudged.skipped(budget)),
            }
        }
    }
    inherited::add(input, &mut findings, plan);
    finish(&mut findings, plan);
    let rules = plan.names().collect();
    Examination { recording: Recording { rules, ..input.recording() }, findings, skipped }
}

/// Puts what was found in the inputs together, in their order: compares the ranks of each job, makes one finding of what
/// several of them show, and says which ranks are missing.
pub fn conclude(mut examinations: Vec<Examination>, plan: &Plan) -> Report {
    let recordings: Vec<&Recording> = examinations.iter().map(|one| &one.recording).collect();
    let mut differences = job::differences(&recordings, &plan.rules);
    let notices = job::missing_ranks(&recordings);
    finish(&mut differences, plan);
    for finding in differences {
        if let Some(examination) = examinations.get_mut(finding.input) {
            examination.findings.push(finding);
        }
    }
    Report { notices, ..Report::of(examinations) }
}

/// Gives every finding its identity and the level that was chosen for its rule.
fn finish(findings: &mut [Finding], plan: &Plan) {
    for finding in findings {
        finding.fingerprint = Fingerprint::of(finding);
        plan.level(finding);
    }
}

/// A rule that could not look at a device, because the snapshot lists no trace of it.
fn unseen(rule: Cow<'static, str>, device: DeviceIndex) -> Skipped {
    Skipped {
        input: 0,
        rule,
        reason: format!("the snapshot lists no trace of device {}", device.position()),
        blind: true,
    }
}

/// Runs the rules that nobody has to ask for on every input.
pub fn check(inputs: Vec<Input>) -> Report {
    check_with(inputs, &rules::by_default())
}

/// Runs some rules on every input.
pub fn check_with(inputs: Vec<Input>, rules: &[&dyn Rule]) -> Report {
    let plan = Plan::of_rules(rules);
    conclude(inputs.into_iter().map(|input| examine(&input, &plan)).collect(), &plan)
}

/// What a rule finds, or why it cannot tell.
fn run(rule: &dyn Rule, facts: &Facts) -> Result<Vec<Finding>, (Need, &'static str)> {
    match rule.meta().needs.iter().find_map(|need| Some((*need, need.unmet(facts)?))) {
        Some(unmet) => Err(unmet),
        None => Ok(rule.check(facts)),
    }
}

impl Device {
    /// Understands one device. The allocator's replay needs nothing of the program's inference and runs beside it.
    fn of(snapshot: &Snapshot, code: &Code, device: DeviceIndex) -> Device {
        let timeline = Timeline::of(snapshot, device);
        let (replay, (program, roles, profile)) = threads::both(
            || Replay::of(snapshot, &timeline),
            || {
                let program = Program::with(snapshot, &timeline, &code.vocabulary);
                let roles = Roles::infer(snapshot, &timeline, &program);
                let profile = Profile::of((snapshot, code), &timeline, &program, &roles);
                (program, roles, profile)
            },
        );
        Device { device, timeline, replay, program, roles, profile }
    }

    /// What rules may ask of this device; `snapshot` is the one that it was made from, `code` its table.
    pub fn facts<'a>(&'a self, snapshot: &'a Snapshot, code: &'a Code) -> Option<Facts<'a>> {
        let Device { timeline, replay, program, roles, .. } = self;
        Facts::of(Inputs { snapshot, code, timeline, replay, program, roles })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{DeviceTrace, Segment};
    use crate::unit::Bytes;

    #[test]
    fn a_device_without_a_trace_is_not_passed_over() {
        let mut snapshot = Snapshot::default();
        snapshot.devices.push(DeviceTrace::default());
        snapshot.segments.push(Segment { total_size: Bytes::MIB, ..Segment::default() });
        let mut input = Input::of("bare".to_owned(), snapshot);
        input.snapshot.devices.clear();
        let examination = examine(&input, &Plan::of_rules(rules::RULES));
        assert_eq!(examination.skipped.len(), rules::RULES.len());
        assert!(examination.skipped.iter().all(|one| one.blind && one.reason.ends_with("of device 0")));
    }

    #[test]
    fn a_snapshot_without_events_skips_with_a_reason() {
        let mut snapshot = Snapshot::default();
        snapshot.devices.push(DeviceTrace::default());
        snapshot.segments.push(Segment { total_size: Bytes::MIB, ..Segment::default() });
        let report = check(vec![Input::of("bare".to_owned(), snapshot)]);
        assert!(report.findings.is_empty());
        let asking = rules::by_default().into_iter().filter(|rule| !rule.meta().needs.is_empty()).count();
        assert_eq!(report.skipped.len(), asking);
        assert!(report.skipped.iter().all(|skipped| skipped.reason.contains("no events")));
    }
}
