//! A comparison for programs, `memlint/1`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SCHEMA, TOOL, Tool};
use crate::comparison::{
    Comparison, DeviceComparison, Direction, FindingChange, PeakAt, SiteChange, SizeChange,
};
use crate::finding::{Impact, Location};
use crate::unit::{Bytes, Index};

/// How two recordings differ: `memlint diff --output-format json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Diff {
    /// The version of this format: `memlint/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    /// The snapshot that is compared with.
    base: String,
    /// The snapshot that is compared.
    head: String,
    devices: Vec<OneDevice>,
    /// Findings that came, went or changed, what came first.
    findings: Vec<Finding>,
    /// How many findings are the same.
    same_findings: usize,
    /// What could not be compared, in words.
    doubts: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeviceDiff")]
struct OneDevice {
    /// Counted from 0.
    device: usize,
    base_iterations: usize,
    head_iterations: usize,
    /// How many iterations are compared, by their number; peaks are looked for up to the last of these.
    compared_iterations: usize,
    /// How many of these are left out of what is steady.
    warm_up_iterations: usize,
    /// `setup`, `iteration-N` counted from 1, or `end`.
    base_peak_in: String,
    head_peak_in: String,
    peak_requested_bytes: Figures,
    peak_reserved_bytes: Figures,
    /// Requested bytes between iterations, the middle of the steady ones.
    resident_bytes: Option<Figures>,
    /// By how much these grow with every iteration; null where there are too few to tell.
    bytes_per_iteration: Option<Figures>,
    allocations_per_iteration: Option<Counts>,
    /// What is in use at the peak, what differs most first.
    roles_at_peak: Vec<RoleAtPeak>,
    call_sites: Vec<Site>,
}

/// Bytes; a difference up to `noise` is no change.
#[derive(Serialize, JsonSchema)]
struct Figures {
    base: u64,
    head: u64,
    noise: u64,
    #[schemars(extend("enum" = ["up", "same", "down"]))]
    change: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Counts {
    base: usize,
    head: usize,
}

#[derive(Serialize, JsonSchema)]
struct RoleAtPeak {
    role: &'static str,
    bytes: Figures,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CallSiteDiff")]
struct Site {
    /// Its line in the base; null where there is none.
    base: Option<Spot>,
    head: Option<Spot>,
    phase: &'static str,
    peak_bytes: Figures,
    bytes_per_iteration: Figures,
    allocations_per_iteration: Counts,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecordedLine")]
struct Spot {
    file: String,
    line: u32,
    function: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FindingDiff")]
struct Finding {
    /// What became of it.
    #[schemars(extend("enum" = ["new", "worse", "better", "gone"]))]
    turn: &'static str,
    name: String,
    group: &'static str,
    severity: &'static str,
    /// Null where the base does not have it.
    base_severity: Option<&'static str>,
    message: String,
    location: Option<Spot>,
    impact: Size,
    base_impact: Option<Size>,
    /// How it differs, in words.
    difference: Option<String>,
    fingerprint: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ImpactDiff")]
struct Size {
    peak_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    bytes_per_iteration: Option<u64>,
}

impl Diff {
    pub(super) fn of(comparison: &Comparison) -> Diff {
        Diff {
            schema: SCHEMA,
            tool: TOOL,
            base: comparison.base.clone(),
            head: comparison.head.clone(),
            devices: comparison.devices.iter().map(OneDevice::of).collect(),
            findings: comparison.findings.iter().map(Finding::of).collect(),
            same_findings: comparison.same_findings,
            doubts: comparison.doubts.iter().map(|doubt| doubt.text.clone()).collect(),
        }
    }
}

impl OneDevice {
    fn of(device: &DeviceComparison) -> OneDevice {
        let roles = device.roles.iter();
        // Sites that hold nothing at either peak and do not grow are no part of the comparison.
        let told = |site: &&SiteChange| {
            site.bytes.base.max(site.bytes.head) > Bytes::ZERO
                || site.growth.base.max(site.growth.head) > Bytes::ZERO
        };
        OneDevice {
            device: device.device.position(),
            base_iterations: device.iterations.0,
            head_iterations: device.iterations.1,
            compared_iterations: device.aligned,
            warm_up_iterations: device.warm_up,
            base_peak_in: place(device.peak_at.0),
            head_peak_in: place(device.peak_at.1),
            peak_requested_bytes: Figures::of(&device.peak),
            peak_reserved_bytes: Figures::of(&device.reserved),
            resident_bytes: device.resident.as_ref().map(Figures::of),
            bytes_per_iteration: device.growth.as_ref().map(Figures::of),
            allocations_per_iteration: device.allocations.map(|(base, head)| Counts { base, head }),
            roles_at_peak: roles
                .map(|one| RoleAtPeak { role: one.role.name(), bytes: Figures::of(&one.bytes) })
                .collect(),
            call_sites: device.sites.iter().filter(told).map(Site::of).collect(),
        }
    }
}

fn place(at: PeakAt) -> String {
    match at {
        PeakAt::Setup => "setup".to_owned(),
        PeakAt::Iteration(number) => format!("iteration-{number}"),
        PeakAt::After => "end".to_owned(),
    }
}

impl Figures {
    fn of(change: &SizeChange) -> Figures {
        Figures {
            base: change.base.get(),
            head: change.head.get(),
            noise: change.noise.get(),
            change: match change.direction() {
                Direction::Up => "up",
                Direction::Same => "same",
                Direction::Down => "down",
            },
        }
    }
}

impl Site {
    fn of(site: &SiteChange) -> Site {
        let (base, head) = site.allocations;
        Site {
            base: site.lines.0.as_ref().map(Spot::of),
            head: site.lines.1.as_ref().map(Spot::of),
            phase: site.phase.name(),
            peak_bytes: Figures::of(&site.bytes),
            bytes_per_iteration: Figures::of(&site.growth),
            allocations_per_iteration: Counts { base, head },
        }
    }
}

impl Spot {
    fn of(location: &Location) -> Spot {
        Spot { file: location.file.clone(), line: location.line, function: location.function.clone() }
    }
}

impl Finding {
    fn of(change: &FindingChange) -> Finding {
        let finding = &change.finding;
        Finding {
            turn: change.turn.name(),
            name: finding.rule.to_string(),
            group: finding.group.name(),
            severity: finding.severity.name(),
            base_severity: change.before.map(|mark| mark.severity.name()),
            message: finding.message.clone(),
            location: finding.location.as_ref().map(Spot::of),
            impact: Size::of(&finding.impact),
            base_impact: change.before.map(|mark| Size::of(&mark.impact)),
            difference: change.difference.map(|one| one.evidence("", "in the base").text),
            fingerprint: finding.fingerprint.to_string(),
        }
    }
}

impl Size {
    fn of(impact: &Impact) -> Size {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        Size {
            peak_bytes: bytes(impact.peak),
            reserved_bytes: bytes(impact.reserved),
            resident_bytes: bytes(impact.resident),
            bytes_per_iteration: bytes(impact.per_iteration),
        }
    }
}
