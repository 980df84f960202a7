//! `memlint diff`: two recordings side by side, without a verdict.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::slice;

use clap::ArgMatches;

use super::arguments::{Color, Diff, Limits, PlainFormat};
use super::counterpart::{Identity, counterpart};
use super::error::CliError;
use super::pages::Pages;
use super::reading::{self, read_of, say_left_out, source_map, sources};
use super::required::refuse_what_cannot_be_compared;
use super::{crew, terminal};
use crate::comparison::{Comparison, Measured, Side};
use crate::config::Settings;
use crate::engine::{self, Examination, Plan, Report};
use crate::input::{self, Expansion, Origin, Source};
use crate::report::{Detail, Look, diff, json};
use crate::source::{self, SourceMap};
use crate::unit::{count, shown_name};

/// Pairs that are examined before the first of them is told of: as many as keep the processors of a large machine busy.
const AT_ONCE: usize = 128;
/// Snapshots that are named of those that nothing is compared with.
const MOST_LEFT: usize = 8;

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
    let mut pages = Pages::of(
        arguments.output_format,
        color,
        &[slice::from_ref(&arguments.base), slice::from_ref(&arguments.head)],
        &[&base.sources, &head.sources],
    );
    let pairs = head.paired_with(&base);
    base.say_what_is_left(&pairs, arguments.verbose);
    let detail = match (arguments.quiet, arguments.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    let look = terminal::look(color, detail);
    let gathers = arguments.output_format == PlainFormat::Text && !arguments.verbose;
    let mut gathered = Vec::new();
    let pairs: Vec<_> = head.each().zip(pairs).collect();
    let reader = Reader { limits: &arguments.reading.limits, plan: &plan, base: &base };
    let comparing = Comparing { reader, files: &files };
    comparing.each(&pairs, |(_, origin), outcome| match outcome {
        Ok(comparison) if gathers => {
            gathered.push(diff::Ranked { origin: origin.clone(), comparison });
            Ok(())
        }
        Ok(comparison) => pages.add(|out| write(arguments.output_format, &comparison, &look, out)),
        Err(error) => pages.fail(error),
    })?;
    for page in diff::of_ranks(&gathered, &look) {
        pages.add(|out| out.write_all(page.as_bytes()))?;
    }
    pages.end()
}

fn write(format: PlainFormat, comparison: &Comparison, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match format {
        PlainFormat::Text => out.write_all(diff::render(comparison, look).as_bytes()),
        PlainFormat::Json => json::diff(comparison, out),
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

    fn at(&self, position: usize) -> Option<(&Source, &Origin)> {
        self.sources.get(position).zip(self.origins.get(position))
    }

    fn places(&self) -> Vec<Identity<'_>> {
        self.origins.iter().map(|one| Identity { rank: one.rank, moment: &one.moment }).collect()
    }

    /// For each recording the position of that in the base with which it is compared.
    fn paired_with(&self, base: &Recordings) -> Vec<Option<usize>> {
        let (own, base) = (self.places(), base.places());
        own.iter().enumerate().map(|(at, one)| counterpart(&base, *one, at, own.len())).collect()
    }

    /// Says on standard error what nothing is compared with: a rank that is only in the base.
    fn say_what_is_left(&self, taken: &[Option<usize>], all: bool) {
        let taken: BTreeSet<usize> = taken.iter().flatten().copied().collect();
        let left: Vec<&Source> = self
            .sources
            .iter()
            .enumerate()
            .filter(|(at, _)| !taken.contains(at))
            .map(|(_, one)| one)
            .collect();
        let most = if all { left.len() } else { MOST_LEFT };
        for source in left.iter().take(most) {
            let name = shown_name(&source.name());
            terminal::say(&format!("warning: nothing was compared with `{name}` of the base"));
        }
        if left.len() > most {
            let more = count(left.len() - most, "more snapshot");
            terminal::say(&format!("warning: nor with {more} of the base; -v names them"));
        }
    }
}

