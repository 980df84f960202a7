//! The machine-readable formats, `memlint/1`.
//!
//! Their types are their own: a change of the analysis does not change them by accident. Bytes are integers, lines and
//! columns count from 1, names are kebab-case, and what is not known is `null`.

mod check;
mod diff;
mod finding;
mod profiler;
mod rules;
mod schema;
mod stats;
mod whatif;

pub(super) use finding::evidence;
pub use schema::schema;

use std::io;

use schemars::JsonSchema;
use serde::Serialize;

use self::check::{Line, NoVerdict};
use crate::comparison::Comparison;
use crate::engine::{Closer, Input, RecordedDevice, Recording, Report};
use crate::profiler::ProfilerTimeline;
use crate::report::place::PlacedLoop;
use crate::report::{Detail, VerdictFailure, gap};
use crate::source::SourceMap;
use crate::unit::Index;
use crate::whatif::{Answer, Question};

/// The version of these formats.
pub const SCHEMA: &str = "memlint/1";

/// Writes the report of a check.
///
/// # Errors
/// Where the output cannot be written.
pub fn check(report: &Report, sources: &SourceMap, out: &mut dyn io::Write) -> io::Result<()> {
    write(&check::Check::of(report, sources), out)
}

/// Writes the report of a check as one line a finding and a notice, and last a summary.
///
/// # Errors
/// Where the output cannot be written.
pub fn lines(report: &Report, sources: &SourceMap, out: &mut dyn io::Write) -> io::Result<()> {
    Line::all(report, sources).try_for_each(|line| write_line(&line, out))
}

/// Writes that there is no verdict, in place of the report of a check.
///
/// # Errors
/// Where the output cannot be written.
pub fn failure(failure: &VerdictFailure, out: &mut dyn io::Write) -> io::Result<()> {
    write(&NoVerdict::of(failure), out)
}

/// Writes that there is no verdict, in place of the lines of a check.
///
/// # Errors
/// Where the output cannot be written.
pub fn failure_line(failure: &VerdictFailure, out: &mut dyn io::Write) -> io::Result<()> {
    write_line(&Line::NoVerdict(NoVerdict::of(failure)), out)
}

/// Writes what is known of one snapshot, with what a closer look at its devices finds, in their order; with every allocation, if that is asked
/// for.
///
/// # Errors
/// Where the output cannot be written.
pub fn stats(
    input: &Input,
    closer: &[Closer],
    sources: &SourceMap,
    allocations: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write(&stats::Stats::of(input, closer, sources, allocations), out)
}

/// Writes what is known of one memory timeline of PyTorch's profiler.
///
/// # Errors
/// Where the output cannot be written.
pub fn profiler(
    name: &str,
    rank: Option<u32>,
    timeline: &ProfilerTimeline,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write(&profiler::Profiled::of(name, rank, timeline), out)
}

/// Writes what a recorded program would need.
///
/// # Errors
/// Where the output cannot be written.
pub fn whatif(
    name: &str,
    question: &Question,
    answers: &[Answer],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write(&whatif::WhatIf::of(name, question, answers), out)
}

/// Writes how two recordings differ.
///
/// # Errors
/// Where the output cannot be written.
pub fn diff(comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
    write(&diff::Diff::of(comparison), out)
}

/// Writes what memlint looks for.
///
/// # Errors
/// Where the output cannot be written.
pub fn rules(out: &mut dyn io::Write) -> io::Result<()> {
    write(&rules::RuleList::all(), out)
}

fn write_line(line: &Line, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

pub(super) fn write(document: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.write_all(b"\n")
}

/// Who wrote a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tool {
    name: &'static str,
    version: &'static str,
}

pub(super) const TOOL: Tool = Tool { name: "memlint", version: env!("CARGO_PKG_VERSION") };

/// A loop's header.
#[derive(Serialize, JsonSchema)]
struct Loop {
    file: String,
    line: u32,
    function: String,
}

impl Loop {
    fn of(device: &RecordedDevice, sources: &SourceMap) -> Option<Loop> {
        let PlacedLoop { file, line, function, .. } = PlacedLoop::of(device, sources)?;
        Some(Loop { file, line, function })
    }
}

/// What a snapshot does not tell.
#[derive(Serialize, JsonSchema)]
struct Gap {
    input: String,
    device: Option<usize>,
    kind: &'static str,
    message: String,
}

impl Gap {
    fn all(recording: &Recording) -> Vec<Gap> {
        let gap = |device, kind, message| Gap { input: recording.name.clone(), device, kind, message };
        let of_file = gap::all(recording, Detail::Verbose);
        let of_file = of_file.into_iter().map(|(kind, message)| gap(None, kind, message));
        let of_traces = recording.devices.iter().flat_map(|device| {
            let ordinal = Some(device.device.position());
            gap::disagreements(&device.agreement)
                .into_iter()
                .map(move |(kind, message)| gap(ordinal, kind, message))
        });
        of_file.chain(of_traces).collect()
    }
}
