//! Whether a finding counts, and what a person should know of the judging itself.

use serde::{Deserialize, Serialize};

use super::{Location, Severity};

/// Whether a finding counts for the verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It counts.
    #[default]
    Open,
    /// Somebody said that it is meant, and why.
    Ignored {
        /// The words of whoever did.
        reason: String,
        /// Where: `train.py:17`, `memlint.toml:9`.
        by: String,
    },
    /// The baseline knows it, no smaller than it is now.
    Baselined,
    /// The recording that this one is held against has it, too, no smaller than it is now.
    Inherited,
}

/// Something about the judging that a person should know: a suppression that suppresses nothing, an entry of the baseline
/// that has gone. It counts for the verdict like a finding of its severity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// kebab-case: `unused-ignore`.
    pub kind: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter: lower-case start, no final stop.
    pub message: String,
    /// What to do, in the imperative.
    pub help: String,
    /// The line that says so: of a configuration, a baseline or a source file.
    pub location: Option<Location>,
}

impl Notice {
    /// Something that belongs to the input was not looked at: its [`kind`](Notice::kind).
    pub const LEFT_OUT: &'static str = "left-out";
    /// A rank of a job has no snapshot.
    pub const MISSING_RANK: &'static str = "missing-rank";
    /// Two recordings cannot be compared in full.
    pub const NOT_COMPARED: &'static str = "not-compared";
    /// A budget was measured nowhere.
    pub const UNMEASURED: &'static str = "unmeasured-budget";

    /// In which way not all was judged that was to be, where it says that something was not: lower-case start, no final stop.
    pub fn unseen(&self) -> Option<&'static str> {
        match self.kind {
            Notice::LEFT_OUT | Notice::MISSING_RANK => Some("not all snapshots were looked at"),
            Notice::NOT_COMPARED => Some("not all could be compared with the base"),
            Notice::UNMEASURED => Some("not all budgets could be measured"),
            _ => None,
        }
    }
}
