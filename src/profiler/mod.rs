//! Memory timelines of PyTorch's profiler: what `profile.export_memory_timeline` writes as `.raw.json.gz` and `.json`, and the memory in what
//! `export_chrome_trace` writes.
//!
//! In: a stream of the JSON. Out: the peak and what it consists of, what is left at the end, the optimizer steps or passes
//! that can be told, and whether memory grows from one to the next. Always: the file is read once as it comes; of the
//! form with events a few numbers a step are kept, of the form with levels the levels, within a limit.
//!
//! Such a file speaks of tensors by category (`torch/profiler/_memory_profiler.py`, PyTorch 2.0 to 2.15): it has no
//! addresses, no stacks, and nothing of the allocator. So there is no snapshot in it, and no verdict on it.

mod error;
mod growth;
mod levels;
mod passes;
mod read;
mod rows;
mod trace;

pub use error::ProfilerError;
pub use growth::MemoryTrend;

use std::io::Read;

use crate::unit::{Bytes, Confidence, Micros};

/// Blanks before the first bracket that are passed over.
const MOST_BLANKS: usize = 64;

/// What a tensor holds, as the profiler infers it. The order is that of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Parameters of modules and of the optimizer.
    Parameter,
    /// What the optimizer keeps for each parameter.
    OptimizerState,
    /// What comes from outside and contributes to a gradient.
    Input,
    /// Made and freed within one operator.
    Temporary,
    /// Made in the forward pass from inputs and parameters.
    Activation,
    /// Gradients.
    Gradient,
    /// Other results of the backward pass.
    AutogradDetail,
    /// Anything else, such as the workspaces of libraries.
    Unknown,
}

impl Category {
    /// Every category, in the order of the files.
    pub const ALL: [Category; 8] = [
        Category::Parameter,
        Category::OptimizerState,
        Category::Input,
        Category::Temporary,
        Category::Activation,
        Category::Gradient,
        Category::AutogradDetail,
        Category::Unknown,
    ];

    /// The name in machine-readable formats.
    pub const fn name(self) -> &'static str {
        match self {
            Category::Parameter => "parameter",
            Category::OptimizerState => "optimizer-state",
            Category::Input => "input",
            Category::Temporary => "temporary",
            Category::Activation => "activation",
            Category::Gradient => "gradient",
            Category::AutogradDetail => "autograd-detail",
            Category::Unknown => "unknown",
        }
    }
}

/// Bytes by category.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Composition([Bytes; 8]);

impl Composition {
    /// The categories and their bytes, in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = (Category, Bytes)> {
        Category::ALL.into_iter().zip(self.0)
    }

    /// All bytes.
    pub fn total(&self) -> Bytes {
        self.0.iter().sum()
    }
}

/// The two forms that hold numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `.raw.json.gz`: one row a change of a tensor.
    Events,
    /// `.json` and `.json.gz`: the level of each category at each microsecond at which something changed.
    Levels,
    /// A Chrome trace: what the allocator held whenever it was noted, of no category.
    Trace,
}

/// The sign by which passes were told apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PassSign {
    /// Parameters are changed in place after new activations or gradients: an optimizer step.
    OptimizerSteps,
    /// Activations rise and are gone again: a forward and a backward pass.
    Activations,
    /// `ProfilerStep#N`, or `Optimizer.step#...`.
    Annotations,
    /// Nothing repeats.
    #[default]
    Nothing,
}

impl PassSign {
    /// The name in machine-readable formats.
    pub const fn name(self) -> &'static str {
        match self {
            PassSign::OptimizerSteps => "optimizer-steps",
            PassSign::Activations => "activations",
            PassSign::Annotations => "annotations",
            PassSign::Nothing => "nothing",
        }
    }
}

/// One pass: from the end of the one before to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfiledPass {
    /// When it ends.
    pub end: Option<Micros>,
    /// The highest level within it.
    pub peak: Bytes,
    /// What there is at its end.
    pub resident: Composition,
}

/// What a timeline tells.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfilerTimeline {
    /// How it was exported.
    pub form: Form,
    /// Rows of the file.
    pub rows: usize,
    /// The first and the last moment.
    pub times: Option<(Micros, Micros)>,
    /// What there was before the recording, where the form tells.
    pub older: Option<Composition>,
    /// When the most was in use; `None` before the first moment.
    pub peak_time: Option<Micros>,
    /// What the peak consists of.
    pub peak: Composition,
    /// The most that was reserved, where the form tells.
    pub reserved: Option<Bytes>,
    /// What is left at the end.
    pub at_end: Composition,
    /// Optimizer steps, or passes, in their order.
    pub passes: Vec<ProfiledPass>,
    /// How they were told apart.
    pub found_by: PassSign,
    /// How sure that is.
    pub confidence: Confidence,
    /// Whether memory grows from pass to pass.
    pub growth: MemoryTrend,
    /// The deepest that a category falls below zero: more was freed than there was.
    pub below_zero: Bytes,
    /// By how many microseconds times run backwards at most.
    pub backwards: i64,
}

impl ProfilerTimeline {
    /// Reads a timeline; `most` is how many numbers may be held.
    ///
    /// # Errors
    /// Where the JSON is no timeline or damaged, and where it holds too much.
    pub fn read(mut json: impl Read, most: u64) -> Result<ProfilerTimeline, ProfilerError> {
        let mut head = Vec::new();
        let mut byte = [0];
        // What cannot be read here cannot be read there either, where it is told. More blanks than that no profiler writes.
        while head.len() < MOST_BLANKS
            && head.iter().all(u8::is_ascii_whitespace)
            && json.read(&mut byte).is_ok_and(|read| read > 0)
        {
            head.extend(byte);
        }
        let is_trace = head.last() == Some(&b'{');
        let whole = head.as_slice().chain(json);
        if is_trace { trace::read(whole, most) } else { read::read(whole, most) }
    }
}
