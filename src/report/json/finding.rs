//! A finding and its places, in `memlint/1`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::engine::Report;
use crate::finding::{self, Finding, Location, Quantity, Standing};
use crate::fix::{Edit, Fix};
use crate::report::fix;
use crate::report::place::SourceLine;
use crate::source::SourceMap;
use crate::unit::{Bytes, Index};

/// One thing that is wrong, at one place.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(super) struct Found {
    /// The rule's name.
    name: String,
    /// The rule's family.
    group: &'static str,
    #[schemars(extend("enum" = ["info", "warning", "error"]))]
    severity: &'static str,
    #[schemars(extend("enum" = ["low", "medium", "high"]))]
    confidence: &'static str,
    /// One phrase that stands alone.
    message: String,
    /// One remedy; lines that begin with a blank are code.
    help: String,
    /// The snapshot in which it is worst, as `inputs` names it.
    input: Option<String>,
    /// The ordinal of the device on which it is worst.
    device: Option<usize>,
    /// The rank on which it is worst.
    rank: Option<u32>,
    /// Where else the same was found.
    also: Vec<Sighting>,
    /// The line to edit or to look at first.
    location: Option<Spot>,
    /// Other places that explain it.
    related: Vec<Beside>,
    /// Named numbers; those in bytes are integers.
    evidence: serde_json::Map<String, Json>,
    /// What mending it would save.
    impact: Impact,
    /// The recorded stack of the guilty allocation, innermost first.
    stack: Vec<Frame>,
    /// The same in another run, on another machine, after unrelated edits.
    fingerprint: String,
    /// Whether it counts for the verdict: only open ones do.
    #[schemars(extend("enum" = ["open", "ignored", "baselined", "inherited"]))]
    standing: &'static str,
    /// Who ignored it and why, where somebody did.
    ignored: Option<Ignored>,
    /// What mends it, where that is certain: changes to be made together, none of which meets another.
    edits: Vec<Change>,
    /// Why nothing mends it for certain; null where something does, and for notes, which nothing is asked of.
    no_edit: Option<String>,
}

/// A change of a file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Edit")]
struct Change {
    /// The local file.
    file: String,
    /// The first byte that goes, counted from 0.
    start_byte: usize,
    /// The byte after the last; as `start_byte` where nothing goes.
    end_byte: usize,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    /// What comes in its place.
    replacement: String,
    /// Whether the program computes the same as before.
    #[schemars(extend("enum" = ["safe", "unsafe"]))]
    applicability: &'static str,
    /// What all changes of the finding do, and why that is safe or not.
    why: String,
}

/// A place where a finding was made, too.
#[derive(Serialize, JsonSchema)]
struct Sighting {
    input: Option<String>,
    rank: Option<u32>,
    device: Option<usize>,
    impact: Impact,
}

/// A suppression.
#[derive(Serialize, JsonSchema)]
struct Ignored {
    /// The words of whoever wrote it.
    reason: String,
    /// The line that says so.
    by: String,
}

/// A line of a program. Lines and columns count from 1; columns count characters, and the end stands behind the expression.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Location")]
pub(super) struct Spot {
    /// The local file, or the recorded one where that is not at hand.
    file: String,
    line: u32,
    /// Null where the source is not at hand.
    column: Option<u32>,
    end_line: Option<u32>,
    end_column: Option<u32>,
    function: Option<String>,
}

/// A place that helps to understand a finding.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Related")]
struct Beside {
    location: Spot,
    message: String,
}

/// What mending a finding would save; null where that is not known.
#[derive(Serialize, JsonSchema)]
struct Impact {
    /// Off the peak of requested bytes.
    peak_bytes: Option<u64>,
    /// Off the peak of reserved bytes, where the program asks for as much as before.
    reserved_bytes: Option<u64>,
    /// Off what stays at the end of an iteration.
    resident_bytes: Option<u64>,
    /// By which every iteration grows.
    bytes_per_iteration: Option<u64>,
    /// The most that stands at any one moment because of it, whatever else stands beside: comparisons and baselines go by it.
    bytes_at_once: Option<u64>,
}

/// A frame of a recorded stack.
#[derive(Serialize, JsonSchema)]
struct Frame {
    file: String,
    line: u32,
    function: String,
    /// Whether it is the user's own code.
    user: bool,
}

