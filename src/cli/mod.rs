//! The command line: arguments in, a report or a snapshot out, one error at most on standard error, an exit code.
//!
//! Always: 0 is a clean verdict, 1 one with findings at or above `--fail-on`, 2 no trustworthy verdict, be it for a
//! fault of memlint itself. Nothing else is written to standard output than what was asked for, and a reader who closes
//! the pipe is no error.

mod against;
mod arguments;
mod check;
mod conclude;
mod config;
mod counterpart;
mod crew;
mod diff;
mod drawing;
mod edit;
mod environment;
mod error;
mod examine;
mod explain;
mod fault;
mod file;
mod fix;
mod known;
mod manual;
mod meant;
mod outputs;
mod pages;
mod progress;
mod reading;
mod record;
mod report;
mod required;
mod rules;
mod schema;
mod screen;
mod shorthand;
mod stats;
mod terminal;
mod view;
mod whatif;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use self::arguments::{Arguments, Command};
use self::error::CliError;

/// No trustworthy verdict.
const NO_VERDICT: u8 = 2;

/// Does what the arguments of this process say.
pub fn run() -> ExitCode {
    let command = environment::heeding(Arguments::command());
    let given = shorthand::spelt_out(env::args_os(), &command);
    let parsed = command.try_get_matches_from(given);
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(usage) => {
            if usage.use_stderr() {
                terminal::show_usage(&usage);
                return ExitCode::from(NO_VERDICT);
            }
            return if usage.print().is_ok() { ExitCode::SUCCESS } else { ExitCode::from(NO_VERDICT) };
        }
    };
    // Which of them were given, and which came from the environment.
    let matches = matches.subcommand().map_or(&matches, |(_, of_command)| of_command);
    let permitted = || environment::permit(&Arguments::command());
    let outcome = fault::caught(|| {
        permitted().and_then(|()| match &arguments.command {
            Command::Check(check) => check::run(check, matches, arguments.color),
            Command::Examine(examine) => examine::run(examine, matches),
            Command::Conclude(conclude) => conclude::run(conclude, matches, arguments.color),
            Command::Record(record) => record::run(record, arguments.color),
            Command::Fix(fix) => fix::run(fix, matches, arguments.color),
            Command::Report(report) => report::run(report, matches, arguments.color),
            Command::View(view) => view::run(view, matches, arguments.color),
            Command::Stats(stats) => stats::run(stats, matches, arguments.color),
            Command::Diff(diff) => diff::run(diff, matches, arguments.color),
            Command::Whatif(whatif) => whatif::run(whatif, arguments.color),
            Command::Rules(rules) => rules::run(rules, arguments.color),
            Command::Explain(explain) => explain::run(explain, matches, arguments.color),
            Command::Config(config) => config::run(config, matches),
            Command::Slice(slice) => edit::run_slice(slice),
            Command::Anonymize(anonymize) => edit::run_anonymize(anonymize),
            Command::Schema(schema) => schema::run(schema),
            Command::Completions(completions) => manual::complete(completions),
            Command::Man(man) => manual::describe(man),
        })
    });
    outcome.unwrap_or_else(|error| {
        match &arguments.command {
            Command::Check(check) => check::write_failure(&check.reporting, &error),
            Command::Conclude(conclude) => check::write_failure(&conclude.reporting, &error),
            _ => {}
        }
        terminal::show_error(&error, arguments.color);
        ExitCode::from(NO_VERDICT)
    })
}

/// Standard output as a file: the standard library's own passes over a descriptor that is not open for writing.
#[cfg(unix)]
fn standard_output() -> io::Result<impl Write> {
    use std::os::fd::AsFd;
    Ok(std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(not(unix))]
fn standard_output() -> io::Result<impl Write> {
    Ok(io::stdout().lock())
}

/// Writes to standard output. A reader who has seen enough is no error.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let out = standard_output().map_err(|error| CliError::Output { error })?;
    let mut out = io::BufWriter::new(out);
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is left in the buffer would only fail again.
            let _ = out.into_parts();
            Ok(())
        }
        outcome => outcome.map_err(|error| CliError::Output { error }),
    }
}
