//! How a recorded line is named: by its local file where that was found, else as recorded.
//!
//! Lines are for people, and safe to print; the bare name is for programs, and exact.

use std::rc::Rc;

use crate::engine::RecordedDevice;
use crate::finding::Location;
use crate::source::{self, SourceFile, SourceMap};
use crate::unit::shown_name;

/// A recorded line and its local file.
pub(super) struct Place<'a> {
    pub(super) location: &'a Location,
    pub(super) file: Option<Rc<SourceFile>>,
}

impl<'a> Place<'a> {
    pub(super) fn of(location: &'a Location, sources: &SourceMap) -> Place<'a> {
        Place { location, file: sources.find(&location.file, location.line, &location.function) }
    }

    /// The file's name, as it is.
    pub(super) fn name(&self) -> &str {
        self.file.as_ref().map_or(&self.location.file, |file| file.name())
    }

    /// `train.py:17`.
    pub(super) fn line(&self) -> String {
        format!("{}:{}", shown_name(self.name()), self.location.line)
    }

    /// `train.py:17 in main`.
    pub(super) fn line_and_function(&self) -> String {
        match self.location.function.as_str() {
            "" => self.line(),
            function => format!("{} in {}", self.line(), shown_name(function)),
        }
    }
}

/// The program's main loop, at its header where the source is at hand.
pub(super) struct MainLoop {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) function: String,
    /// The loop in the source.
    pub(super) found: Option<(Rc<SourceFile>, source::Loop)>,
}

impl MainLoop {
    pub(super) fn of(device: &RecordedDevice, sources: &SourceMap) -> Option<MainLoop> {
        let recorded = device.main_loop.as_ref()?;
        let line = recorded.location.line;
        let place = Place::of(&recorded.location, sources);
        let file = place.name().to_owned();
        // The stacks show the lines of the body that allocate; the header stands above them. A single line may as well
        // be the call of a library's loop: then a loop around it is another one, unless it begins just there.
        let begins = |file: &SourceFile, found: &source::Loop| file.place(found.header.start).0;
        let several = recorded.last_line > line;
        let found = place.file.and_then(|file| {
            let found = file.loop_around(line, recorded.last_line)?;
            (several || begins(&file, &found) + 1 >= line).then_some((file, found))
        });
        let line = found.as_ref().map_or(line, |(file, found)| begins(file, found));
        Some(MainLoop { file, line, function: recorded.location.function.clone(), found })
    }
}
