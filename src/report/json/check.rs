//! `memlint check --output-format json`, and the same as one line a finding: `jsonl`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::finding::{Found, Spot};
use super::{Gap, Loop, SCHEMA, TOOL, Tool};
use crate::engine::{self, Outcome, RecordedDevice, Recording, Report};
use crate::finding;
use crate::report::VerdictFailure;
use crate::report::place::SourceLine;
use crate::report::tally::Tally;
use crate::source::SourceMap;
use crate::unit::{Bytes, Index};

/// What a check found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub(super) struct Check {
    /// The version of this format: `memlint/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    /// The snapshots.
    inputs: Vec<CheckedInput>,
    /// The worst first; those that do not count for the verdict are among them (`standing`).
    findings: Vec<Found>,
    /// What a person should know of the judging itself; counts for the verdict, too.
    notices: Vec<Noted>,
    /// Rules that did not judge a device.
    skipped: Vec<Skipped>,
    /// What the snapshots do not tell.
    gaps: Vec<Gap>,
    /// Files that could not be read.
    unread: Vec<Unread>,
    summary: Summary,
    verdict: Verdict,
}

/// One line of `jsonl`: the findings, the notices, and last a summary; or nothing but that there is no verdict.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum Line {
    Finding(Box<Found>),
    Notice(Noted),
    Summary(Box<Closing>),
    NoVerdict(NoVerdict),
}

/// The last line: everything of a report but its findings and notices.
#[derive(Serialize, JsonSchema)]
pub(super) struct Closing {
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    inputs: Vec<CheckedInput>,
    skipped: Vec<Skipped>,
    gaps: Vec<Gap>,
    unread: Vec<Unread>,
    summary: Summary,
    verdict: Verdict,
}

/// A file that could not be read.
#[derive(Serialize, JsonSchema)]
struct Unread {
    path: String,
    rank: Option<u32>,
    message: String,
    help: Option<String>,
}

/// What a file given with `--output-file` holds where there is no report.
#[derive(Serialize, JsonSchema)]
pub(super) struct NoVerdict {
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    error: Error,
}

/// Why there is no verdict.
#[derive(Serialize, JsonSchema)]
struct Error {
    message: String,
    help: Option<String>,
}

/// A snapshot.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Input")]
struct CheckedInput {
    /// As given, or `<stdin>`.
    path: String,
    rank: Option<u32>,
    devices: Vec<CheckedDevice>,
}

/// A device that did something.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Device")]
struct CheckedDevice {
    device: usize,
    /// What kind of recording it is: `whole`, `loop`, `later`, `pass`, `straight`, `tail`, `resumed`, `slice`, `partial` or `state`.
    recording: &'static str,
    iterations: usize,
    iterations_found_by: &'static str,
    #[schemars(extend("enum" = ["low", "medium", "high"]))]
    iterations_confidence: &'static str,
    #[serde(rename = "loop")]
    main_loop: Option<Loop>,
    /// Null where the recording hides it (`skipped` says what it hides).
    peak_requested_bytes: Option<u64>,
    /// Null where the recording hides it.
    peak_allocated_bytes: Option<u64>,
    /// Null where the recording hides it.
    peak_reserved_bytes: Option<u64>,
    peak_phase: &'static str,
    /// Bytes by role; they add up to the peak of requested bytes.
    roles_at_peak: BTreeMap<&'static str, u64>,
}

/// Something about the judging: a suppression that suppresses nothing, an entry of the baseline that has gone.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Notice")]
pub(super) struct Noted {
    kind: &'static str,
    #[schemars(extend("enum" = ["info", "warning", "error"]))]
    severity: &'static str,
    message: String,
    help: String,
    location: Option<Spot>,
}

/// A rule that did not judge a device.
#[derive(Serialize, JsonSchema)]
struct Skipped {
    input: Option<String>,
    rule: String,
    /// The ordinal of the device; null for a rule that compares recordings.
    device: Option<usize>,
    reason: String,
    /// Whether the recording hides what the rule needs to see, so that its silence means nothing. Otherwise the program does
    /// nothing that the rule is about.
    blind: bool,
    /// How to record so that the rule can judge; null where it is not blind.
    help: Option<&'static str>,
}

/// Counts. Findings that do not count for the verdict are not among the first three.
#[derive(Serialize, JsonSchema)]
struct Summary {
    /// Open findings and notices of this severity.
    errors: usize,
    /// Open findings and notices of this severity.
    warnings: usize,
    /// Open findings and notices of this severity.
    infos: usize,
    ignored: usize,
    baselined: usize,
    /// Findings left out of this report because they are less sure than `min-confidence`.
    unsure: usize,
    /// Findings that the recording of `--against` has, too.
    inherited: usize,
    /// Entries of `skipped`.
    skipped: usize,
}

