//! `memlint stats`: what a snapshot or a profiler's timeline holds, without a verdict.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, PlainFormat, Stats};
use super::error::CliError;
use super::reading::{Shown, origin, read_any, source_map};
use super::{print, terminal};
use crate::config::Settings;
use crate::engine::Input;
use crate::input::Source;
use crate::profiler::ProfilerTimeline;
use crate::report::{Detail, json, profiler, stats};
use crate::source::SourceMap;

pub(super) fn run(arguments: &Stats, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let configuration = arguments.locating.configuration(matches)?;
    let settings = Settings::of(configuration, arguments.reading.sources.overrides())?;
    let source = Source::named(&arguments.path);
    match read_any(&source, &arguments.reading.limits)? {
        Shown::Snapshot(input) => {
            let files = source_map(&settings.source_roots, &settings.path_map, &[source])?;
            show_snapshot(arguments, color, &files, &input)?;
        }
        Shown::Timeline(timeline) => show_timeline(arguments, color, &source, &timeline)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show_snapshot(arguments: &Stats, color: Color, files: &SourceMap, input: &Input) -> Result<(), CliError> {
    let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
    let proofs: Vec<_> = input.devices.iter().map(|device| device.proof(&input.snapshot)).collect();
    let recording = input.recording();
    let files = &files.seen_by([&recording]);
    match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, detail);
            let text = stats::render(&recording, &proofs, files, &look);
            print(|out| out.write_all(text.as_bytes()))
        }
        PlainFormat::Json => print(|out| json::stats(input, &proofs, files, arguments.allocations, out)),
    }
}

fn show_timeline(
    arguments: &Stats,
    color: Color,
    source: &Source,
    timeline: &ProfilerTimeline,
) -> Result<(), CliError> {
    match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, Detail::Normal);
            print(|out| out.write_all(profiler::render(&source.name(), timeline, &look).as_bytes()))
        }
        PlainFormat::Json => print(|out| json::profiler(&source.name(), origin(source).rank, timeline, out)),
    }
}
