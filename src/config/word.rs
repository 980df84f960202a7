//! Closed sets of words: what may stand for a level, a metric, a role.

use super::error::Fault;
use crate::finding::Severity;
use crate::role::Role;
use crate::unit::{Confidence, suggestion};

/// Something that is written as one of a few words.
pub trait Word: Copy + 'static {
    /// What one of them is called: `level`.
    const WHAT: &'static str;
    /// All there are, in the order in which they are offered.
    const ALL: &'static [Self];

    /// How it is written.
    fn word(self) -> &'static str;

    /// What a word stands for.
    fn read(word: &str) -> Result<Self, Fault> {
        let found = Self::ALL.iter().copied().find(|one| one.word() == word);
        found.ok_or_else(|| Fault::UnknownWord {
            what: Self::WHAT,
            word: word.to_owned(),
            hint: suggestion(word, &format!("{}s", Self::WHAT), Self::ALL.iter().map(|one| one.word())),
        })
    }
}

/// What a rule's findings count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// At this severity.
    On(Severity),
    /// The rule does not run.
    Off,
}

/// The least severity that closes the gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailOn {
    /// Errors.
    #[default]
    Error,
    /// Warnings and errors.
    Warning,
    /// Any finding.
    Info,
    /// Nothing.
    Never,
}

impl FailOn {
    /// The least severity that counts.
    pub const fn severity(self) -> Option<Severity> {
        match self {
            FailOn::Error => Some(Severity::Error),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Info => Some(Severity::Info),
            FailOn::Never => None,
        }
    }
}

impl Word for Level {
    const WHAT: &'static str = "level";
    const ALL: &'static [Level] =
        &[Level::On(Severity::Error), Level::On(Severity::Warning), Level::On(Severity::Info), Level::Off];

    fn word(self) -> &'static str {
        match self {
            Level::On(severity) => severity.name(),
            Level::Off => "off",
        }
    }
}

impl Word for FailOn {
    const WHAT: &'static str = "threshold";
    const ALL: &'static [FailOn] = &[FailOn::Error, FailOn::Warning, FailOn::Info, FailOn::Never];

    fn word(self) -> &'static str {
        self.severity().map_or("never", Severity::name)
    }
}

impl Word for Confidence {
    const WHAT: &'static str = "confidence";
    const ALL: &'static [Confidence] = &Confidence::ALL;

    fn word(self) -> &'static str {
        self.name()
    }
}

impl Word for Role {
    const WHAT: &'static str = "role";
    const ALL: &'static [Role] = &Role::ALL;

    fn word(self) -> &'static str {
        self.name()
    }
}