/// Whether the gate closes.
#[derive(Serialize, JsonSchema)]
struct Verdict {
    /// Whether it is anything but open: findings close it, or there is no verdict; `--exit-zero` changes nothing here.
    fails: bool,
    /// The least severity that closes it; null where nothing does.
    #[schemars(extend("enum" = ["info", "warning", "error", null]))]
    fail_on: Option<&'static str>,
    /// How many findings and notices close it.
    failing: usize,
    /// What comes of it: `no-verdict` is exit status 2.
    #[schemars(extend("enum" = ["open", "closed", "no-verdict"]))]
    outcome: &'static str,
    /// How many files could not be read: any of them leaves no verdict.
    unread: usize,
    /// How many recordings no rule could judge: any of them leaves no verdict.
    unjudged: usize,
    /// With `--strict` the rules that could not judge a recording: any of them makes the exit status 2 instead of 0.
    blind: usize,
    /// With `--strict` the notices that something was not looked at: any of them makes the exit status 2 instead of 0.
    left_out: usize,
}

impl Check {
    pub(super) fn of(report: &Report, sources: &SourceMap) -> Check {
        let Closing { schema, tool, inputs, skipped, gaps, unread, summary, verdict } =
            Closing::of(report, sources);
        let findings = report.findings.iter().map(|finding| Found::of(finding, report, sources)).collect();
        let notices = report.notices.iter().map(Noted::of).collect();
        Check { schema, tool, inputs, findings, notices, skipped, gaps, unread, summary, verdict }
    }
}

impl Line {
    /// The lines of a report, in their order.
    pub(super) fn all<'a>(report: &'a Report, sources: &'a SourceMap) -> impl Iterator<Item = Line> + 'a {
        let finding = |one| Line::Finding(Box::new(Found::of(one, report, sources)));
        let notice = |one| Line::Notice(Noted::of(one));
        let summary = std::iter::once_with(|| Line::Summary(Box::new(Closing::of(report, sources))));
        report.findings.iter().map(finding).chain(report.notices.iter().map(notice)).chain(summary)
    }
}

impl Closing {
    fn of(report: &Report, sources: &SourceMap) -> Closing {
        let tally = Tally::of(report);
        Closing {
            schema: SCHEMA,
            tool: TOOL,
            inputs: report.recordings.iter().map(|one| CheckedInput::of(one, sources)).collect(),
            skipped: report.skipped.iter().map(|one| Skipped::of(one, report)).collect(),
            gaps: report.recordings.iter().flat_map(Gap::all).collect(),
            unread: report.unread.iter().map(Unread::of).collect(),
            summary: Summary {
                errors: tally.errors,
                warnings: tally.warnings,
                infos: tally.notes,
                ignored: tally.ignored,
                baselined: tally.baselined,
                unsure: tally.unsure,
                inherited: tally.inherited,
                skipped: report.skipped.len(),
            },
            verdict: Verdict {
                fails: report.verdict.outcome() != Outcome::Open,
                fail_on: report.verdict.fail_on.map(finding::Severity::name),
                failing: report.verdict.failing,
                outcome: match report.verdict.outcome() {
                    Outcome::Open => "open",
                    Outcome::Closed => "closed",
                    Outcome::NoVerdict(_) => "no-verdict",
                },
                unread: report.verdict.unread,
                unjudged: report.verdict.unjudged,
                blind: report.verdict.blind,
                left_out: report.verdict.left_out,
            },
        }
    }
}

impl Unread {
    fn of(unread: &engine::Unread) -> Unread {
        let engine::Unread { name, rank, message, help, .. } = unread.clone();
        Unread { path: name, rank, message, help }
    }
}

impl NoVerdict {
    pub(super) fn of(failure: &VerdictFailure) -> NoVerdict {
        let VerdictFailure { message, help } = failure.clone();
        NoVerdict { schema: SCHEMA, tool: TOOL, error: Error { message, help } }
    }
}

impl Noted {
    fn of(notice: &finding::Notice) -> Noted {
        Noted {
            kind: notice.kind.name(),
            severity: notice.severity.name(),
            message: notice.message.clone(),
            help: notice.help.clone(),
            location: notice.location.as_ref().map(|location| Spot::of(&SourceLine::here(location))),
        }
    }
}

impl Skipped {
    fn of(skipped: &finding::Skipped, report: &Report) -> Skipped {
        Skipped {
            input: report.recordings.get(skipped.input).map(|one| one.name.clone()),
            rule: skipped.rule.to_string(),
            device: skipped.device.map(Index::position),
            reason: skipped.silence.reason(),
            blind: skipped.blind().is_some(),
            help: skipped.blind().map(finding::Hidden::remedy),
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
            recording: device.kind.name(),
            iterations: device.iterations,
            iterations_found_by: device.found_by.name(),
            iterations_confidence: device.confidence.name(),
            main_loop: Loop::of(device, sources),
            peak_requested_bytes: device.peak_requested.map(Bytes::get),
            peak_allocated_bytes: device.peak_allocated.map(Bytes::get),
            peak_reserved_bytes: device.peak_reserved.map(Bytes::get),
            peak_phase: device.profile.peak_phase.name(),
            roles_at_peak: by_role(device),
        }
    }
}

/// What the peak consists of.
pub(super) fn by_role(device: &RecordedDevice) -> BTreeMap<&'static str, u64> {
    device.profile.peak_by_role.iter().map(|(role, bytes)| (role.name(), bytes.get())).collect()
}
