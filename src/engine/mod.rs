//! From snapshots to a report: understands each device, runs the rules, sorts what they found.
//!
//! In: snapshots with their names. Out: a [`Report`], everything that a format may show. Always: no file is opened, and
//! equal snapshots give equal reports.

mod budget;
mod closer;
mod ended;
mod examination;
mod fit;
mod forecast;
mod inherited;
mod job;
mod merged;
mod plan;
mod profile;
mod recording;
mod remedies;
mod report;
mod threads;
mod undecided;
mod witness;

pub use closer::Closer;
pub use examination::{Examination, examine};
pub use fit::Fit;
pub use inherited::inherited;
pub use job::without_snapshot;
pub use plan::Plan;
pub use profile::{IterationMemory, LineProfile, Profile};
pub use recording::{MainLoop, RecordedDevice, Recording};
pub use remedies::remedies;
pub use report::{FromBase, Outcome, Report, Unread, Verdict, Why};
pub use witness::{Called, Callee, RecordedFile, RecordedLine};

use crate::facts::{Evidence, Facts, Inputs};
use crate::finding::{Finding, Fingerprint};
use crate::frames::Frames;
use crate::input::Origin;
use crate::program::Program;
use crate::replay::{Proof, RecordedTrace, Replay, Script};
use crate::role::Roles;
use crate::rules::{self, Rule};
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
    /// What its frames say: one table for all devices.
    pub frames: Frames,
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
    /// What its recording can show.
    pub evidence: Evidence,
    /// What its peak consists of, and what each iteration needed.
    pub profile: Profile,
}

impl Input {
    /// Understands a snapshot; where it belongs, it does not know.
    pub fn of(name: String, snapshot: Snapshot) -> Input {
        let frames = Frames::of(&snapshot);
        let device = |(device, _)| Device::of(&snapshot, &frames, device);
        let devices = snapshot.active_devices().map(device).collect();
        Input { name, origin: Origin::default(), snapshot, frames, devices }
    }

    /// What a report shows of it whatever the rules say; no rule was asked yet.
    pub fn recording(&self) -> Recording {
        Recording::of(self)
    }
}

/// Puts what was found in the inputs together, in their order: compares the ranks of each job, makes one finding of what
/// several of them show, and says which ranks are missing; those whose file could not be read are not.
pub fn conclude(mut examinations: Vec<Examination>, unread: Vec<Unread>, plan: &Plan) -> Report {
    let recordings: Vec<&Recording> = examinations.iter().map(|one| &one.recording).collect();
    let mut differences = job::differences(&recordings, &plan.rules);
    let mut notices = job::unlike_the_job(&recordings, &unread, plan.ranks);
    notices.extend(ended::early(&recordings));
    notices.extend(budget::unmeasured(&plan.budgets, &examinations));
    notices.extend(plan.switched_off());
    let alone = job::alone(&recordings);
    finish(&mut differences, plan);
    for finding in differences {
        if let Some(examination) = examinations.get_mut(finding.input) {
            examination.findings.push(finding);
        }
    }
    for input in alone {
        if let Some(examination) = examinations.get_mut(input) {
            examination.has_no_ranks(plan);
        }
    }
    Report { unread, notices, ..Report::of(examinations) }
}

/// Gives every finding its identity and the level that was chosen for its rule.
fn finish(findings: &mut [Finding], plan: &Plan) {
    for finding in findings {
        finding.fingerprint = Fingerprint::of(finding);
        plan.level(finding);
    }
}

/// Runs the rules that nobody has to ask for on every input.
pub fn check(inputs: Vec<Input>) -> Report {
    check_with(inputs, &rules::by_default())
}

/// Runs some rules on every input.
pub fn check_with(inputs: Vec<Input>, rules: &[&dyn Rule]) -> Report {
    let plan = Plan::of_rules(rules);
    conclude(inputs.into_iter().map(|input| examine(&input, &plan)).collect(), Vec::new(), &plan)
}

impl Device {
    /// Understands one device. The allocator's replay needs nothing of the program's inference and runs beside it.
    fn of(snapshot: &Snapshot, frames: &Frames, device: DeviceIndex) -> Device {
        let timeline = Timeline::of(snapshot, device);
        let (replay, (program, roles, evidence, profile)) = threads::both(
            || Replay::of(snapshot, &timeline),
            || {
                let program = Program::of(snapshot, &timeline, frames);
                let roles = Roles::infer(snapshot, &timeline, &program, frames);
                let evidence = Evidence::of((snapshot, frames), &timeline, &program, &roles);
                let profile = Profile::of(snapshot, &timeline, &program, &roles);
                (program, roles, evidence, profile)
            },
        );
        let mut this = Device { device, timeline, replay, program, roles, evidence, profile };
        let lines = this.facts(snapshot, frames).map(|facts| profile::lines_at_peak(&facts));
        this.profile.lines_at_peak = lines.unwrap_or_default();
        this
    }

    /// Whether a model of the allocator does what the recorded one did; `snapshot` is the one that it was made from. Nothing
    /// where there is no history to hold it against.
    pub fn proof(&self, snapshot: &Snapshot) -> Option<Proof> {
        let Device { timeline, replay, .. } = self;
        snapshot.devices.get(self.device.position()).filter(|trace| trace.has_history())?;
        let script = Script::of(snapshot, timeline, replay);
        Some(Proof::of(RecordedTrace { snapshot, timeline, replay, script: &script }))
    }

    /// What rules may ask of this device; `snapshot` is the one that it was made from, `frames` its table.
    pub fn facts<'a>(&'a self, snapshot: &'a Snapshot, frames: &'a Frames) -> Option<Facts<'a>> {
        let Device { timeline, replay, program, roles, evidence, .. } = self;
        Facts::of(Inputs { snapshot, frames, timeline, replay, program, roles, evidence })
    }
}
