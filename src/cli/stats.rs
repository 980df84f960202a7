//! `memlint stats`: what snapshots or profilers' timelines hold, without a verdict.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, PlainFormat, Stats};
use super::error::CliError;
use super::pages::Pages;
use super::reading::{Shown, read_any, say_left_out, source_map, sources};
use super::terminal;
use crate::config::Settings;
use crate::engine::Input;
use crate::input::{self, Expansion, Origin, Source};
use crate::profiler::ProfilerTimeline;
use crate::report::{Detail, json, profiler, stats};
use crate::source::SourceMap;

pub(super) fn run(arguments: &Stats, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let configuration = arguments.locating.configuration(matches)?;
    let settings = Settings::of(configuration, arguments.reading.sources.overrides())?;
    let Expansion { sources, left_out } = sources(&arguments.paths)?;
    let files = source_map(&settings.source_roots, &settings.path_map, &sources)?;
    say_left_out(&left_out);
    let mut pages = Pages::of(arguments.output_format, color, &[&arguments.paths], &[&sources]);
    // One after the other: none has to be held while the next is read.
    for (source, origin) in sources.iter().zip(input::origins(&sources)) {
        match read_any(source, &origin, &arguments.reading.limits) {
            Ok(Shown::Snapshot(input)) => show_snapshot(&mut pages, arguments, color, &files, &input),
            Ok(Shown::Timeline(timeline)) => {
                show_timeline(&mut pages, arguments, color, source, &origin, &timeline)
            }
            Err(error) => pages.fail(error),
        }?;
    }
    pages.end()
}

fn show_snapshot(
    pages: &mut Pages,
    arguments: &Stats,
    color: Color,
    files: &SourceMap,
    input: &Input,
) -> Result<(), CliError> {
    let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
    let proofs: Vec<_> = input.devices.iter().map(|device| device.proof(&input.snapshot)).collect();
    let recording = input.recording();
    let files = &files.seen_by([&recording]);
    pages.add(|out| match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, detail);
            out.write_all(stats::render(&recording, &proofs, files, &look).as_bytes())
        }
        PlainFormat::Json => json::stats(input, &proofs, files, arguments.allocations, out),
    })
}

fn show_timeline(
    pages: &mut Pages,
    arguments: &Stats,
    color: Color,
    source: &Source,
    origin: &Origin,
    timeline: &ProfilerTimeline,
) -> Result<(), CliError> {
    pages.add(|out| match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, Detail::Normal);
            out.write_all(profiler::render(&source.name(), timeline, &look).as_bytes())
        }
        PlainFormat::Json => json::profiler(&source.name(), origin.rank, timeline, out),
    })
}
