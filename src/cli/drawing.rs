//! Pictures for a page: of a few recordings when they are examined, of many when all are judged, and only of those that the page
//! draws in full. So a page of a thousand ranks takes no more memory than a check of them.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use super::arguments::Limits;
use super::crew;
use super::error::CliError;
use super::reading::{bounds, read_of, weight};
use crate::engine::{self, Plan, Recording};
use crate::input::{Origin, Source};
use crate::picture::Room;
use crate::report::html;

/// Which recordings somebody wants to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pictures {
    None,
    /// Every one.
    All,
    /// What a page shows.
    Page,
}

impl Pictures {
    /// What is drawn while so many recordings are examined.
    pub(super) fn at_once(self, plan: Plan<'_>, recordings: usize) -> Plan<'_> {
        match self {
            Pictures::None => plan,
            Pictures::Page if html::chooses(recordings) => plan,
            Pictures::All | Pictures::Page => plan.drawing(Room::PAGE.shared_by(recordings)),
        }
    }

    /// Whether some of so many recordings are drawn when all are judged.
    pub(super) fn later(self, recordings: usize) -> bool {
        self == Pictures::Page && html::chooses(recordings)
    }
}

/// Draws some recordings, of which the files are read again.
///
/// # Errors
/// Where one cannot be read any more.
pub(super) fn draw(
    recordings: &mut [Recording],
    chosen: &BTreeSet<usize>,
    sources: &[Source],
    (limits, jobs): (&Limits, Option<NonZeroUsize>),
    plan: &Plan,
) -> Result<(), CliError> {
    let drawn = plan.clone().drawing(Room::PAGE.shared_by(sources.len()));
    let mut items: Vec<(&Source, &mut Recording)> = Vec::new();
    for (_, recording) in recordings.iter_mut().enumerate().filter(|(at, _)| chosen.contains(at)) {
        let source = sources.iter().find(|source| source.name() == recording.name);
        items.extend(source.map(|source| (source, recording)));
    }
    let read: Vec<(&Source, Origin)> = items
        .iter()
        .map(|(source, one)| {
            let Recording { rank, job, moment, .. } = &**one;
            (*source, Origin { job: job.clone(), rank: *rank, moment: moment.clone() })
        })
        .collect();
    let pictures = crew::work(
        &read,
        |(source, _)| weight(source),
        bounds(jobs),
        |_, (source, origin)| {
            let input = read_of(source, origin, limits)?;
            Ok::<_, CliError>(engine::examine(&input, &drawn).recording.pictures)
        },
    )?;
    for ((_, recording), pictures) in items.into_iter().zip(pictures) {
        recording.pictures = pictures;
    }
    Ok(())
}
