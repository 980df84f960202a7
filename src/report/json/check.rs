//! `memlint check --output-format json`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::{Gap, Loop, SCHEMA, TOOL, Tool};
use crate::engine::{RecordedDevice, Recording, Report};
use crate::finding::{Finding, Location, Severity, Value};
use crate::report::place::Place;
use crate::source::SourceMap;
use crate::unit::{Bytes, Index};

#[derive(Serialize)]
pub(super) struct Check {
    schema: &'static str,
    tool: Tool,
    inputs: Vec<CheckedInput>,
    findings: Vec<Found>,
    skipped: Vec<Skipped>,
    gaps: Vec<Gap>,
    summary: Summary,
}

#[derive(Serialize)]
struct CheckedInput {
    path: String,
    rank: Option<u32>,
    devices: Vec<CheckedDevice>,
}

#[derive(Serialize)]
struct CheckedDevice {
    device: usize,
    iterations: usize,
    iterations_found_by: &'static str,
    iterations_confidence: &'static str,
    #[serde(rename = "loop")]
    main_loop: Option<Loop>,
    peak_requested_bytes: u64,
    peak_allocated_bytes: u64,
    peak_reserved_bytes: u64,
    peak_phase: &'static str,
    roles_at_peak: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Found {
    name: String,
    group: &'static str,
    severity: &'static str,
    confidence: &'static str,
    message: String,
    help: String,
    input: Option<String>,
    device: Option<usize>,
    rank: Option<u32>,
    location: Option<Spot>,
    related: Vec<Beside>,
    evidence: serde_json::Map<String, Json>,
    impact: Impact,
    stack: Vec<Frame>,
    fingerprint: String,
}

#[derive(Serialize)]
struct Spot {
    file: String,
    line: u32,
    column: Option<u32>,
    end_line: Option<u32>,
    end_column: Option<u32>,
    function: Option<String>,
}

#[derive(Serialize)]
struct Beside {
    location: Spot,
    message: String,
}

#[derive(Serialize)]
struct Impact {
    peak_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    bytes_per_iteration: Option<u64>,
}

#[derive(Serialize)]
struct Frame {
    file: String,
    line: u32,
    function: String,
    user: bool,
}

#[derive(Serialize)]
struct Skipped {
    input: Option<String>,
    rule: String,
    reason: String,
}

#[derive(Serialize)]
struct Summary {
    errors: usize,
    warnings: usize,
    infos: usize,
    skipped: usize,
}

impl Check {
    pub(super) fn of(report: &Report, sources: &SourceMap) -> Check {
        let counted =
            |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        let name = |input: usize| report.recordings.get(input).map(|one| one.name.clone());
        let skipped = |one: &crate::finding::Skipped| Skipped {
            input: name(one.input),
            rule: one.rule.to_string(),
            reason: one.reason.clone(),
        };
        Check {
            schema: SCHEMA,
            tool: TOOL,
            inputs: report.recordings.iter().map(|one| CheckedInput::of(one, sources)).collect(),
            findings: report
                .findings
                .iter()
                .map(|finding| Found::of(finding, report.recording(finding), sources))
                .collect(),
            skipped: report.skipped.iter().map(skipped).collect(),
            gaps: report.recordings.iter().flat_map(Gap::all).collect(),
            summary: Summary {
                errors: counted(Severity::Error),
                warnings: counted(Severity::Warning),
                infos: counted(Severity::Info),
                skipped: report.skipped.len(),
            },
        }
    }
}

impl CheckedInput {
    fn of(recording: &Recording, sources: &SourceMap) -> CheckedInput {
        let devices = recording.devices.iter().map(|device| CheckedDevice::of(device, sources)).collect();
        CheckedInput { path: recording.name.clone(), rank: recording.rank, devices }
    }
}

impl CheckedDevice {
    fn of(device: &RecordedDevice, sources: &SourceMap) -> CheckedDevice {
        CheckedDevice {
            device: device.device.position(),
            iterations: device.profile.iterations.len(),
            iterations_found_by: device.found_by.name(),
            iterations_confidence: device.confidence.name(),
            main_loop: Loop::of(device, sources),
            peak_requested_bytes: device.peak_requested.get(),
            peak_allocated_bytes: device.peak_allocated.get(),
            peak_reserved_bytes: device.peak_reserved.get(),
            peak_phase: device.profile.peak_phase.name(),
            roles_at_peak: by_role(device),
        }
    }
}

/// What the peak consists of.
pub(super) fn by_role(device: &RecordedDevice) -> BTreeMap<&'static str, u64> {
    device.profile.peak_by_role.iter().map(|(role, bytes)| (role.name(), bytes.get())).collect()
}

impl Found {
    fn of(finding: &Finding, recording: Option<&Recording>, sources: &SourceMap) -> Found {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        let impact = &finding.impact;
        Found {
            name: finding.rule.to_string(),
            group: finding.group.name(),
            severity: finding.severity.name(),
            confidence: finding.confidence.name(),
            message: finding.message.clone(),
            help: finding.help.clone(),
            input: recording.map(|one| one.name.clone()),
            device: finding.device.map(Index::position),
            rank: recording.and_then(|one| one.rank),
            location: finding.location.as_ref().map(|location| Spot::of(location, sources)),
            related: finding
                .related
                .iter()
                .map(|one| Beside {
                    location: Spot::of(&one.location, sources),
                    message: one.message.clone(),
                })
                .collect(),
            evidence: finding.evidence.iter().map(|one| (one.name.to_owned(), value(&one.value))).collect(),
            impact: Impact {
                peak_bytes: bytes(impact.peak),
                resident_bytes: bytes(impact.resident),
                bytes_per_iteration: bytes(impact.per_iteration),
            },
            stack: finding
                .stack
                .iter()
                .map(|frame| Frame::of(&frame.location, frame.user, sources))
                .collect(),
            fingerprint: finding.fingerprint.to_string(),
        }
    }
}

impl Frame {
    fn of(location: &Location, user: bool, sources: &SourceMap) -> Frame {
        let file = if user { Place::of(location, sources).name().to_owned() } else { location.file.clone() };
        Frame { file, line: location.line, function: location.function.clone(), user }
    }
}

impl Spot {
    fn of(location: &Location, sources: &SourceMap) -> Spot {
        let place = Place::of(location, sources);
        let ends = place.file.as_ref().and_then(|file| {
            let span = file.expression_at(location.line)?;
            Some((file.place(span.start), file.place(span.end)))
        });
        // An expression may begin before the recorded line; the line that was recorded is the location's.
        let begins_here = ends.filter(|((line, _), _)| *line == location.line);
        Spot {
            file: place.name().to_owned(),
            line: location.line,
            column: begins_here.map(|((_, column), _)| column),
            end_line: begins_here.map(|(_, (line, _))| line),
            end_column: begins_here.map(|(_, (_, column))| column),
            function: Some(location.function.clone()).filter(|name| !name.is_empty()),
        }
    }
}

fn value(value: &Value) -> Json {
    match value {
        Value::Bytes(bytes) => json!(bytes.get()),
        Value::Count(number) => json!(number),
        Value::Ratio(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Series(series) => series.iter().map(|bytes| bytes.get()).collect(),
    }
}
