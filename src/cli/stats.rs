//! `memlint stats`: what a snapshot holds, without a verdict.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, PlainFormat, Stats};
use super::error::CliError;
use super::reading::{read, source_map};
use super::{print, terminal};
use crate::config::Settings;
use crate::input::Source;
use crate::report::{Detail, json, stats};

pub(super) fn run(arguments: &Stats, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let configuration = arguments.locating.configuration(matches)?;
    let settings = Settings::of(configuration, arguments.reading.sources.overrides())?;
    let source = Source::named(&arguments.path);
    let input = read(&source, &arguments.reading.limits)?;
    let files = source_map(&settings.source_roots, &settings.path_map, &[source]);
    let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
    match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, detail);
            print(|out| out.write_all(stats::render(&input.recording(), &files, &look).as_bytes()))?;
        }
        PlainFormat::Json => print(|out| json::stats(&input, &files, arguments.allocations, out))?,
    }
    Ok(ExitCode::SUCCESS)
}
