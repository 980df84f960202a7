//! `memlint check`: the gate.

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::ArgMatches;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use miette::Diagnostic;

use super::against::Base;
use super::arguments::{Check, Color, Judged, Reporting};
use super::drawing::{self, Pictures};
use super::error::CliError;
use super::known::KnownFindings;
use super::outputs::NamedInputs;
use super::reading::{ReadOutcomes, not_looked_at, read_each, source_map, sources};
use super::required::{refuse_what_cannot_be_compared, refuse_without_history};
use super::{NO_VERDICT, file, outputs, print, terminal};
use crate::comparison::Measured;
use crate::config::{self, Date, PathMapping, Setting, Settings};
use crate::engine::{self, Examination, Input, Outcome, Plan, Report, Why};
use crate::finding::{Hidden, Matter, Notice, Severity};
use crate::fix;
use crate::gate::{self, Gate, Suppressions};
use crate::input::Expansion;
use crate::report::{Detail, Format, Look, VerdictFailure, html};
use crate::source::{self, SourceMap};
use crate::unit::{count, shown_name, some_of};

pub(super) fn run(check: &Check, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let reporting = &check.reporting;
    let written = reporting.written();
    let pictures = if reporting.draws() { Pictures::Page } else { Pictures::None };
    let (report, files) = analyse(&check.judged, (&written, pictures, reporting.quiet), matches)?;
    tell(reporting, &report, &files, color)
}

/// Reads and judges what is asked for; `written` are the files that will be written then, and `quiet` says that only findings are
/// wanted.
pub(super) fn analyse(
    judged: &Judged,
    (written, pictures, quiet): (&[&Path], Pictures, bool),
    matches: &ArgMatches,
) -> Result<(Report, SourceMap), CliError> {
    let found = sources(&judged.paths);
    let Judged { paths, known, configuring, .. } = judged;
    outputs::permit(&NamedInputs { paths, known, configuring }, written, found.as_ref().ok())?;
    // What is wrong with the settings or the baseline is said before anything large is read.
    let settings = judged.configuring.settings(&judged.reading.sources, &judged.known.naming, matches)?;
    outputs::permit_beside(written, &settings)?;
    let known = judged.known.read(&settings)?;
    let Expansion { sources, mut left_out } = found?;
    let plan = pictures.at_once(Plan::of(&settings), sources.len()).of_ranks(judged.ranks);
    if plan.is_empty() && judged.known.against.is_none() {
        return Err(CliError::NoBase);
    }
    let files = source_map(&settings.source_roots, &settings.path_map, &sources)?;
    let base = judged.known.base(&sources)?;
    let limits = &judged.reading.limits;
    let base = base.map(|(name, base)| {
        left_out.extend(base.left_out);
        let read = Base::read(name, &base.sources, limits, judged.jobs, &files, &plan)?;
        Ok::<_, CliError>((read, base.sources))
    });
    let (base, of_base) = base.transpose()?.unzip();
    let ReadOutcomes { good, unread } = read_each(&sources, limits, judged.jobs, |input| {
        if base.is_some() {
            refuse_what_cannot_be_compared(input)?;
        }
        Ok((examine(input, &plan)?, base.as_ref().map(|_| Measured::of(input))))
    })?;
    let (examinations, measured): (Vec<_>, Vec<_>) = good.into_iter().unzip();
    let mut report = engine::conclude(examinations, unread, &plan);
    report.notices.extend(not_looked_at(&left_out));
    let terms = SettlingTerms { settings: &settings, known: &known, quiet };
    let files = settle(&mut report, &files, &terms, |report| match base {
        Some(base) => base.settle(report, measured.iter().flatten(), &plan),
        None => Ok(()),
    })?;
    if pictures.later(sources.len()) {
        let reading = (limits, judged.jobs);
        let chosen = html::in_full(&report);
        drawing::draw(&mut report.recordings, &chosen, &sources, reading, &plan)?;
        let beside = html::counterparts(&report, &chosen);
        drawing::draw(&mut report.base, &beside, &of_base.unwrap_or_default(), reading, &plan)?;
    }
    Ok((report, files))
}

/// By what a report is settled.
pub(super) struct SettlingTerms<'a> {
    pub(super) settings: &'a Settings,
    pub(super) known: &'a KnownFindings<'a>,
    /// Whether only findings are wanted.
    pub(super) quiet: bool,
}

/// Everything that is decided when all is examined: what the source says, what is worse than a base (`against`), what is meant,
/// what is known, and the verdict. The sources as the recordings saw them.
pub(super) fn settle(
    report: &mut Report,
    files: &SourceMap,
    terms: &SettlingTerms,
    against: impl FnOnce(&mut Report) -> Result<(), CliError>,
) -> Result<SourceMap, CliError> {
    let SettlingTerms { settings, known, quiet } = terms;
    let files = files.seen_by(&report.recordings);
    source::settle(report, &files);
    fix::tell_holders(report, &files);
    report.notices.extend(unused_maps(settings, &files));
    report.forecast(settings.device_memory.as_ref().map(|memory| memory.value));
    against(report)?;
    suppress(report, settings, &files);
    known.settle(report, *quiet)?;
    // Last of all: an entry of the baseline is not gone because its finding is not sure enough.
    gate::leave_out_unsure(report, settings.min_confidence.value);
    Gate { fail_on: settings.fail_on.value.severity(), strict: settings.strict.value }.judge(report);
    Ok(files)
}

