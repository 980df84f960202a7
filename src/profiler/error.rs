//! What can be wrong with a profiler's timeline.

use miette::Diagnostic;
use thiserror::Error;

/// A timeline that cannot be read.
#[derive(Debug, Error, Diagnostic, Clone, PartialEq, Eq)]
pub enum ProfilerError {
    /// Something that is no number where there are only rows of numbers.
    #[error("the timeline holds {found} at byte {offset}, where rows of numbers are")]
    #[diagnostic(help(
        "the file is damaged or was changed after PyTorch's profiler wrote it; export it again with `export_memory_timeline`"
    ))]
    NotNumbers {
        /// What stands there.
        found: String,
        /// Where it stands.
        offset: u64,
    },
    /// Rows that do not fit the format.
    #[error("damaged timeline: {what}")]
    #[diagnostic(help(
        "a row of `.raw.json.gz` is [time, action, bytes, category], and `.json` holds a list of times and one of rows of \
         nine sizes; export the timeline again with `export_memory_timeline`"
    ))]
    Damaged {
        /// What does not fit, and where.
        what: String,
    },
    /// A trace in which no GPU's memory was noted.
    #[error("the trace holds nothing of a GPU's memory")]
    #[diagnostic(help(
        "record it with `torch.profiler.profile(..., profile_memory=True)` while the GPU is at work"
    ))]
    NoMemory,
    /// A text that no profiler writes.
    #[error("the trace holds a text of more than {limit} bytes")]
    #[diagnostic(help("the file is damaged, or was not written by PyTorch's profiler"))]
    LongText {
        /// How many are allowed.
        limit: usize,
    },
    /// More than the limit allows.
    #[error("the timeline holds more than {limit} numbers")]
    #[diagnostic(help("if you trust the file, raise the limit with `--max-nodes`"))]
    Limit {
        /// How many are allowed.
        limit: u64,
    },
}
