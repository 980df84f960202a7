//! A comparison for programs, `memlint/1`.

use std::io;

use serde::Serialize;

use crate::comparison::{
    Comparison, DeviceComparison, Direction, FindingChange, PeakAt, SiteChange, SizeChange,
};
use crate::finding::{Impact, Location};
use crate::report::json::{SCHEMA, TOOL, Tool, write as write_document};
use crate::unit::{Bytes, Index};

pub(super) fn write(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    write_document(&Diff::of(comparison), out)
}

#[derive(Serialize)]
struct Diff {
    schema: &'static str,
    tool: Tool,
    base: String,
    head: String,
    devices: Vec<OneDevice>,
    findings: Vec<Finding>,
    same_findings: usize,
    doubts: Vec<String>,
}

#[derive(Serialize)]
struct OneDevice {
    device: usize,
    base_iterations: usize,
    head_iterations: usize,
    compared_iterations: usize,
    warm_up_iterations: usize,
    base_peak_in: String,
    head_peak_in: String,
    peak_requested_bytes: Figures,
    peak_reserved_bytes: Figures,
    resident_bytes: Option<Figures>,
    bytes_per_iteration: Option<Figures>,
    allocations_per_iteration: Option<Counts>,
    roles_at_peak: Vec<RoleAtPeak>,
    call_sites: Vec<Site>,
}

/// Bytes; a difference up to `noise` is no change.
#[derive(Serialize)]
struct Figures {
    base: u64,
    head: u64,
    noise: u64,
    change: &'static str,
}

#[derive(Serialize)]
struct Counts {
    base: usize,
    head: usize,
}

#[derive(Serialize)]
struct RoleAtPeak {
    role: &'static str,
    bytes: Figures,
}

#[derive(Serialize)]
struct Site {
    base: Option<Spot>,
    head: Option<Spot>,
    phase: &'static str,
    peak_bytes: Figures,
    bytes_per_iteration: Figures,
    allocations_per_iteration: Counts,
}

#[derive(Serialize)]
struct Spot {
    file: String,
    line: u32,
    function: String,
}

#[derive(Serialize)]
struct Finding {
    turn: &'static str,
    name: String,
    group: &'static str,
    severity: &'static str,
    base_severity: Option<&'static str>,
    message: String,
    location: Option<Spot>,
    impact: Size,
    base_impact: Option<Size>,
    difference: Option<String>,
    fingerprint: String,
}

#[derive(Serialize)]
struct Size {
    peak_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    bytes_per_iteration: Option<u64>,
}

impl Diff {
    fn of(comparison: &Comparison) -> Diff {
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
