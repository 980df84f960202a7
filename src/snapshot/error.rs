//! What can be wrong with a snapshot.

use miette::Diagnostic;
use thiserror::Error;

use crate::pickle::PickleError;

const HOW_TO_RECORD: &str = "memlint reads what `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` writes after \
                             `torch.cuda.memory._record_memory_history()`";

/// A pickle that holds no memory snapshot, or no pickle at all.
#[derive(Debug, Error, Diagnostic, Clone, PartialEq, Eq)]
pub enum SnapshotError {
    /// The pickle cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pickle(#[from] PickleError),
    /// More of one kind than can be numbered.
    #[error("the snapshot holds more than {limit} {what}, which is as many as memlint can number")]
    #[diagnostic(help(
        "no flag raises this limit; record a shorter time, or fewer events with `max_entries` of `_record_memory_history`"
    ))]
    TooMany {
        /// Of what there is too much.
        what: &'static str,
        /// How many can be numbered.
        limit: u64,
    },
    /// A pickle of something else.
    #[error("this pickle holds {found}, not a PyTorch memory snapshot")]
    #[diagnostic(help("{HOW_TO_RECORD}"))]
    NotASnapshot {
        /// What it holds, in words.
        found: String,
    },
    /// A part of the snapshot has the wrong shape.
    #[error("`{path}` in the snapshot is {found}, not {wanted}")]
    #[diagnostic(help("the file is damaged or was changed after PyTorch wrote it; take the snapshot again"))]
    Shape {
        /// Where: `device_traces[1]`.
        path: String,
        /// What is there.
        found: &'static str,
        /// What should be there.
        wanted: &'static str,
    },
}
