//! `memlint stats`: what snapshots or profilers' timelines hold, without a verdict.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, PlainFormat, Stats};
use super::error::CliError;
use super::pages::Pages;
use super::reading::{Shown, each_of_any, read_any, say_left_out, source_map, sources};
use super::terminal;
use crate::config::Settings;
use crate::engine::{Closer, Input, Recording};
use crate::input::{self, Expansion, Origin, Source};
use crate::profiler::ProfilerTimeline;
use crate::report::{Detail, Look, crowd, json, profiler, stats};
use crate::source::SourceMap;

pub(super) fn run(arguments: &Stats, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let configuration = arguments.locating.configuration(matches)?;
    let settings = Settings::of(configuration, arguments.reading.sources.overrides())?;
    let Expansion { sources, left_out } = sources(&arguments.paths)?;
    let files = source_map(&settings.source_roots, &settings.path_map, &sources)?;
    say_left_out(&left_out);
    let pages = Pages::of(arguments.output_format, color, &[&arguments.paths], &[&sources]);
    let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
    let showing = Showing { arguments, look: terminal::look(color, detail), files, pages };
    if arguments.output_format == PlainFormat::Text && !arguments.verbose {
        showing.together(&sources)
    } else {
        showing.one_by_one(&sources)
    }
}

/// What is left of a recording for its page.
enum PageMatter {
    Snapshot(Box<Recording>, Vec<Closer>),
    /// A timeline's page itself.
    Timeline(String),
}

struct Showing<'a> {
    arguments: &'a Stats,
    look: Look,
    files: SourceMap,
    pages: Pages,
}

impl Showing<'_> {
    /// All of them, for people: ranks that are alike are told as one.
    fn together(mut self, sources: &[Source]) -> Result<ExitCode, CliError> {
        let look = self.look;
        let (mut recordings, mut closer, mut timelines) = (Vec::new(), Vec::new(), Vec::new());
        let keep = |source: &Source, _: &Origin, shown| match shown {
            Shown::Snapshot(input) => PageMatter::Snapshot(Box::new(input.recording()), Closer::all(&input)),
            Shown::Timeline(timeline) => {
                PageMatter::Timeline(profiler::render(&source.name(), &timeline, &look))
            }
        };
        for outcome in each_of_any(sources, &self.arguments.reading.limits, keep) {
            match outcome {
                Ok(PageMatter::Snapshot(recording, of_devices)) => {
                    recordings.push(*recording);
                    closer.push(of_devices);
                }
                Ok(PageMatter::Timeline(page)) => timelines.push(page),
                Err(error) => self.pages.fail(error)?,
            }
        }
        let pages = crowd::render(recordings, &closer, &self.files, &look);
        for page in pages.into_iter().chain(timelines) {
            self.pages.add(|out| out.write_all(page.as_bytes()))?;
        }
        self.pages.end()
    }

    /// One after the other: none has to be held while the next is read.
    fn one_by_one(mut self, sources: &[Source]) -> Result<ExitCode, CliError> {
        for (source, origin) in sources.iter().zip(input::origins(sources)) {
            match read_any(source, &origin, &self.arguments.reading.limits) {
                Ok(Shown::Snapshot(input)) => self.snapshot(&input),
                Ok(Shown::Timeline(timeline)) => self.timeline(source, &origin, &timeline),
                Err(error) => self.pages.fail(error),
            }?;
        }
        self.pages.end()
    }

    fn snapshot(&mut self, input: &Input) -> Result<(), CliError> {
        let Showing { arguments, look, files, pages } = self;
        let (recording, closer) = (input.recording(), Closer::all(input));
        let files = &files.seen_by([&recording]);
        pages.add(|out| match arguments.output_format {
            PlainFormat::Text => out.write_all(stats::render(&recording, &closer, files, look).as_bytes()),
            PlainFormat::Json => json::stats(input, &closer, files, arguments.allocations, out),
        })
    }

    fn timeline(
        &mut self,
        source: &Source,
        origin: &Origin,
        timeline: &ProfilerTimeline,
    ) -> Result<(), CliError> {
        let Showing { arguments, look, pages, .. } = self;
        pages.add(|out| match arguments.output_format {
            PlainFormat::Text => out.write_all(profiler::render(&source.name(), timeline, look).as_bytes()),
            PlainFormat::Json => json::profiler(&source.name(), origin.rank, timeline, out),
        })
    }
}
