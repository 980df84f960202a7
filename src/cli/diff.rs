//! `memlint diff`: two recordings side by side, without a verdict.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice;

use clap::{ArgMatches, Args};

use super::arguments::{Color, Limits, Locating, PlainFormat, Reading};
use super::check::refuse_what_cannot_be_compared;
use super::counterpart::{Place, counterpart};
use super::error::CliError;
use super::pages::Pages;
use super::reading::{read_of, say_left_out, source_map, sources};
use super::terminal;
use crate::comparison::{Comparison, Measured, Side};
use crate::config::Settings;
use crate::engine::{self, Plan, Report};
use crate::input::{self, Expansion, Origin, Source};
use crate::report::{Detail, diff};
use crate::source::{self, SourceMap};
use crate::unit::shown_name;

#[derive(Debug, Args)]
#[command(
    after_help = "Iterations are compared by their number, as far as both recordings go. A difference within what the \
                        iterations of one recording differ by is no change. Ranks are compared with the same ranks, a page \
                        each; json is then an array of documents.\n\n\
                        Exit status: 0 compared, 2 not all compared."
)]
pub(super) struct Diff {
    /// The snapshot to compare with; or a folder or a quoted pattern, for a snapshot of each rank. Any may be an address (s3, gs,
    /// az, https).
    #[arg(value_name = "BASE")]
    base: PathBuf,

    /// What to compare, likewise; one of the two may be `-`, standard input.
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
    if [&arguments.base, &arguments.head].into_iter().all(|path| Source::named(path) == Source::Stdin) {
        return Err(CliError::StdinTwice);
    }
    let (base, head) = (Recordings::of(&arguments.base)?, Recordings::of(&arguments.head)?);
    let sources: Vec<Source> = base.sources.iter().chain(&head.sources).cloned().collect();
    let files = source_map(&settings.source_roots, &settings.path_map, &sources)?;
    let plan = Plan::of(&settings);
    let examining = Examining { limits: &arguments.reading.limits, files: &files, plan: &plan };
    let mut pages = Pages::of(
        arguments.output_format,
        color,
        &[slice::from_ref(&arguments.base), slice::from_ref(&arguments.head)],
        &[&base.sources, &head.sources],
    );
    let pairs = head.paired_with(&base);
    base.say_what_is_left(&pairs);
    // The last of the base, which is the only one where it stands for all.
    let mut before: Option<(usize, Examined)> = None;
    for (after, pair) in head.each().zip(pairs) {
        let Some((at, of_base)) = pair.and_then(|at| Some((at, base.each().nth(at)?))) else {
            pages.fail(CliError::Unpaired { name: after.0.name(), base: base.name.clone() })?;
            continue;
        };
        let known = before
            .take()
            .filter(|(known, _)| *known == at)
            .map_or_else(|| examining.examine(of_base), |(_, known)| Ok(known));
        match known.and_then(|base| Ok((base, examining.examine(after)?))) {
            Ok((base, head)) => {
                let comparison = Comparison::of(base.side(), head.side());
                pages.add(|out| write(arguments, &comparison, color, out))?;
                before = Some((at, base));
            }
            Err(error) => pages.fail(error)?,
        }
    }
    pages.end()
}

fn write(arguments: &Diff, comparison: &Comparison, color: Color, out: &mut dyn Write) -> io::Result<()> {
    let detail = match (arguments.quiet, arguments.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    match arguments.output_format {
        PlainFormat::Text => {
            out.write_all(diff::render(comparison, &terminal::look(color, detail)).as_bytes())
        }
        PlainFormat::Json => diff::json(comparison, out),
    }
}

/// The recordings of one side.
struct Recordings {
    /// As it is named on the command line.
    name: String,
    sources: Vec<Source>,
    origins: Vec<Origin>,
}

impl Recordings {
    fn of(path: &Path) -> Result<Recordings, CliError> {
        let Expansion { sources, left_out } = sources(&[path.to_owned()])?;
        say_left_out(&left_out);
        Ok(Recordings { name: Source::named(path).name(), origins: input::origins(&sources), sources })
    }

    fn each(&self) -> impl Iterator<Item = (&Source, &Origin)> {
        self.sources.iter().zip(&self.origins)
    }

    fn places(&self) -> Vec<Place<'_>> {
        self.origins.iter().map(|one| Place { rank: one.rank, moment: &one.moment }).collect()
    }

    /// For each recording the position of that in the base with which it is compared.
    fn paired_with(&self, base: &Recordings) -> Vec<Option<usize>> {
        let (own, base) = (self.places(), base.places());
        own.iter().enumerate().map(|(at, one)| counterpart(&base, *one, at, own.len())).collect()
    }

    /// Says on standard error what nothing is compared with: a rank that is only in the base.
    fn say_what_is_left(&self, taken: &[Option<usize>]) {
        for (at, source) in self.sources.iter().enumerate() {
            if !taken.contains(&Some(at)) {
                let name = shown_name(&source.name());
                terminal::say(&format!("warning: nothing was compared with `{name}` of the base"));
            }
        }
    }
}

/// What is left of a recording when it was read: its memory, and what the rules say of it.
struct Examined {
    measured: Measured,
    report: Report,
}

impl Examined {
    fn side(&self) -> Side<'_> {
        Side { measured: &self.measured, report: &self.report }
    }
}

/// How recordings are read.
struct Examining<'a> {
    limits: &'a Limits,
    files: &'a SourceMap,
    plan: &'a Plan<'a>,
}

impl Examining<'_> {
    /// Reads one recording. The snapshot itself goes.
    fn examine(&self, (source, origin): (&Source, &Origin)) -> Result<Examined, CliError> {
        let input = read_of(source, origin, self.limits)?;
        refuse_what_cannot_be_compared(&input)?;
        let measured = Measured::of(&input);
        let examined = vec![engine::examine(&input, self.plan)];
        let mut report = engine::conclude(examined, Vec::new(), self.plan);
        let files = self.files.seen_by(&report.recordings);
        source::settle(&mut report, &files);
        Ok(Examined { measured, report })
    }
}
