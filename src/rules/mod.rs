//! The rules: facts in, claims out.
//!
//! A rule is two files: its detection here and its specification, `rules/<name>.md`, which is at once what
//! `memlint explain` prints and a test. Rules read no clock, no files and no configuration, ask no other rule, and decide no
//! levels: what a claim is worth is the verdict's (module `verdict`). What a rule needs from a recording it declares; where that is missing the engine skips it and
//! says why.

mod activations_without_backward;
mod allocator_thrash;
mod claim;
mod cross_stream_pending;
mod delayed_free_cycle;
mod duplicate_weights;
mod fragmentation;
mod full_precision_activations;
mod growing_reallocation;
mod growing_residency;
mod large_optimizer_state;
mod late_zero_grad;
mod lazy_optimizer_init;
mod missing_zero_grad;
mod no_iterations;
mod no_stacks;
mod optimizer_state_regrowth;
mod optimizer_step_peak;
mod out_of_memory;
mod overlapping_iterations;
mod pinned_segment;
mod private_pool_waste;
mod rank_imbalance;
mod regressions;
mod retained_graph;
mod skipped_optimizer_step;
mod transient_spike;
mod trial;
mod truncated_history;
mod uncheckpointed_activations;
mod unchunked_loss;
mod varying_shapes;

pub use claim::{Claim, Mending, Worth};
pub use delayed_free_cycle::GARBAGE;
pub use growing_residency::{HOLDER_LIMIT, SURPLUS, UNKNOWN_HOLDER};
pub use out_of_memory::OUT_OF_MEMORY;
pub use regressions::{GROWTH_REGRESSION, PEAK_REGRESSION};

use crate::facts::{Evidence, Facts, Peer};
use crate::finding::{Finding, Group, Location, Measure, Quantity, Severity, Silence, StackFrame};
use crate::unit::{FrameId, StackId};

/// A detection with its description.
pub trait Rule: Sync {
    /// Name, group, level, needs and specification.
    fn meta(&self) -> &'static Meta;

    /// What seems wrong on one device. Called only where every need is met.
    fn claims<'f>(&self, _facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        Vec::new()
    }

    /// What is wrong between ranks of a job that wrote their snapshots at the same moment; at least two, by rank.
    fn compare(&self, _ranks: &[Peer]) -> Vec<Finding> {
        Vec::new()
    }
}

/// What a rule is, apart from its detection.
#[derive(Debug)]
pub struct Meta {
    /// The identity: kebab-case, read as "allow `name`".
    pub name: &'static str,
    /// The family.
    pub group: Group,
    /// The level of its findings, unless they say otherwise.
    pub level: Severity,
    /// One line for lists.
    pub summary: &'static str,
    /// What a recording must have.
    pub needs: &'static [Need],
    /// What is enough to find the fault, where it does not rule it out: the rule tells what it sees, and counts as one that cannot judge.
    /// Empty where nothing less than all needs will do.
    pub in_part: &'static [Need],
    /// Whether it compares the recordings of ranks, and says nothing of one alone.
    pub between_ranks: bool,
    /// The specification, Markdown.
    pub page: &'static str,
}

/// What a rule asks of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Events that move memory, and not only the final segments.
    Events,
    /// Allocations from their beginning to their end.
    History,
    /// The same, or the event of a request that failed.
    Failures,
    /// Stacks with the user's own lines.
    Stacks,
    /// When memory came from the driver and went back.
    Segments,
    /// At least two iterations of a loop.
    Iterations,
    /// As many as growth needs rises.
    Growth,
    /// At least two iterations, or one pass with at most one step.
    Pass,
    /// All that was recorded, nothing of it pushed out.
    Beginning,
    /// What stands at the end, with its stacks.
    Standing,
    /// How gradients come and go: the first iteration and one more, or a backward pass and the step that follows it.
    Gradients,
    /// At least one optimizer step.
    Optimizer,
    /// The same, or an optimizer of the program's own that clears gradients.
    Updates,
}

impl Need {
    /// Whether a recording meets the need.
    pub fn met(self, evidence: &Evidence) -> Result<(), Silence> {
        match self {
            Need::Events => evidence.events(),
            Need::History => evidence.history(),
            Need::Failures => evidence.failures(),
            Need::Stacks => evidence.stacks(),
            Need::Segments => evidence.segments(),
            Need::Iterations => evidence.iterations(),
            Need::Growth => evidence.growth(),
            Need::Pass => evidence.pass(),
            Need::Beginning => evidence.beginning(),
            Need::Standing => evidence.standing(),
            Need::Gradients => evidence.gradients(),
            Need::Optimizer => return evidence.steps(),
            Need::Updates => return evidence.updates(),
        }
        .map_err(Silence::Blind)
    }

    /// Whether a recording meets all of some needs. That the program does nothing of the kind goes before what is hidden:
    /// it is known only where enough is seen.
    pub fn all_met(needs: &[Need], evidence: &Evidence) -> Result<(), Silence> {
        let unmet = || needs.iter().filter_map(|need| need.met(evidence).err());
        match unmet().find(|silence| matches!(silence, Silence::NotApplicable(_))).or_else(|| unmet().next())
        {
            Some(silence) => Err(silence),
            None => Ok(()),
        }
    }
}

