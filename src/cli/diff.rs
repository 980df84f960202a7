//! `memlint diff`: two recordings side by side, without a verdict.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args};

use super::arguments::{Color, Limits, Locating, PlainFormat, Reading};
use super::check::refuse_what_cannot_be_compared;
use super::error::CliError;
use super::reading::{read, source_map};
use super::{print, terminal};
use crate::comparison::{Comparison, Measured, Side};
use crate::config::Settings;
use crate::engine::{self, Plan, Report};
use crate::input::Source;
use crate::report::{Detail, diff};
use crate::source::{self, SourceMap};

#[derive(Debug, Args)]
#[command(
    after_help = "Iterations are compared by their number, as far as both recordings go. A difference within what the \
                        iterations of one recording differ by is no change.\n\n\
                        Exit status: 0 compared, 2 not compared."
)]
pub(super) struct Diff {
    /// The snapshot to compare with.
    #[arg(value_name = "BASE")]
    base: PathBuf,

    /// The snapshot to compare; one of the two may be `-`, standard input.
    #[arg(value_name = "HEAD")]
    head: PathBuf,

    /// How to write it.
    #[arg(long, value_enum, default_value_t = PlainFormat::Text, value_name = "FORMAT")]
    output_format: PlainFormat,

    /// Show all roles and all call sites.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    /// Leave out the names of the snapshots.
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    locating: Locating,

    #[command(flatten)]
    reading: Reading,
}

pub(super) fn run(arguments: &Diff, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let configuration = arguments.locating.configuration(matches)?;
    let settings = Settings::of(configuration, arguments.reading.sources.overrides())?;
    let plan = Plan::of(&settings);
    let sources = [Source::named(&arguments.base), Source::named(&arguments.head)];
    let files = source_map(&settings.source_roots, &settings.path_map, &sources)?;
    let [base, head] = &sources;
    if matches!(sources, [Source::Stdin, Source::Stdin]) {
        return Err(CliError::StdinTwice);
    }
    let base = examine(base, &arguments.reading.limits, &files, &plan)?;
    let head = examine(head, &arguments.reading.limits, &files, &plan)?;
    let side = |(measured, report)| Side { measured, report };
    let comparison = Comparison::of(side((&base.0, &base.1)), side((&head.0, &head.1)));
    let detail = match (arguments.quiet, arguments.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, detail);
            print(|out| out.write_all(diff::render(&comparison, &look).as_bytes()))?;
        }
        PlainFormat::Json => print(|out| diff::json(&comparison, out))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One recording: its memory, and what the rules say of it. The snapshot itself goes.
fn examine(
    source: &Source,
    limits: &Limits,
    files: &SourceMap,
    plan: &Plan<'_>,
) -> Result<(Measured, Report), CliError> {
    let input = read(source, limits)?;
    refuse_what_cannot_be_compared(&input)?;
    let measured = Measured::of(&input);
    let mut report = engine::conclude(vec![engine::examine(&input, plan)], Vec::new(), plan);
    let files = files.seen_by(&report.recordings);
    source::settle(&mut report, &files);
    Ok((measured, report))
}
