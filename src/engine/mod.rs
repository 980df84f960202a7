//! From snapshots to a report: understands each device, runs the rules, sorts what they found.
//!
//! In: snapshots with their names. Out: a [`Report`], everything that a format may show. Always: no file is opened, and
//! equal snapshots give equal reports.

mod profile;

pub use profile::{IterationMemory, Profile};

use crate::finding::{Finding, Skipped};
use crate::program::Program;
use crate::role::Roles;
use crate::snapshot::Snapshot;
use crate::timeline::Timeline;
use crate::unit::DeviceIndex;

/// One snapshot, read and understood.
#[derive(Debug)]
pub struct Input {
    /// What messages call it: the path as given, or `<stdin>`.
    pub name: String,
    /// The snapshot.
    pub snapshot: Snapshot,
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
    /// What the program did on it.
    pub program: Program,
    /// What its allocations hold.
    pub roles: Roles,
    /// What its peak consists of, and what each iteration needed.
    pub profile: Profile,
}

/// Everything that a format may show.
#[derive(Debug, Default)]
pub struct Report {
    /// The snapshots, in the order of the command line.
    pub inputs: Vec<Input>,
    /// What the rules found: the worst first, and what saves most first among equals.
    pub findings: Vec<Finding>,
    /// Rules that could not run.
    pub skipped: Vec<Skipped>,
}

impl Input {
    /// Understands a snapshot.
    pub fn of(name: String, snapshot: Snapshot) -> Input {
        let devices = snapshot
            .active_devices()
            .map(|(device, _)| {
                let timeline = Timeline::of(&snapshot, device);
                let program = Program::default();
                let roles = Roles::default();
                let profile = Profile::of(&timeline, &program, &roles);
                Device { device, timeline, program, roles, profile }
            })
            .collect();
        Input { name, snapshot, devices }
    }
}

/// Runs the rules.
pub fn check(inputs: Vec<Input>) -> Report {
    Report { inputs, findings: Vec::new(), skipped: Vec::new() }
}
