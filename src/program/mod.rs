//! What the program was doing: its main loop, its iterations, and the phase of every event.

use crate::unit::{Confidence, EventIndex, FrameId, Index, IterationIndex, Micros};

/// What one device's trace says of the program.
#[derive(Debug, Default)]
pub struct Program {
    /// The iterations of the main loop, in order; they do not overlap.
    pub iterations: Vec<Iteration>,
    /// The main loop: the user's line that iterates, where the stacks show it.
    pub main_loop: Option<Loop>,
    /// The evidence by which the iterations were told apart.
    pub found_by: FoundBy,
    /// How sure that is.
    pub confidence: Confidence,
    /// The phase of each event, by its index.
    pub phases: Vec<Phase>,
}

/// One pass through the main loop (of the optimizer's period, where gradients are accumulated).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration {
    /// Its first event.
    pub start: EventIndex,
    /// The event after its last; the number of events for the last one.
    pub end: EventIndex,
    /// When it begins.
    pub start_time: Micros,
    /// When it ends: when the next begins, or the last event.
    pub end_time: Micros,
    /// Whether the recording holds all of it.
    pub complete: bool,
}

/// A loop of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loop {
    /// The frame that iterates, at the loop's header line.
    pub frame: FrameId,
    /// The header's line.
    pub line: u32,
}

/// The evidence by which iterations were told apart, best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FoundBy {
    /// `ProfilerStep#N` annotations.
    ProfilerSteps,
    /// An annotation of the user's own that repeats.
    Annotations,
    /// `Optimizer.step` annotations, or frames of optimizer steps.
    OptimizerSteps,
    /// A loop's back edges in the Python stacks.
    LoopBackEdges,
    /// Back edges and optimizer steps that agree.
    LoopAndOptimizer,
    /// The sequence of sizes repeats.
    Periodicity,
    /// Nothing repeats.
    #[default]
    Nothing,
}

impl FoundBy {
    /// The name in every machine-readable format: `loop-back-edges`.
    pub const fn name(self) -> &'static str {
        match self {
            FoundBy::ProfilerSteps => "profiler-steps",
            FoundBy::Annotations => "annotations",
            FoundBy::OptimizerSteps => "optimizer-steps",
            FoundBy::LoopBackEdges => "loop-back-edges",
            FoundBy::LoopAndOptimizer => "loop-and-optimizer",
            FoundBy::Periodicity => "periodicity",
            FoundBy::Nothing => "nothing",
        }
    }
}

/// What the program was doing when an event happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl Program {
    /// The iteration that holds an event.
    pub fn iteration_of(&self, event: EventIndex) -> Option<IterationIndex> {
        let after = self.iterations.partition_point(|iteration| iteration.start <= event);
        let position = after.checked_sub(1)?;
        let inside = self.iterations.get(position).is_some_and(|iteration| event < iteration.end);
        inside.then(|| IterationIndex::at(position)).flatten()
    }
}
