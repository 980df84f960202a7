//! The command line: arguments in, a report or a snapshot out, one error at most on standard error, an exit code.
//!
//! Always: 0 is a clean verdict, 1 one with findings at or above `--fail-on`, 2 no trustworthy verdict. Nothing else
//! is written to standard output than what was asked for, and a reader who closes the pipe is no error.

mod arguments;
mod edit;
mod error;
mod explain;
mod progress;
mod terminal;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use self::arguments::{Arguments, Check, Command, Format, Limits, Reading, Stats};
use self::error::CliError;
use self::progress::Progress;
use crate::engine::{self, Input, Report};
use crate::input::Source;
use crate::report::{Detail, json, stats, text};
use crate::snapshot::{Action, DeviceTrace, Gap, Snapshot};
use crate::source::{self, SourceMap};

/// No trustworthy verdict.
const NO_VERDICT: u8 = 2;

/// Does what the arguments of this process say.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(usage) => {
            let asked_for = !usage.use_stderr();
            let printed = usage.print().is_ok();
            return if asked_for && printed { ExitCode::SUCCESS } else { ExitCode::from(NO_VERDICT) };
        }
    };
    let outcome = match &arguments.command {
        Command::Check(check) => run_check(check, &arguments),
        Command::Stats(stats) => run_stats(stats, &arguments),
        Command::Explain(explain) => explain::run(explain),
        Command::Slice(slice) => edit::run_slice(slice),
        Command::Anonymize(anonymize) => edit::run_anonymize(anonymize),
    };
    outcome.unwrap_or_else(|error| {
        terminal::show_error(&error, arguments.color);
        ExitCode::from(NO_VERDICT)
    })
}

fn run_check(check: &Check, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let mut sources = Vec::new();
    for path in &check.paths {
        sources.extend(Source::named(path).expand()?);
    }
    let mut inputs = Vec::new();
    for source in &sources {
        let input = read(source, &check.reading)?;
        if !input.snapshot.devices.iter().any(DeviceTrace::has_history) {
            return Err(CliError::NoHistory { name: input.name });
        }
        if is_unfamiliar(&input.snapshot) {
            return Err(CliError::Unfamiliar { name: input.name });
        }
        inputs.push(input);
    }
    let mut report = engine::check(inputs);
    let files = source_map(&check.reading, &sources);
    source::settle(&mut report.findings, &files);
    match check.output_format {
        Format::Text => {
            let look = terminal::look(arguments.color, detail(check));
            print(|out| out.write_all(text::render(&report, &files, &look).as_bytes()))?;
        }
        Format::Json => print(|out| json::check(&report, &files, out))?,
    }
    Ok(verdict(check, &report))
}

fn run_stats(stats: &Stats, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let source = Source::named(&stats.path);
    let input = read(&source, &stats.reading)?;
    let files = source_map(&stats.reading, &[source]);
    match stats.output_format {
        Format::Text => {
            let look = terminal::look(arguments.color, Detail::Normal);
            print(|out| out.write_all(stats::render(&input, &files, &look).as_bytes()))?;
        }
        Format::Json => print(|out| json::stats(&input, &files, stats.allocations, out))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads and understands one snapshot.
fn read(source: &Source, reading: &Reading) -> Result<Input, CliError> {
    Ok(Input::of(source.name(), read_snapshot(source, &reading.limits)?))
}

/// Reads one snapshot.
fn read_snapshot(source: &Source, limits: &Limits) -> Result<Snapshot, CliError> {
    let mut stream = source.open(&limits.of_input())?;
    let read = Snapshot::read(Progress::of(&mut stream, &source.name()), &limits.of_pickle());
    read.map_err(|error| match stream.into_failure() {
        Some(failure) => CliError::Input(failure),
        None => CliError::Snapshot { name: source.name(), error },
    })
}

/// Where the program's source is looked for.
/// Whether most events of a device are of kinds that this version does not know: then silence would mean nothing.
fn is_unfamiliar(snapshot: &Snapshot) -> bool {
    let told = snapshot.gaps.iter().any(|gap| matches!(gap, Gap::UnknownActions(_)));
    let unknown =
        |trace: &DeviceTrace| trace.events.iter().filter(|event| event.action == Action::Other).count();
    told && snapshot.devices.iter().any(|trace| 2 * unknown(trace) > trace.events.len())
}

fn source_map(reading: &Reading, snapshots: &[Source]) -> SourceMap {
    let maps = reading.path_map.clone();
    if !reading.source_root.is_empty() {
        return SourceMap::new(reading.source_root.iter().cloned(), maps);
    }
    let folders = snapshots.iter().filter_map(|snapshot| match snapshot {
        Source::File(path) => path.parent().map(Path::to_owned),
        Source::Stdin => None,
    });
    SourceMap::unasked(folders, maps)
}

fn detail(check: &Check) -> Detail {
    match (check.quiet, check.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    }
}

fn verdict(check: &Check, report: &Report) -> ExitCode {
    let least = check.fail_on.severity();
    let fails = least.is_some_and(|least| report.findings.iter().any(|finding| finding.severity >= least));
    ExitCode::from(u8::from(fails && !check.exit_zero))
}

/// Writes to standard output. A reader who has seen enough is no error.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // What is left in the buffer would only fail again.
            let _ = out.into_parts();
            Ok(())
        }
        outcome => outcome.map_err(|error| CliError::Output { error }),
    }
}
