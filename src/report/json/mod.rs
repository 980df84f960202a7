//! The machine-readable formats, `memlint/1`.
//!
//! Their types are their own: a change of the analysis does not change them by accident. Bytes are integers, lines and
//! columns count from 1, names are kebab-case, and what is not known is `null`.

mod check;
mod profiler;
mod stats;

use std::io;

use serde::Serialize;

use crate::engine::{Input, RecordedDevice, Recording, Report};
use crate::profiler::ProfilerTimeline;
use crate::report::place::MainLoop;
use crate::report::{Detail, gap};
use crate::source::SourceMap;
use crate::unit::Index;

/// The version of these formats.
pub const SCHEMA: &str = "memlint/1";

/// Writes the report of a check.
///
/// # Errors
/// Where the output cannot be written.
pub fn check(report: &Report, sources: &SourceMap, out: &mut dyn io::Write) -> io::Result<()> {
    write(&check::Check::of(report, sources), out)
}

/// Writes what is known of one snapshot; with every allocation, if that is asked for.
///
/// # Errors
/// Where the output cannot be written.
pub fn stats(
    input: &Input,
    sources: &SourceMap,
    allocations: bool,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write(&stats::Stats::of(input, sources, allocations), out)
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

fn write(document: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.write_all(b"\n")
}

/// Who wrote a document.
#[derive(Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

const TOOL: Tool = Tool { name: "memlint", version: env!("CARGO_PKG_VERSION") };

/// A loop's header.
#[derive(Serialize)]
struct Loop {
    file: String,
    line: u32,
    function: String,
}

impl Loop {
    fn of(device: &RecordedDevice, sources: &SourceMap) -> Option<Loop> {
        let MainLoop { file, line, function, .. } = MainLoop::of(device, sources)?;
        Some(Loop { file, line, function })
    }
}

/// What a snapshot does not tell.
#[derive(Serialize)]
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
