//! Snapshots, timelines and sources, as the command line names them.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::env;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use miette::Diagnostic;

use super::arguments::Limits;
use super::crew::{self, CrewBounds};
use super::error::CliError;
use super::progress::Progress;
use super::terminal;
use crate::config::{PathMapping, Setting};
use crate::engine::{Input, Unread};
use crate::finding::{Matter, Notice, Severity};
use crate::input::{self, Content, Expansion, InputError, LeftOut, Origin, Source, Stream};
use crate::profiler::ProfilerTimeline;
use crate::snapshot::Snapshot;
use crate::source::{Checkout, PathMap, SourceMap};
use crate::unit::{count, shown_name};

/// About how many bytes of pickles are read at a time where there are several: the tables of a snapshot take about half of
/// its bytes (benches/reader.rs), and a job of large ones should not need more memory than the largest alone. A larger snapshot
/// is read alone.
const UNDER_WAY: u64 = 2 << 30;

/// Paths that are listed of those that were not looked at.
const MOST_LISTED: usize = 8;

/// The snapshots that some paths stand for, each once, in the order in which they are named.
pub(super) fn sources(paths: &[PathBuf]) -> Result<Expansion, InputError> {
    let mut all = Expansion::default();
    let mut known = BTreeSet::new();
    for path in paths {
        let Expansion { sources, left_out } = Source::named(path).expand()?;
        all.sources.extend(sources.into_iter().filter(|source| known.insert(source.clone())));
        all.left_out.extend(left_out);
    }
    // What one path leaves out another may name.
    let is_named = |path: &Path| all.sources.contains(&Source::named(path));
    all.left_out.retain(|one| !is_named(&one.path));
    all.left_out.sort();
    all.left_out.dedup();
    Ok(all)
}

/// Reads snapshots, a few at a time, and keeps what `look` makes of each. The outcome does not depend on how many at a
/// time: it is in the order of the sources, and so is the first failure.
pub(super) fn read_all<R: Send>(
    sources: &[Source],
    limits: &Limits,
    jobs: Option<NonZeroUsize>,
    look: impl Fn(&Input) -> Result<R, CliError> + Sync,
) -> Result<Vec<R>, CliError> {
    read_with_each(sources, limits, jobs, look, |outcome, _| outcome)
}

/// What came of several snapshots, both in the order of the sources.
pub(super) struct ReadOutcomes<R> {
    pub(super) good: Vec<R>,
    pub(super) unread: Vec<Unread>,
}

/// Like [`read_all`], but what is wrong with some of several does not hide what came of the others: after memory ran out,
/// files that were half written are usual. What is wrong with one alone is an error.
pub(super) fn read_each<R: Send>(
    sources: &[Source],
    limits: &Limits,
    jobs: Option<NonZeroUsize>,
    look: impl Fn(&Input) -> Result<R, CliError> + Sync,
) -> Result<ReadOutcomes<R>, CliError> {
    if sources.len() <= 1 {
        return Ok(ReadOutcomes { good: read_all(sources, limits, jobs, look)?, unread: Vec::new() });
    }
    let told = |outcome: Result<R, CliError>, (source, origin): &(&Source, Origin)| {
        Ok::<_, Infallible>(outcome.map_err(|error| unread(source, origin, &error)))
    };
    let Ok(outcomes) = read_with_each(sources, limits, jobs, look, told);
    let mut seen = ReadOutcomes { good: Vec::new(), unread: Vec::new() };
    for outcome in outcomes {
        match outcome {
            Ok(good) => seen.good.push(good),
            Err(unread) => seen.unread.push(unread),
        }
    }
    Ok(seen)
}

fn unread(source: &Source, origin: &Origin, error: &CliError) -> Unread {
    Unread {
        name: source.name(),
        rank: origin.rank,
        job: origin.job.clone(),
        message: error.to_string(),
        help: error.help().map(|help| help.to_string()),
    }
}

/// Reads snapshots; `tell` says of each outcome whether to go on.
fn read_with_each<R, S: Send, E: Send>(
    sources: &[Source],
    limits: &Limits,
    jobs: Option<NonZeroUsize>,
    look: impl Fn(&Input) -> Result<R, CliError> + Sync,
    tell: impl Fn(Result<R, CliError>, &(&Source, Origin)) -> Result<S, E> + Sync,
) -> Result<Vec<S>, E> {
    let origins = input::origins(sources);
    let items: Vec<(&Source, Origin)> = sources.iter().zip(origins).collect();
    let names: Vec<String> = sources.iter().map(Source::name).collect();
    let progress = Progress::of_several(names.iter().map(String::as_str));
    crew::work(
        &items,
        |(source, _)| weight(source),
        bounds(jobs),
        |_, item| {
            let (source, origin) = item;
            let seen = read_with(source, limits, &progress)
                .and_then(|snapshot| look(&understood(source, origin, snapshot)));
            progress.one_is_done();
            tell(seen, item)
        },
    )
}

/// How many are read at a time.
pub(super) fn bounds(jobs: Option<NonZeroUsize>) -> CrewBounds {
    let jobs = jobs.or_else(|| thread::available_parallelism().ok());
    CrewBounds { hands: jobs.map_or(1, NonZeroUsize::get), weight: UNDER_WAY }
}

/// What reading a snapshot counts for among those that are read at a time.
pub(super) fn weight(source: &Source) -> u64 {
    source.bulk().unwrap_or(u64::MAX)
}

