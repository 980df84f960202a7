//! Why a snapshot cannot be sliced.

use miette::Diagnostic;
use thiserror::Error;

use super::Iterations;

/// Why there is no slice.
#[derive(Debug, Error, Diagnostic, Clone, Copy, PartialEq, Eq)]
pub enum SliceError {
    /// Nothing repeats, or nothing was recorded.
    #[error("no iterations were found")]
    #[diagnostic(help(
        "`memlint stats` shows what was found, `memlint explain no-iterations` why it may be nothing"
    ))]
    NoIterations,
    /// Iterations that are not there.
    #[error("iterations {asked} were asked for, but there are only {found}")]
    #[diagnostic(help("iterations count from 1, as `memlint stats` shows them"))]
    OutOfRange {
        /// What was asked for.
        asked: Iterations,
        /// How many there are.
        found: usize,
    },
    /// Devices cannot be cut at the same moment.
    #[error("the snapshot has several devices and no times, so they cannot be cut at the same moment")]
    #[diagnostic(help("record with PyTorch 2.2 or later"))]
    NoTimes,
    /// Blocks that no segment holds.
    #[error("{homeless} blocks in use at the end of the slice lie in no segment")]
    #[diagnostic(help("the snapshot's events and its segments do not belong together; take it again"))]
    Inconsistent {
        /// How many.
        homeless: usize,
    },
}