impl Found {
    pub(super) fn of(finding: &Finding, report: &Report, sources: &SourceMap) -> Found {
        let recording = report.recording(finding);
        let spot = |location: &Location| Spot::of(&SourceLine::of(location, sources));
        let related = finding
            .related
            .iter()
            .map(|one| Beside { location: spot(&one.location), message: one.message.clone() });
        let stack = finding.stack.iter().map(|frame| Frame::of(&frame.location, frame.user, sources));
        let (standing, ignored) = match &finding.standing {
            Standing::Open => ("open", None),
            Standing::Ignored { reason, by } => {
                ("ignored", Some(Ignored { reason: reason.clone(), by: by.clone() }))
            }
            Standing::Baselined => ("baselined", None),
            Standing::Inherited => ("inherited", None),
        };
        let (edits, no_edit) = match crate::fix::of(report, finding, sources) {
            Some(Ok(fix)) => (changes(&fix, finding, sources), None),
            none => (Vec::new(), none.and_then(Result::err)),
        };
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
            also: finding.also.iter().map(|one| Sighting::of(*one, report)).collect(),
            location: finding.location.as_ref().map(spot),
            related: related.collect(),
            evidence: evidence(finding),
            impact: Impact::of(finding.impact),
            stack: stack.collect(),
            fingerprint: finding.fingerprint.to_string(),
            standing,
            ignored,
            edits,
            no_edit,
        }
    }
}

fn changes(fix: &Fix, finding: &Finding, sources: &SourceMap) -> Vec<Change> {
    let Some(spot) = finding.location.as_ref().and_then(|at| sources.find(at)) else { return Vec::new() };
    let file = spot.file;
    let change = |edit: &Edit| {
        let ((line, column), (end_line, end_column)) = fix::region(edit, &file);
        Change {
            file: fix.file.clone(),
            start_byte: edit.start,
            end_byte: edit.end,
            line,
            column,
            end_line,
            end_column,
            replacement: edit.text.clone(),
            applicability: fix.applicability.name(),
            why: format!("{}: {}", fix.title, fix.why),
        }
    };
    fix.edits.iter().map(change).collect()
}

impl Sighting {
    fn of(sighting: finding::Sighting, report: &Report) -> Sighting {
        let recording = report.recordings.get(sighting.input);
        Sighting {
            input: recording.map(|one| one.name.clone()),
            rank: recording.and_then(|one| one.rank),
            device: sighting.device.map(Index::position),
            impact: Impact::of(sighting.impact),
        }
    }
}

impl Impact {
    fn of(impact: finding::Impact) -> Impact {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        Impact {
            peak_bytes: bytes(impact.peak),
            reserved_bytes: bytes(impact.reserved),
            resident_bytes: bytes(impact.resident),
            bytes_per_iteration: bytes(impact.per_iteration),
            bytes_at_once: bytes(impact.at_once),
        }
    }
}

impl Frame {
    fn of(location: &Location, user: bool, sources: &SourceMap) -> Frame {
        let place = user.then(|| SourceLine::of(location, sources));
        let (file, line) = place.map_or_else(
            || (location.file.clone(), location.line),
            |place| (place.name().to_owned(), place.number),
        );
        Frame { file, line, function: location.function.clone(), user }
    }
}

impl Spot {
    pub(super) fn of(place: &SourceLine<'_>) -> Spot {
        let location = place.location;
        let region = place.region();
        Spot {
            file: place.name().to_owned(),
            line: place.number,
            column: region.map(|region| region.column),
            end_line: region.map(|region| region.end_line),
            end_column: region.map(|region| region.end_column),
            function: Some(location.function.clone()).filter(|name| !name.is_empty()),
        }
    }
}

/// The named numbers of a finding.
pub(in crate::report) fn evidence(finding: &Finding) -> serde_json::Map<String, Json> {
    finding.evidence.iter().map(|one| (one.name.to_string(), value(&one.value))).collect()
}

fn value(value: &Quantity) -> Json {
    match value {
        Quantity::Bytes(bytes) => json!(bytes.get()),
        Quantity::Count(number) => json!(number),
        Quantity::Ratio(number) => json!(number),
        Quantity::Text(text) => json!(text),
        Quantity::Series(series) => series.iter().map(|bytes| bytes.get()).collect(),
    }
}
