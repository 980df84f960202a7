//! That there is no verdict, and why: what a file gets instead of a report, so that nobody takes an older one for it; and
//! what is wrong with one file of several.

use crate::engine::Unread;

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictFailure {
    /// What went wrong: lower-case start, no final stop.
    pub message: String,
    /// What to do, where that is known.
    pub help: Option<String>,
}

impl VerdictFailure {
    /// What is wrong with a file.
    pub(super) fn of_file(unread: &Unread) -> VerdictFailure {
        VerdictFailure { message: unread.message.clone(), help: unread.help.clone() }
    }

    /// `message; help`, on one line.
    pub(super) fn sentence(&self) -> String {
        match &self.help {
            None => self.message.clone(),
            Some(help) => format!("{}; {}", self.message, super::words::help_line(help)),
        }
    }
}
