//! What is wrong with a baseline.

use miette::Diagnostic;
use thiserror::Error;

/// Why a file is no baseline that can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum BaselineError {
    /// Not JSON, or not of this shape.
    #[error("line {line} is not what a baseline holds: {problem}")]
    #[diagnostic(help("mend it, or write it anew with `--update-baseline` after moving it away"))]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// What the parser says.
        problem: String,
    },
    /// An entry that is not of this shape.
    #[error("entry {entry}, at line {line}, is not what a baseline holds: {problem}")]
    #[diagnostic(help("mend the entry, or take it out and write it anew with `--update-baseline`"))]
    Entry {
        /// Counted from 1.
        entry: usize,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// Two entries for one finding: a merge went wrong.
    #[error("entry {entry}, at line {line}, repeats entry {first}")]
    #[diagnostic(help("take one of them out: each entry covers a finding of its own"))]
    Repeated {
        /// Counted from 1.
        entry: usize,
        /// Its line, counted from 1.
        line: usize,
        /// The entry that it repeats.
        first: usize,
    },
    /// An entry of a rule that does not exist: what its fingerprint would cover, nobody can tell from it.
    #[error("entry {entry}, at line {line}, is of a rule that does not exist: `{rule}`")]
    #[diagnostic(help("mend the entry, or take it out and write it anew with `--update-baseline`; {hint}"))]
    UnknownRule {
        /// Counted from 1.
        entry: usize,
        /// Its line, counted from 1.
        line: usize,
        /// What is written there.
        rule: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// Written by a later memlint.
    #[error("it is of version {version}; this memlint knows version {known}")]
    #[diagnostic(help("use the memlint that wrote it, or a later one"))]
    Newer {
        /// As written.
        version: u64,
        /// The latest that is known.
        known: u64,
    },
}
