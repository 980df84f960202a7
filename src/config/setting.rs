//! Values that know where they come from.

use std::fmt;
use std::sync::Arc;

/// A value, and who set it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Who set it.
    pub origin: SetBy,
}

/// Who set a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetBy {
    /// Nobody.
    Default,
    /// A line of the configuration, counted from 1.
    File {
        /// The file as messages name it.
        name: Arc<str>,
        /// The line.
        line: u32,
    },
    /// The environment.
    Environment(&'static str),
    /// The command line.
    Flag(&'static str),
}

impl<T> Setting<T> {
    /// A value that nobody set.
    pub const fn default(value: T) -> Setting<T> {
        Setting { value, origin: SetBy::Default }
    }

    /// A value of the command line.
    pub const fn flag(flag: &'static str, value: T) -> Setting<T> {
        Setting { value, origin: SetBy::Flag(flag) }
    }

    /// The same, of another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Setting<U> {
        Setting { value: change(self.value), origin: self.origin }
    }
}

impl fmt::Display for SetBy {
    /// `memlint.toml:7`, `--fail-on`, `MEMLINT_FAIL_ON`, `default`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetBy::Default => f.write_str("default"),
            SetBy::File { name, line } => write!(f, "{name}:{line}"),
            SetBy::Environment(word) | SetBy::Flag(word) => f.write_str(word),
        }
    }
}
