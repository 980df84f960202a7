//! Budgets: limits that a user sets to a measure, and that are rules like any other.

use regex::{Regex, RegexBuilder};

use super::amount::Amount;
use super::error::Fault;
use super::setting::Setting;
use super::word::{Level, Word};
use crate::finding::Severity;
use crate::program::Phase;
use crate::role::Role;

/// The most bytes that a compiled regular expression may take; one that names a function takes some kilobytes.
const MOST_REGEX: usize = 1 << 20;

/// A limit that must not be passed.
#[derive(Debug, Clone)]
pub struct Budget {
    /// Its name among rules: `budget.gpu-80gb`.
    pub rule: String,
    /// What is measured.
    pub metric: Setting<Metric>,
    /// Where it is measured.
    pub scope: Setting<BudgetScope>,
    /// What it must not pass.
    pub limit: Setting<Amount>,
    /// The level of what it finds.
    pub level: Setting<Level>,
}

/// What a budget measures.
#[derive(Debug, Clone)]
pub enum Metric {
    /// Bytes of the allocator's blocks in use, at most.
    PeakAllocated,
    /// Bytes that the allocator holds of the device, at most.
    PeakReserved,
    /// Bytes that the program asked for, at most.
    PeakRequested,
    /// Bytes by which each iteration leaves more behind than the one before.
    GrowthPerIteration,
    /// Bytes reserved beyond what the program needs at its peak; a share is one of the reserved bytes.
    Fragmentation,
    /// Bytes of one role alive at a time, at most.
    RoleBytes(Role),
    /// Bytes alive at a time whose stack passes a frame, at most.
    CallSiteBytes(CallSite),
}

/// Frames of a stack, each looked at as `path/file.py:line:function`.
#[derive(Debug, Clone)]
pub struct CallSite(Regex);

/// Where a budget is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetScope {
    /// All of the recording.
    Run,
    /// Iterations after the warm-up.
    Iteration,
    /// Whenever the program is in this phase.
    Phase(Phase),
}

/// A metric's name, without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricName {
    PeakAllocated,
    PeakReserved,
    PeakRequested,
    GrowthPerIteration,
    Fragmentation,
    RoleBytes,
    CallSiteBytes,
}

impl Budget {
    /// What stands before a budget's name where rules are named: `budget.gpu-80gb`.
    pub const PREFIX: &'static str = "budget.";

    /// The level at which it reports; `None` where it is off.
    pub fn severity(&self) -> Option<Severity> {
        match self.level.value {
            Level::On(severity) => Some(severity),
            Level::Off => None,
        }
    }

    /// Whether its limit is a share of the device's memory, which must then be known.
    pub fn is_of_device(&self) -> bool {
        let of_peak =
            matches!(self.metric.value, Metric::PeakAllocated | Metric::PeakReserved | Metric::PeakRequested);
        of_peak && matches!(self.limit.value, Amount::Share(_))
    }
}

impl Metric {
    /// How it is written: `peak-reserved`.
    pub fn name(&self) -> &'static str {
        let name = match self {
            Metric::PeakAllocated => MetricName::PeakAllocated,
            Metric::PeakReserved => MetricName::PeakReserved,
            Metric::PeakRequested => MetricName::PeakRequested,
            Metric::GrowthPerIteration => MetricName::GrowthPerIteration,
            Metric::Fragmentation => MetricName::Fragmentation,
            Metric::RoleBytes(_) => MetricName::RoleBytes,
            Metric::CallSiteBytes(_) => MetricName::CallSiteBytes,
        };
        name.word()
    }
}

impl Metric {
    /// What is measured, in words for a person; and what a share is a share of.
    pub const fn about(&self) -> &'static str {
        match self {
            Metric::PeakAllocated => {
                "The allocator's blocks in use, rounding included, at their highest: `allocated_bytes` of PyTorch.\n\
                 A share is one of the device's memory."
            }
            Metric::PeakReserved => {
                "What the allocator holds of the device, at its highest: `reserved_bytes` of PyTorch, and what other programs\n\
                 on the device cannot have. A share is one of the device's memory."
            }
            Metric::PeakRequested => {
                "What the program asked for, at its highest: `requested_bytes` of PyTorch, without the allocator's rounding.\n\
                 A share is one of the device's memory."
            }
            Metric::GrowthPerIteration => {
                "By how much the end of each iteration holds more than the end of the one before: the Theil-Sen slope over\n\
                 all iterations after the first. A share is one of the peak of requested bytes."
            }
            Metric::Fragmentation => {
                "What is reserved beyond what was ever in use, in the default pool. A share is one of the reserved bytes."
            }
            Metric::RoleBytes(_) => {
                "The requested bytes of everything that holds this role, at their highest. A share is one of the peak of\n\
                 requested bytes."
            }
            Metric::CallSiteBytes(_) => {
                "The requested bytes of everything whose stack has a frame, written as `path/file.py:line:function`, in which\n\
                 the expression is found, at their highest. A share is one of the peak of requested bytes."
            }
        }
    }

    /// The role or the call site that is measured, where the metric is about one.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Metric::RoleBytes(role) => Some(role.name()),
            Metric::CallSiteBytes(site) => Some(site.pattern()),
            _ => None,
        }
    }
}

