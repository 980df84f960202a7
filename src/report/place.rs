//! How a recorded line is named: by its local file where that was found, else as recorded.
//!
//! Lines are for people, and safe to print; the bare name is for programs, and exact.

use std::rc::Rc;

use super::paths::Root;
use crate::engine::RecordedDevice;
use crate::finding::Location;
use crate::source::{self, SourceFile, SourceMap, Spot};
use crate::unit::shown_name;

/// A line and its local file.
pub(super) struct SourceLine<'a> {
    pub(super) location: &'a Location,
    /// The line: where it is in the local file, or as recorded.
    pub(super) number: u32,
    pub(super) file: Option<Rc<SourceFile>>,
    /// Whether the location names a local file as it is.
    local: bool,
}

impl<'a> SourceLine<'a> {
    /// A recorded line.
    pub(super) fn of(location: &'a Location, sources: &SourceMap) -> SourceLine<'a> {
        let (number, file) = match sources.find(location) {
            Some(Spot { file, line, .. }) => (line, Some(file)),
            None => (location.line, None),
        };
        SourceLine { location, number, file, local: false }
    }

    /// A line of a file of this machine: of a configuration, a baseline, a program.
    pub(super) fn here(location: &'a Location) -> SourceLine<'a> {
        SourceLine { location, number: location.line, file: None, local: true }
    }

    /// The file's name, as it is.
    pub(super) fn name(&self) -> &str {
        self.file.as_ref().map_or(&self.location.file, |file| file.name())
    }

    /// The file as CI names it: from the root of the working copy if it lies there, else as it is.
    pub(super) fn address(&self, sources: &SourceMap) -> CiPath {
        let inside =
            if self.local || self.file.is_some() { sources.checkout().path(self.name()) } else { None };
        inside.map_or_else(|| CiPath::Elsewhere(self.name().to_owned()), CiPath::Inside)
    }

    /// The expression to mark, if the source is at hand and the expression begins on the recorded line.
    pub(super) fn region(&self) -> Option<Region> {
        let file = self.file.as_ref()?;
        let span = file.expression_at(self.number)?;
        let ((line, column), (end_line, end_column)) = (file.place(span.start), file.place(span.end));
        (line == self.number).then_some(Region { column, end_line, end_column })
    }

    /// `train.py:17`.
    pub(super) fn line(&self) -> String {
        format!("{}:{}", shown_name(self.name()), self.number)
    }

    /// `train.py:17 in main`.
    pub(super) fn line_and_function(&self) -> String {
        self.line_and_function_from(&Root::default())
    }

    /// `train.py:17`; the path of a file that is not here from a folder on.
    pub(super) fn line_from(&self, root: &Root) -> String {
        match &self.file {
            None => format!("{}:{}", shown_name(root.within(self.name())), self.number),
            Some(_) => self.line(),
        }
    }

    /// The same with the function.
    pub(super) fn line_and_function_from(&self, root: &Root) -> String {
        match self.location.function.as_str() {
            "" => self.line_from(root),
            function => format!("{} in {}", self.line_from(root), shown_name(function)),
        }
    }
}

/// Where CI finds a file.
pub(super) enum CiPath {
    /// In the working copy: the path from its root.
    Inside(String),
    /// Somewhere else, or nowhere: as found or as recorded.
    Elsewhere(String),
}

impl CiPath {
    /// The path, whichever it is.
    pub(super) fn into_path(self) -> String {
        match self {
            CiPath::Inside(path) | CiPath::Elsewhere(path) => path,
        }
    }
}

/// The expression at a line: columns count characters from 1, and the end stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) column: u32,
    pub(super) end_line: u32,
    pub(super) end_column: u32,
}

/// The program's main loop, at its header where the source is at hand.
pub(super) struct PlacedLoop {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) function: String,
    /// The loop in the source.
    pub(super) found: Option<(Rc<SourceFile>, source::SourceLoop)>,
}

impl PlacedLoop {
    pub(super) fn of(device: &RecordedDevice, sources: &SourceMap) -> Option<PlacedLoop> {
        let recorded = device.main_loop.as_ref()?;
        let place = SourceLine::of(&recorded.location, sources);
        let (file, line) = (place.name().to_owned(), place.number);
        let last = Location { line: recorded.last_line, ..recorded.location.clone() };
        let last = sources.find(&last).map_or(recorded.last_line, |spot| spot.line);
        // The stacks show the lines of the body that allocate; the header stands above them. A single line may as well
        // be the call of a library's loop: then a loop around it is another one, unless it begins just there.
        let begins = |file: &SourceFile, found: &source::SourceLoop| file.place(found.header.start).0;
        let several = last > line;
        let found = place.file.and_then(|file| {
            let found = file.loop_around(line, last)?;
            (several || begins(&file, &found) + 1 >= line).then_some((file, found))
        });
        let line = found.as_ref().map_or(line, |(file, found)| begins(file, found));
        Some(PlacedLoop { file, line, function: recorded.location.function.clone(), found })
    }
}