/// A frame as the place of a finding.
pub(crate) fn place(facts: &Facts, frame: FrameId) -> Option<Location> {
    Location::of(facts.snapshot, frame)
}

/// A stack as a finding shows it: Python frames, innermost first.
pub(crate) fn shown(facts: &Facts, stack: StackId) -> Vec<StackFrame> {
    let one = |frame: &FrameId| {
        Some(StackFrame { location: place(facts, *frame)?, user: facts.frames.is_own(*frame) })
    };
    facts.frames.python(stack).iter().rev().filter_map(one).collect()
}

/// A number of the evidence, and how it is shown.
fn measure(name: &'static str, value: Quantity, text: String) -> Measure {
    Measure { name: name.into(), value, text }
}

/// Declares a rule: a unit struct with its [`Meta`]. The detection is an `impl` of `fn claims(&Facts) -> Vec<Claim>`,
/// or, where the rule is `between: ranks`, of `fn detect(&[Peer]) -> Vec<Finding>`.
macro_rules! declare_rule {
    (
        $(#[$doc:meta])*
        $rule:ident = $name:literal, $group:ident, $level:ident,
        needs: [$($need:ident),* $(,)?],
        $(in_part: [$($part:ident),* $(,)?],)?
        summary: $summary:literal $(,)?
    ) => {
        $crate::rules::declare_rule! {
            @meta $(#[$doc])* $rule = $name, $group, $level, [$($need),*], [$($($part),*)?], $summary, false,
            fn claims<'f>(&self, facts: &'f $crate::facts::Facts<'f>) -> Vec<$crate::rules::Claim<'f>> {
                Self::claims(facts)
            }
        }
    };
    (
        $(#[$doc:meta])*
        $rule:ident = $name:literal, $group:ident, $level:ident,
        between: ranks,
        summary: $summary:literal $(,)?
    ) => {
        $crate::rules::declare_rule! {
            @meta $(#[$doc])* $rule = $name, $group, $level, [History], [], $summary, true,
            fn compare(&self, ranks: &[$crate::facts::Peer]) -> Vec<$crate::finding::Finding> {
                Self::detect(ranks)
            }
        }
    };
    (
        @meta $(#[$doc:meta])*
        $rule:ident = $name:literal, $group:ident, $level:ident, [$($need:ident),*], [$($part:ident),*], $summary:literal,
        $between:literal,
        $($detection:tt)*
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $rule;

        impl $rule {
            const META: $crate::rules::Meta = $crate::rules::Meta {
                name: $name,
                group: $crate::finding::Group::$group,
                level: $crate::finding::Severity::$level,
                summary: $summary,
                needs: &[$($crate::rules::Need::$need),*],
                in_part: &[$($crate::rules::Need::$part),*],
                between_ranks: $between,
                page: include_str!(concat!("../../rules/", $name, ".md")),
            };
        }

        impl $crate::rules::Rule for $rule {
            fn meta(&self) -> &'static $crate::rules::Meta {
                &Self::META
            }

            $($detection)*
        }
    };
}

use declare_rule;

/// Every rule, in the order of groups and, within one, of the catalogue.
pub static RULES: &[&dyn Rule] = &[
    &growing_residency::GrowingResidency,
    &retained_graph::RetainedGraph,
    &missing_zero_grad::MissingZeroGrad,
    &delayed_free_cycle::DelayedFreeCycle,
    &optimizer_state_regrowth::OptimizerStateRegrowth,
    &growing_reallocation::GrowingReallocation,
    &overlapping_iterations::OverlappingIterations,
    &activations_without_backward::ActivationsWithoutBackward,
    &late_zero_grad::LateZeroGrad,
    &transient_spike::TransientSpike,
    &optimizer_step_peak::OptimizerStepPeak,
    &lazy_optimizer_init::LazyOptimizerInit,
    &duplicate_weights::DuplicateWeights,
    &rank_imbalance::RankImbalance,
    &fragmentation::Fragmentation,
    &allocator_thrash::AllocatorThrash,
    &varying_shapes::VaryingShapes,
    &skipped_optimizer_step::SkippedOptimizerStep,
    &pinned_segment::PinnedSegment,
    &cross_stream_pending::CrossStreamPending,
    &private_pool_waste::PrivatePoolWaste,
    &out_of_memory::OutOfMemory,
    &truncated_history::TruncatedHistory,
    &no_stacks::NoStacks,
    &no_iterations::NoIterations,
    &uncheckpointed_activations::UncheckpointedActivations,
    &large_optimizer_state::LargeOptimizerState,
    &unchunked_loss::UnchunkedLoss,
    &full_precision_activations::FullPrecisionActivations,
];

/// The rules that run unless somebody says otherwise: all but advice.
pub fn by_default() -> Vec<&'static dyn Rule> {
    RULES.iter().copied().filter(|rule| rule.meta().group.is_default()).collect()
}

/// What every rule is; last those that need two recordings, which are no [`Rule`]s.
pub fn metas() -> impl Iterator<Item = &'static Meta> + Clone {
    RULES.iter().map(|rule| rule.meta()).chain([&PEAK_REGRESSION, &GROWTH_REGRESSION])
}

/// The rule of a name.
pub fn named(name: &str) -> Option<&'static dyn Rule> {
    RULES.iter().copied().find(|rule| rule.meta().name == name)
}
