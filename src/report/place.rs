//! How a recorded line is named: by its local file where that was found, else as recorded.

use std::rc::Rc;

use crate::finding::Location;
use crate::source::{SourceFile, SourceMap};

/// A recorded line and its local file.
pub(super) struct Place<'a> {
    pub(super) location: &'a Location,
    pub(super) file: Option<Rc<SourceFile>>,
}

impl<'a> Place<'a> {
    pub(super) fn of(location: &'a Location, sources: &SourceMap) -> Place<'a> {
        Place { location, file: sources.find(&location.file, location.line, &location.function) }
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        self.file.as_ref().map_or(&self.location.file, |file| file.name())
    }

    /// `train.py:17`.
    pub(super) fn line(&self) -> String {
        format!("{}:{}", self.name(), self.location.line)
    }

    /// `train.py:17 in main`.
    pub(super) fn line_and_function(&self) -> String {
        match self.location.function.as_str() {
            "" => self.line(),
            function => format!("{} in {function}", self.line()),
        }
    }
}
