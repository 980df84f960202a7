//! The vocabulary of phases: what a program can be doing. [`super::phases`] says what it was doing at each event.

use serde::{Deserialize, Serialize};

/// What the program was doing when an event happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Before the main loop: building models, optimizers, data.
    Setup,
    /// Bringing in a batch.
    Input,
    /// The forward pass, loss included.
    Forward,
    /// The forward run again inside the backward pass (activation checkpointing).
    Recomputation,
    /// The backward pass.
    Backward,
    /// Gradient clipping and unscaling.
    Clipping,
    /// `optimizer.step`.
    OptimizerStep,
    /// Clearing gradients.
    ZeroGrad,
    /// A forward without training inside or beside the main loop.
    Evaluation,
    /// Anything else, or not known.
    #[default]
    Other,
}

impl Phase {
    /// All phases, in the order of a training step.
    pub const ALL: [Phase; 10] = [
        Phase::Setup,
        Phase::Input,
        Phase::Forward,
        Phase::Recomputation,
        Phase::Backward,
        Phase::Clipping,
        Phase::OptimizerStep,
        Phase::ZeroGrad,
        Phase::Evaluation,
        Phase::Other,
    ];

    /// The name in every machine-readable format: `optimizer-step`.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Setup => "setup",
            Phase::Input => "input",
            Phase::Forward => "forward",
            Phase::Recomputation => "recomputation",
            Phase::Backward => "backward",
            Phase::Clipping => "clipping",
            Phase::OptimizerStep => "optimizer-step",
            Phase::ZeroGrad => "zero-grad",
            Phase::Evaluation => "evaluation",
            Phase::Other => "other",
        }
    }
}