/// What `look` makes of each of several snapshots or timelines, a few at a time, in the order of the sources.
pub(super) fn each_of_any<R: Send>(
    sources: &[Source],
    limits: &Limits,
    look: impl Fn(&Source, &Origin, Shown) -> R + Sync,
) -> Vec<Result<R, CliError>> {
    let items: Vec<(&Source, Origin)> = sources.iter().zip(input::origins(sources)).collect();
    let names: Vec<String> = sources.iter().map(Source::name).collect();
    let progress = Progress::of_several(names.iter().map(String::as_str));
    let Ok(seen) = crew::work(
        &items,
        |(source, _)| weight(source),
        bounds(None),
        |_, (source, origin)| {
            let shown = read_any_with(source, origin, limits, &progress);
            progress.one_is_done();
            Ok::<_, Infallible>(shown.map(|shown| look(source, origin, shown)))
        },
    );
    seen
}

/// Reads and understands one snapshot.
pub(super) fn read(source: &Source, limits: &Limits) -> Result<Input, CliError> {
    let origin = input::origins(std::slice::from_ref(source)).into_iter().next().unwrap_or_default();
    read_of(source, &origin, limits)
}

/// Reads and understands one snapshot of several, of which `origin` was told by the names of all.
pub(super) fn read_of(source: &Source, origin: &Origin, limits: &Limits) -> Result<Input, CliError> {
    Ok(understood(source, origin, read_snapshot(source, limits)?))
}

fn understood(source: &Source, origin: &Origin, snapshot: Snapshot) -> Input {
    Input { origin: origin.clone(), ..Input::of(source.name(), snapshot) }
}

/// Says what looks like a snapshot and was left out.
pub(super) fn not_looked_at(left_out: &[LeftOut]) -> Option<Notice> {
    let first = left_out
        .iter()
        .take(MOST_LISTED)
        .map(|LeftOut { path, kind }| format!("`{}` ({kind})", shown_name(&path.display().to_string())));
    let mut listed: Vec<String> = first.collect();
    if left_out.len() > MOST_LISTED {
        listed.push(format!("{} more", left_out.len() - MOST_LISTED));
    }
    let verb = if left_out.len() == 1 { "was" } else { "were" };
    (!left_out.is_empty()).then(|| Notice {
        kind: Matter::LeftOut,
        severity: Severity::Warning,
        message: format!("{} {verb} not looked at: {}", count(left_out.len(), "path"), listed.join(", ")),
        help: "name what belongs to the job, and move away what does not".to_owned(),
        location: None,
    })
}

/// Says on standard error what looks like a snapshot and was left out.
pub(super) fn say_left_out(left_out: &[LeftOut]) {
    if let Some(notice) = not_looked_at(left_out) {
        terminal::say(&format!("{}: {}; {}", notice.severity.name(), notice.message, notice.help));
    }
}

/// What `memlint stats` can show.
pub(super) enum Shown {
    Snapshot(Box<Input>),
    Timeline(Box<ProfilerTimeline>),
}

/// Reads a snapshot or a profiler's timeline.
pub(super) fn read_any(source: &Source, origin: &Origin, limits: &Limits) -> Result<Shown, CliError> {
    read_any_with(source, origin, limits, &Progress::of_one(&source.name()))
}

fn read_any_with(
    source: &Source,
    origin: &Origin,
    limits: &Limits,
    progress: &Progress,
) -> Result<Shown, CliError> {
    match source.open_any(&limits.of_input())? {
        Content::Snapshot(stream) => {
            let snapshot = snapshot_in(stream, source, limits, progress)?;
            Ok(Shown::Snapshot(Box::new(understood(source, origin, snapshot))))
        }
        Content::Timeline(mut stream) => {
            let read = ProfilerTimeline::read(progress.of_bytes(&mut stream), limits.of_pickle().nodes);
            let timeline = read.map_err(|error| match stream.into_failure() {
                Some(failure) => CliError::Input(failure),
                None => CliError::Profiler { name: source.name(), error },
            })?;
            Ok(Shown::Timeline(Box::new(timeline)))
        }
    }
}

/// Reads one snapshot.
pub(super) fn read_snapshot(source: &Source, limits: &Limits) -> Result<Snapshot, CliError> {
    read_with(source, limits, &Progress::of_one(&source.name()))
}

fn read_with(source: &Source, limits: &Limits, progress: &Progress) -> Result<Snapshot, CliError> {
    snapshot_in(source.open(&limits.of_input())?, source, limits, progress)
}

fn snapshot_in(
    mut stream: Stream,
    source: &Source,
    limits: &Limits,
    progress: &Progress,
) -> Result<Snapshot, CliError> {
    let read = Snapshot::read(progress.of_bytes(&mut stream), &limits.of_pickle());
    read.map_err(|error| match stream.into_failure() {
        Some(failure) => CliError::Input(failure),
        None => CliError::Snapshot { name: source.name(), error },
    })
}

/// Where the program's source is looked for.
pub(super) fn source_map(
    roots: &[Setting<PathBuf>],
    maps: &[Setting<PathMapping>],
    snapshots: &[Source],
) -> Result<SourceMap, CliError> {
    if let Some(root) = roots.iter().find(|root| !root.value.is_dir()) {
        let (name, origin) = (root.value.display().to_string(), root.origin.to_string());
        return Err(CliError::NoSourceRoot { name, origin });
    }
    let map = |map: &Setting<PathMapping>| PathMap { from: map.value.from.clone(), to: map.value.to.clone() };
    let maps = maps.iter().map(map).collect();
    let checkout = env::current_dir().map(|folder| Checkout::around(&folder)).unwrap_or_default();
    if !roots.is_empty() {
        return Ok(SourceMap::new(roots.iter().map(|root| root.value.clone()), maps).within(checkout));
    }
    let folders = snapshots.iter().filter_map(|snapshot| match snapshot {
        Source::File(path) => path.parent().map(Path::to_owned),
        Source::Stdin | Source::Remote(_) => None,
    });
    Ok(SourceMap::unasked(checkout, folders, maps))
}
