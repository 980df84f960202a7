//! Why a part cannot be read.

use miette::Diagnostic;

use super::TOOL;

/// Why a part cannot be read.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum PartError {
    /// Something else, or nothing.
    #[error("it is not what `memlint examine` writes")]
    #[diagnostic(help(
        "name files that `memlint examine SNAPSHOT -o FILE` has written; snapshots are for `memlint check`"
    ))]
    Other,
    /// Another version of the document or the program.
    #[error("it was examined by memlint {found}, and this is memlint {TOOL}")]
    #[diagnostic(help("examine all snapshots and conclude with one version"))]
    Version {
        /// Which one.
        found: String,
    },
    /// A part that breaks off or was changed.
    #[error("it is damaged: {what}")]
    #[diagnostic(help("copy it again, or examine the snapshot again"))]
    Damaged {
        /// What the reader says.
        what: String,
    },
    /// More than allowed.
    #[error("it holds more than {limit} bytes")]
    #[diagnostic(help("if you trust the file, raise the limit with `--max-bytes`"))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
}