/// What is left of a recording when it was read: its memory, and what the rules say of it before sources are asked.
struct ExaminedRecording {
    measured: Measured,
    examination: Examination,
}

/// A recording of the head, and the position of that in the base with which it is compared.
type Pair<'a> = ((&'a Source, &'a Origin), Option<usize>);

/// How recordings are read.
struct Reader<'a> {
    limits: &'a Limits,
    plan: &'a Plan<'a>,
    base: &'a Recordings,
}

impl Reader<'_> {
    /// The head of a pair, and its base where that is not known.
    fn examine_both(
        &self,
        (head, at): Pair,
        base_is_known: bool,
    ) -> Result<(Option<ExaminedRecording>, ExaminedRecording), CliError> {
        let Some(base) = at.and_then(|at| self.base.at(at)) else {
            return Err(CliError::Unpaired { name: head.0.name(), base: self.base.name.clone() });
        };
        let base = if base_is_known { None } else { Some(self.examine(base)?) };
        Ok((base, self.examine(head)?))
    }

    /// Reads one recording. The snapshot itself goes.
    fn examine(&self, (source, origin): (&Source, &Origin)) -> Result<ExaminedRecording, CliError> {
        let input = read_of(source, origin, self.limits)?;
        refuse_what_cannot_be_compared(&input)?;
        Ok(ExaminedRecording {
            measured: Measured::of(&input),
            examination: engine::examine(&input, self.plan),
        })
    }
}

/// How recordings are compared.
struct Comparing<'a> {
    reader: Reader<'a>,
    files: &'a SourceMap,
}

impl Comparing<'_> {
    /// Compares pairs, a few at a time, and tells of each in their order. Neither snapshots nor more than [`AT_ONCE`] of what
    /// is left of them are held.
    fn each(
        &self,
        pairs: &[Pair],
        mut tell: impl FnMut((&Source, &Origin), Result<Comparison, CliError>) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let Comparing { reader, .. } = self;
        // A base that stands for all is read once.
        let shared = match reader.base.sources.as_slice() {
            [_] if pairs.len() > 1 => reader.base.at(0),
            _ => None,
        };
        let shared = shared.map(|one| reader.examine(one)).transpose()?.map(|one| self.concluded(one));
        let is_shared = shared.is_some();
        for some in pairs.chunks(AT_ONCE) {
            let weigh = |(head, at): &Pair| {
                let base = at.and_then(|at| reader.base.sources.get(at)).filter(|_| !is_shared);
                reading::weight(head.0).saturating_add(base.map_or(0, reading::weight))
            };
            let Ok(examined) = crew::work(some, weigh, reading::bounds(None), |_, pair| {
                Ok::<_, Infallible>(reader.examine_both(*pair, is_shared))
            });
            for ((head, _), outcome) in some.iter().zip(examined) {
                tell(*head, outcome.map(|(base, head)| self.compare(base, shared.as_ref(), head)))?;
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        base: Option<ExaminedRecording>,
        shared: Option<&(Measured, Report)>,
        head: ExaminedRecording,
    ) -> Comparison {
        let own = base.map(|base| self.concluded(base));
        let head = self.concluded(head);
        let (measured, report) = &head;
        let of_head = Side { measured, report };
        // One of the two is there: what is not shared was examined.
        let of_base = own.as_ref().or(shared).map_or(of_head, |(measured, report)| Side { measured, report });
        Comparison::of(of_base, of_head)
    }

    /// What the rules say of a recording, by its sources.
    fn concluded(
        &self,
        ExaminedRecording { measured, examination }: ExaminedRecording,
    ) -> (Measured, Report) {
        let mut report = engine::conclude(vec![examination], Vec::new(), self.reader.plan);
        let files = self.files.seen_by(&report.recordings);
        source::settle(&mut report, &files);
        (measured, report)
    }
}