impl MetricName {
    /// The scope of a budget that names none, and the only one where a metric has no other.
    pub(super) const fn scope(self) -> BudgetScope {
        match self {
            MetricName::GrowthPerIteration => BudgetScope::Iteration,
            _ => BudgetScope::Run,
        }
    }

    /// Whether the metric is measured in a scope.
    pub(super) fn has(self, scope: BudgetScope) -> Result<(), Fault> {
        let hint = match self {
            MetricName::GrowthPerIteration => "leave `scope` out: growth is from iteration to iteration",
            MetricName::Fragmentation => "leave `scope` out: what is reserved is reserved for the whole run",
            _ => return Ok(()),
        };
        if scope == self.scope() {
            return Ok(());
        }
        Err(Fault::Scope { metric: self.word(), scope: scope.word(), hint })
    }
}

impl CallSite {
    /// A regular expression that is found in a frame.
    pub fn new(pattern: &str) -> Result<CallSite, Fault> {
        let compiled = RegexBuilder::new(pattern).size_limit(MOST_REGEX).build();
        compiled.map(CallSite).map_err(|error| {
            // Its last line says what is wrong; those before draw the pattern.
            let told = error.to_string();
            let last = told.lines().last().unwrap_or_default();
            Fault::Regex(last.strip_prefix("error: ").unwrap_or(last).to_owned())
        })
    }

    /// The expression as it is written.
    pub fn pattern(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is found in a frame, written as `path/file.py:line:function`.
    pub fn is_in(&self, frame: &str) -> bool {
        self.0.is_match(frame)
    }
}

/// Whether a budget may be called so: small letters, digits and hyphens.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(fits)
}

impl Word for MetricName {
    const WHAT: &'static str = "metric";
    const ALL: &'static [MetricName] = &[
        MetricName::PeakAllocated,
        MetricName::PeakReserved,
        MetricName::PeakRequested,
        MetricName::GrowthPerIteration,
        MetricName::Fragmentation,
        MetricName::RoleBytes,
        MetricName::CallSiteBytes,
    ];

    fn word(self) -> &'static str {
        match self {
            MetricName::PeakAllocated => "peak-allocated",
            MetricName::PeakReserved => "peak-reserved",
            MetricName::PeakRequested => "peak-requested",
            MetricName::GrowthPerIteration => "growth-per-iteration",
            MetricName::Fragmentation => "fragmentation",
            MetricName::RoleBytes => "role-bytes",
            MetricName::CallSiteBytes => "call-site-bytes",
        }
    }
}

impl Word for BudgetScope {
    const WHAT: &'static str = "scope";
    const ALL: &'static [BudgetScope] = &[
        BudgetScope::Run,
        BudgetScope::Iteration,
        BudgetScope::Phase(Phase::Setup),
        BudgetScope::Phase(Phase::Input),
        BudgetScope::Phase(Phase::Forward),
        BudgetScope::Phase(Phase::Recomputation),
        BudgetScope::Phase(Phase::Backward),
        BudgetScope::Phase(Phase::Clipping),
        BudgetScope::Phase(Phase::OptimizerStep),
        BudgetScope::Phase(Phase::ZeroGrad),
        BudgetScope::Phase(Phase::Evaluation),
    ];

    fn word(self) -> &'static str {
        match self {
            BudgetScope::Run => "run",
            BudgetScope::Iteration => "iteration",
            BudgetScope::Phase(phase) => phase.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_sites_are_found_anywhere_in_a_frame() {
        let site = CallSite::new(r"attention\.py:\d+:forward$").unwrap();
        assert!(site.is_in("/opt/job/src/attention.py:31:forward"));
        assert!(!site.is_in("/opt/job/src/attention.py:31:forward_hook"));
    }

    #[test]
    fn expressions_are_bounded() {
        assert!(matches!(CallSite::new("(("), Err(Fault::Regex(told)) if told.contains("unclosed group")));
        assert!(
            matches!(CallSite::new(r"\w{5000}{5000}"), Err(Fault::Regex(told)) if told.contains("size limit"))
        );
    }

    #[test]
    fn names_stay_on_one_line_and_in_one_word() {
        assert!(is_name("gpu-80gb"));
        for wrong in ["", "GPU", "gpu 80", "gpu.peak", "größe", "a\n"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}