/// Says which maps of paths map nothing: the sources that they were to lead to are not found.
fn unused_maps<'a>(settings: &'a Settings, files: &'a SourceMap) -> impl Iterator<Item = Notice> + 'a {
    let unused = settings.path_map.iter().filter(|map| !files.maps_any(&map.value.from));
    unused.map(|Setting { value: PathMapping { from, to }, origin }| {
        let shown = shown_name(&format!("{from}={}", to.display()));
        let (why, help) = if to.exists() {
            (
                "no recorded path begins so",
                "`memlint stats` shows the recorded paths; name a prefix of whole folders",
            )
        } else {
            ("its folder is not there", "name a folder as it is called from where memlint is started")
        };
        let is_flag = matches!(origin, config::SetBy::Flag(_));
        Notice {
            kind: Matter::UnusedPathMap,
            // A configuration may serve several programs.
            severity: if is_flag { Severity::Warning } else { Severity::Info },
            message: format!("the path map `{shown}` ({origin}) maps nothing: {why}"),
            help: help.to_owned(),
            location: None,
        }
    })
}

impl Reporting {
    /// The files that are written.
    pub(super) fn written(&self) -> Vec<&Path> {
        self.output_file.iter().map(|output| output.path.as_path()).collect()
    }

    /// Whether somebody wants to look at it.
    pub(super) fn draws(&self) -> bool {
        let formats = self.output_file.iter().map(|output| output.format);
        formats.chain([self.output_format]).any(|format| format == Format::Html)
    }

    fn detail(&self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Quiet,
            (_, true) => Detail::Verbose,
            _ => Detail::Normal,
        }
    }
}

/// Writes a report wherever it is wanted; the exit status.
pub(super) fn tell(
    reporting: &Reporting,
    report: &Report,
    files: &SourceMap,
    color: Color,
) -> Result<ExitCode, CliError> {
    write(reporting, report, files, color)?;
    Ok(exit(reporting, report, color))
}

/// Takes out of the verdict what somebody said is meant.
fn suppress(report: &mut Report, settings: &Settings, files: &SourceMap) {
    let Settings { ignores, selection, .. } = settings;
    Suppressions { ignores, selection, today: today() }.apply(report, files);
}

/// The day, in UTC. By a clock that shows none no suppression has ended.
fn today() -> Date {
    let now = Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    now.to_zoned(TimeZone::UTC).date()
}

/// The exit status; why there is no verdict goes to standard error, whatever became of standard output.
fn exit(reporting: &Reporting, report: &Report, color: Color) -> ExitCode {
    let error = match report.verdict.outcome() {
        Outcome::NoVerdict(why) => no_verdict(report, why),
        _ if reporting.exit_zero => return ExitCode::SUCCESS,
        Outcome::Closed => return ExitCode::FAILURE,
        Outcome::Open => return ExitCode::SUCCESS,
    };
    terminal::show_error(&error, color);
    // A file of which nothing is known is no finding that somebody could put up with.
    let excused = reporting.exit_zero && report.unread.is_empty();
    if excused { ExitCode::SUCCESS } else { ExitCode::from(NO_VERDICT) }
}

/// Why there is no verdict, in words.
pub(super) fn no_verdict(report: &Report, why: Why) -> CliError {
    let (blind, recordings) = (report.blind_rules(), report.recordings.len());
    let unseen = || report.notices.iter().find_map(|notice| Some((notice.unseen()?, notice.help.clone())));
    let what = if recordings > 1 { "all of the recordings" } else { "the recording" };
    let remedy =
        report.most_hidden().map_or("check all ranks together, or select other rules", Hidden::remedy);
    match why {
        Why::Strict if blind.is_empty() => {
            let (what, remedy) = unseen().unwrap_or_default();
            CliError::LeftOut { what, remedy }
        }
        Why::Strict => {
            let rules = format!("{} of {} ({})", blind.len(), count(report.asked(), "rule"), some_of(&blind));
            CliError::Blind { rules, what, remedy }
        }
        Why::Unjudged => CliError::Unjudged { remedy },
        Why::Unread => {
            let unread = report.unread.len();
            CliError::Unread { unread, files: count(unread + recordings, "file") }
        }
    }
}

/// Examines an input. One in which nothing was recorded and whose state shows no fault either is refused: there is nothing to report of it.
pub(super) fn examine(input: &Input, plan: &Plan) -> Result<Examination, CliError> {
    let examination = engine::examine(input, plan);
    if examination.findings.is_empty() {
        refuse_without_history(input)?;
    }
    Ok(examination)
}

/// Files first: whoever reads standard output until its end finds them complete.
pub(super) fn write(
    reporting: &Reporting,
    report: &Report,
    files: &SourceMap,
    color: Color,
) -> Result<(), CliError> {
    let plain = Look { detail: reporting.detail(), ..Look::PLAIN };
    for output in &reporting.output_file {
        file::replace(&output.path, |out| output.format.write(report, files, &plain, out))?;
    }
    let look = terminal::look(color, reporting.detail());
    print(|out| reporting.output_format.write(report, files, &look, out))
}

/// Tells whoever reads the files later that there is no verdict: an older report must not pass for this one's. A program that reads
/// standard output is told there, too; a person reads the error.
pub(super) fn write_failure(reporting: &Reporting, error: &CliError) {
    if matches!(error, CliError::OutputTaken { .. }) {
        return;
    }
    let help = error.help().map(|help| help.to_string());
    let failure = VerdictFailure { message: error.to_string(), help };
    for output in &reporting.output_file {
        // The error itself is being reported; that a file cannot even say so adds nothing to it.
        let _ = file::replace(&output.path, |out| output.format.write_failure(&failure, out));
    }
    if !reporting.output_format.is_read_beside_errors() && !matches!(error, CliError::Output { .. }) {
        // A reader that left hears nothing either way.
        let _ = print(|out| reporting.output_format.write_failure(&failure, out));
    }
}
