//! `memlint record`: a program in, its output and exit status out, and snapshots with their verdict beside.
//!
//! Always: the program's own failure is the exit status, whatever memlint has to say. memlint says it on standard error;
//! standard output is the program's, and then the report's.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use clap::{CommandFactory, FromArgMatches};

use super::arguments::{Arguments, Color, Command, Record};
use super::error::CliError;
use super::{NO_VERDICT, check, environment, terminal};
use crate::input::Source;
use crate::record::{self, Destination, DeviceModel, Process, RecordError, Recorded, VARIABLE, When, Wish};
use crate::report::Format;
use crate::unit::{count, shown_name};

pub(super) fn run(record: &Record, color: Color) -> Result<ExitCode, CliError> {
    if env::var_os(VARIABLE).is_some() {
        return Err(RecordError::Nested.into());
    }
    if let Some(Source::Remote(address)) = record.output.as_deref().map(Source::named) {
        return Err(CliError::RecordedElsewhere { name: address.shown() });
    }
    let destination = Destination::prepare(record.output.as_deref(), record.force)?;
    let Record { iterations, stop, every, watch, .. } = *record;
    let when = When { iterations, stop, every, watch };
    let model = record.no_gpu.then_some(DeviceModel { devices: record.devices, bytes: record.device_memory });
    let wish =
        Wish { when, stacks: record.stacks.into(), max_entries: record.max_entries, model, elsewhere: None };
    let outcome = record::run(&record.command, &wish, &destination, |path, steps| {
        say(&format!("after {}:", count(steps, "optimizer step")));
        report(&[path.to_owned()], Format::Concise, color);
    });
    let (status, recorded) = outcome.inspect_err(|_| destination.give_up())?;
    destination.give_up();
    say_what_was_recorded(&recorded);
    let failure = own_failure(status);
    // What fails because there is no GPU says nothing of the program, and all else that is wrong follows from it.
    if let Some(refusal) = failure.and_then(|_| recorded.refusal()) {
        terminal::show_error(&refusal, color);
        return Ok(ExitCode::from(NO_VERDICT));
    }
    for error in &recorded.trouble {
        terminal::show_error(error, color);
    }
    let verdict = check_it(record, &recorded, &destination, color);
    if let Some(code) = failure {
        // Last of all: a report without findings above it would leave the status a riddle.
        say(&format!("the program itself ended with status {code}, and so this command does, too"));
    }
    Ok(match (failure, recorded.trouble.is_empty()) {
        (Some(code), _) => ExitCode::from(code),
        (None, false) => ExitCode::from(NO_VERDICT),
        (None, true) if record.gate => verdict,
        (None, true) => ExitCode::SUCCESS,
    })
}

/// The exit status of a program that failed, as a shell would tell it.
fn own_failure(status: ExitStatus) -> Option<u8> {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    match (status.code(), signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => {
            Some(signal.and_then(|signal: i32| u8::try_from(128 + signal).ok()).unwrap_or(u8::MAX))
        }
    }
}

/// Checks what was recorded, if that is wanted; the exit status of the check.
fn check_it(record: &Record, recorded: &Recorded, destination: &Destination, color: Color) -> ExitCode {
    let wanted = record.check || record.gate || (!record.no_check && io::stdout().is_terminal());
    if !wanted || recorded.snapshots.is_empty() {
        return ExitCode::from(NO_VERDICT);
    }
    let paths: Vec<PathBuf> = match destination.own_folder() {
        Some(folder) => vec![shorter(folder)],
        None => recorded.snapshots.iter().map(|snapshot| shorter(&snapshot.path)).collect(),
    };
    report(&paths, Format::Text, color)
}

/// What `memlint check` says of some snapshots, with the configuration that holds here.
fn report(paths: &[PathBuf], format: Format, color: Color) -> ExitCode {
    let head = ["memlint", "check", "--output-format", format.name(), "--"].map(OsString::from);
    let words = head.into_iter().chain(paths.iter().map(|path| path.as_os_str().to_owned()));
    let parsed = environment::heeding(Arguments::command()).try_get_matches_from(words);
    let outcome = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    match outcome {
        Ok((Arguments { command: Command::Check(arguments), .. }, matches)) => {
            let matches = matches.subcommand().map_or(&matches, |(_, of_command)| of_command);
            check::run(&arguments, matches, color).unwrap_or_else(|error| {
                terminal::show_error(&error, color);
                ExitCode::from(NO_VERDICT)
            })
        }
        Ok(_) => ExitCode::from(NO_VERDICT),
        // A variable of the environment that says what no check understands.
        Err(usage) => {
            terminal::show_usage(&usage);
            ExitCode::from(NO_VERDICT)
        }
    }
}

/// A path as somebody here would write it.
fn shorter(path: &Path) -> PathBuf {
    let here = env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok())
        .filter(|rest| !rest.as_os_str().is_empty())
        .unwrap_or(path)
        .to_owned()
}

/// Snapshots that are listed by name.
const MOST_LISTED: usize = 4;

fn say_what_was_recorded(recorded: &Recorded) {
    let snapshots = &recorded.snapshots;
    if snapshots.is_empty() {
        return;
    }
    let listed = snapshots.iter().take(MOST_LISTED).map(|snapshot| {
        format!("{} ({})", shown_name(&shorter(&snapshot.path).display().to_string()), snapshot.bytes)
    });
    let mut listed: Vec<String> = listed.collect();
    if snapshots.len() > MOST_LISTED {
        listed.push(format!("{} more", snapshots.len() - MOST_LISTED));
    }
    let recorded_processes: Vec<&Process> =
        recorded.processes.iter().filter(|process| process.settings.is_some()).collect();
    say(&format!("recorded {} in {}", count(recorded_processes.len(), "process"), listed.join(", ")));
    // The processes of a job do the same; the slowest holds the others up.
    let slowest = recorded_processes
        .iter()
        .max_by(|a, b| a.recorded_seconds.unwrap_or(0.0).total_cmp(&b.recorded_seconds.unwrap_or(0.0)));
    if let Some(process) = slowest {
        say(&cost(process, recorded));
    }
}

/// What was chosen, and what it cost.
fn cost(process: &Process, recorded: &Recorded) -> String {
    let mut parts = Vec::new();
    if let Some((stacks, most)) = &process.settings {
        parts.push(format!("stacks {stacks}, at most {}", count(*most, "event")));
    }
    parts.push(count(process.steps, "optimizer step"));
    let milliseconds = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    match (process.recorded_seconds, process.unrecorded_seconds) {
        (Some(with), Some(without)) => parts.push(format!(
            "{} from step to step while recorded, {} since ({:+.1} %)",
            milliseconds(with),
            milliseconds(without),
            100.0 * (with / without - 1.0)
        )),
        (Some(with), None) => parts.push(format!("{} from step to step", milliseconds(with))),
        (None, _) => {}
    }
    let longest = recorded.snapshots.iter().map(|snapshot| snapshot.written.seconds).fold(0.0, f64::max);
    parts.push(format!("{longest:.1} s to write a snapshot"));
    parts.join("; ")
}

/// Says something beside the program's own output. Where standard error is gone, there is nobody to tell.
fn say(what: &str) {
    let _ = writeln!(io::stderr().lock(), "memlint: {what}");
}
