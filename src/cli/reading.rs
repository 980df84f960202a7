//! Snapshots, timelines and sources, as the command line names them.

use std::path::Path;

use super::arguments::{Limits, Reading};
use super::error::CliError;
use super::progress::Progress;
use crate::engine::Input;
use crate::input::{Content, Source, Stream};
use crate::profiler::ProfilerTimeline;
use crate::snapshot::Snapshot;
use crate::source::SourceMap;

/// Reads and understands one snapshot.
pub(super) fn read(source: &Source, reading: &Reading) -> Result<Input, CliError> {
    Ok(understood(source, read_snapshot(source, &reading.limits)?))
}

/// What `memlint stats` can show.
pub(super) enum Shown {
    Snapshot(Box<Input>),
    Timeline(Box<ProfilerTimeline>),
}

/// Reads a snapshot or a profiler's timeline.
pub(super) fn read_any(source: &Source, reading: &Reading) -> Result<Shown, CliError> {
    let limits = &reading.limits;
    match source.open_any(&limits.of_input())? {
        Content::Snapshot(stream) => {
            let snapshot = snapshot_in(stream, source, limits)?;
            Ok(Shown::Snapshot(Box::new(understood(source, snapshot))))
        }
        Content::Timeline(mut stream) => {
            let most = limits.of_pickle().nodes;
            let read = ProfilerTimeline::read(Progress::of(&mut stream, &source.name()), most);
            let timeline = read.map_err(|error| match stream.into_failure() {
                Some(failure) => CliError::Input(failure),
                None => CliError::Profiler { name: source.name(), error },
            })?;
            Ok(Shown::Timeline(Box::new(timeline)))
        }
    }
}

fn understood(source: &Source, snapshot: Snapshot) -> Input {
    Input { rank: source.rank(), ..Input::of(source.name(), snapshot) }
}

/// Reads one snapshot.
pub(super) fn read_snapshot(source: &Source, limits: &Limits) -> Result<Snapshot, CliError> {
    snapshot_in(source.open(&limits.of_input())?, source, limits)
}

fn snapshot_in(mut stream: Stream, source: &Source, limits: &Limits) -> Result<Snapshot, CliError> {
    let read = Snapshot::read(Progress::of(&mut stream, &source.name()), &limits.of_pickle());
    read.map_err(|error| match stream.into_failure() {
        Some(failure) => CliError::Input(failure),
        None => CliError::Snapshot { name: source.name(), error },
    })
}

/// Where the program's source is looked for.
pub(super) fn source_map(reading: &Reading, snapshots: &[Source]) -> SourceMap {
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
