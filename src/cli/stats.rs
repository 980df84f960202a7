//! `memlint stats`: what a snapshot holds, without a verdict.

use std::process::ExitCode;

use super::arguments::{Color, Stats, StatsFormat};
use super::error::CliError;
use super::reading::{read, source_map};
use super::{print, terminal};
use crate::input::Source;
use crate::report::{Detail, json, stats};

pub(super) fn run(arguments: &Stats, color: Color) -> Result<ExitCode, CliError> {
    let source = Source::named(&arguments.path);
    let input = read(&source, &arguments.reading)?;
    let files = source_map(&arguments.reading, &[source]);
    let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
    match arguments.output_format {
        StatsFormat::Text => {
            let look = terminal::look(color, detail);
            print(|out| out.write_all(stats::render(&input.recording(), &files, &look).as_bytes()))?;
        }
        StatsFormat::Json => print(|out| json::stats(&input, &files, arguments.allocations, out))?,
    }
    Ok(ExitCode::SUCCESS)
}
