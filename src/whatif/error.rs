//! What keeps a question from being answered.

use miette::Diagnostic;
use thiserror::Error;

use crate::replay::TuningError;
use crate::unit::Bytes;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum WhatIfError {
    /// A setting that cannot be tried.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tuning(#[from] TuningError),
    /// One setting, two values.
    #[error("`{name}` is set twice")]
    #[diagnostic(help("all that is set is tried together; run `memlint whatif` once for each value"))]
    Twice {
        /// The setting.
        name: String,
    },
    /// A share of a device whose size nobody said.
    #[error(
        "`per_process_memory_fraction` is a share of the device's memory, which the recording does not tell"
    )]
    #[diagnostic(help("say how much the device has: `--device-memory 80GiB`"))]
    ShareOfUnknown,
    /// Nothing is found that is named so.
    #[error("no finding of the recording is `{asked}`")]
    #[diagnostic(help("what can be left out:\n{there}"))]
    NoSuchFinding {
        /// What was asked for.
        asked: String,
        /// The findings that there are, a line each.
        there: String,
    },
    /// The beginning of a fingerprint that several findings share.
    #[error("`{asked}` is the beginning of several fingerprints")]
    #[diagnostic(help("write more of the one that is meant:\n{there}"))]
    SeveralFindings {
        /// What was asked for.
        asked: String,
        /// The findings that are meant, a line each.
        there: String,
    },
    /// A finding that is about no lifetimes.
    #[error("nothing of `{asked}` can be left out: no other lifetimes would mend it")]
    #[diagnostic(help("`memlint explain {rule}` says what would; other settings are tried with `--set`"))]
    NothingToLeaveOut {
        /// What was asked for.
        asked: String,
        /// The finding's rule.
        rule: String,
    },
    /// Too little for any run.
    #[error("a device of {capacity} does not hold the parameters alone: {parameters}")]
    #[diagnostic(help(
        "give the memory that PyTorch can have on the device, such as `--device-memory 40GiB`"
    ))]
    BelowParameters {
        /// What the device has.
        capacity: Bytes,
        /// What the program's parameters take.
        parameters: Bytes,
    },
    /// A recording that no allocator can have written.
    #[error(
        "the recording of device {device} cannot be played: it contradicts itself, or asks for too much work"
    )]
    #[diagnostic(help("record it again; `memlint stats` shows where the replay first differs"))]
    GivenUp {
        /// The device's ordinal.
        device: usize,
    },
}
