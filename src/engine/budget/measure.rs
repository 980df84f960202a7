//! What a budget's metric is on a device.
//!
//! In: facts, a metric, a scope. Out: bytes, the moment at which they stand, and what a share of them is a share of. Always:
//! what cannot be measured is not zero, it is not measured.

use crate::config::{BudgetScope, CallSite, Metric};
use crate::facts::Facts;
use crate::finding::{Absent, Hidden, Location, Silence};
use crate::lives::{growth, slope};
use crate::program::Phase;
use crate::role::Role;
use crate::rules::Need;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, FrameId, Index, StackId};

/// A metric's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MetricValue {
    /// How many bytes.
    pub(super) bytes: Bytes,
    /// The first event after which they stand; `None` where they stood before the first.
    pub(super) at: Option<EventIndex>,
    /// What a share of the metric is a share of, where that is no matter of the device.
    pub(super) whole: Option<Bytes>,
    /// What holds them at that moment; empty where that is not asked.
    pub(super) members: Vec<AllocationId>,
}

/// Measures a metric.
///
/// # Errors
/// Where the recording hides it, or the program has nothing of the kind.
pub(super) fn measure(metric: &Metric, scope: BudgetScope, facts: &Facts) -> Result<MetricValue, Silence> {
    let driver: &[Need] = match metric {
        Metric::PeakReserved | Metric::Fragmentation => &[Need::Segments],
        _ => &[],
    };
    let more: &[Need] = match (metric, scope) {
        (Metric::GrowthPerIteration, _) | (_, BudgetScope::Iteration) => &[Need::Iterations],
        // Without stacks most roles are not known, and what is not known must not pass for nothing.
        (Metric::CallSiteBytes(_) | Metric::RoleBytes(_), _) => &[Need::Stacks],
        _ => &[],
    };
    let needs = [&[Need::History], driver, more].concat();
    Need::all_met(&needs, facts.evidence)?;
    let moments = Moments::of(scope, facts)?;
    Ok(match metric {
        Metric::PeakRequested => requested(facts, &moments, None, |_, _| true),
        Metric::RoleBytes(role) => of_role(facts, &moments, *role),
        Metric::CallSiteBytes(site) => of_site(facts, &moments, site)?,
        Metric::PeakAllocated => allocated(facts, &moments),
        Metric::PeakReserved => reserved(facts, &moments),
        Metric::GrowthPerIteration => growth(facts)?,
        Metric::Fragmentation => fragmentation(facts),
    })
}

/// The events after which a level counts.
enum Moments {
    All,
    Between(usize, usize),
    In(Phase),
}

impl Moments {
    fn of(scope: BudgetScope, facts: &Facts) -> Result<Moments, Silence> {
        match scope {
            BudgetScope::Run => Ok(Moments::All),
            BudgetScope::Iteration => {
                let events = &facts.steady().events;
                Ok(Moments::Between(events.start, events.end))
            }
            BudgetScope::Phase(phase) if facts.program.phases.contains(&phase) => Ok(Moments::In(phase)),
            BudgetScope::Phase(phase) => {
                // Only stacks of whole iterations show that there is none.
                Need::all_met(&[Need::Stacks, Need::Iterations], facts.evidence)?;
                Err(Silence::NotApplicable(Absent::Phase(phase)))
            }
        }
    }

    /// Whether the level before the first event counts.
    fn hold_start(&self) -> bool {
        matches!(self, Moments::All)
    }

    fn hold(&self, at: usize, facts: &Facts) -> bool {
        match self {
            Moments::All => true,
            Moments::Between(first, end) => (*first..*end).contains(&at),
            Moments::In(phase) => facts.program.phases.get(at) == Some(phase),
        }
    }
}

/// Rises and falls of a level, event by event.
struct RisesAndFalls {
    start: i128,
    changes: Vec<i128>,
}

impl RisesAndFalls {
    fn new(facts: &Facts) -> RisesAndFalls {
        RisesAndFalls { start: 0, changes: vec![0; facts.trace.events.len()] }
    }

    /// Some bytes from one event to another; from the start where they are older, and for ever where they stay.
    fn add(&mut self, from: Option<EventIndex>, to: Option<EventIndex>, bytes: Bytes) {
        let bytes = i128::from(bytes.get());
        match from.map(|event| self.changes.get_mut(event.position())) {
            None => self.start += bytes,
            Some(change) => {
                if let Some(change) = change {
                    *change += bytes;
                }
            }
        }
        if let Some(change) = to.and_then(|event| self.changes.get_mut(event.position())) {
            *change -= bytes;
        }
    }

    /// The highest level at the moments that count, and the first that reaches it.
    fn highest(&self, moments: &Moments, facts: &Facts) -> (Bytes, Option<EventIndex>) {
        let mut level = self.start;
        let mut best = moments.hold_start().then_some((level, None));
        for (at, change) in self.changes.iter().enumerate() {
            level += change;
            if best.is_none_or(|(highest, _)| level > highest) && moments.hold(at, facts) {
                best = Some((level, EventIndex::at(at)));
            }
        }
        let (highest, at) = best.unwrap_or((0, None));
        (Bytes(u64::try_from(highest.max(0)).unwrap_or(u64::MAX)), at)
    }
}

/// The allocations that are alive after an event, or before all; `ends` says when one is no longer.
fn alive(
    facts: &Facts,
    at: Option<EventIndex>,
    ends: impl Fn(&Allocation) -> Option<EventIndex>,
    counts: impl Fn(AllocationId, &Allocation) -> bool,
) -> Vec<AllocationId> {
    let is_alive = |one: &Allocation| match at {
        Some(event) => Allocation { free: ends(one), ..*one }.alive_after(event),
        None => one.alloc.is_none(),
    };
    facts.timeline.iter().filter(|(id, one)| is_alive(one) && counts(*id, one)).map(|(id, _)| id).collect()
}

/// Requested bytes of some allocations, at most.
fn requested(
    facts: &Facts,
    moments: &Moments,
    whole: Option<Bytes>,
    counts: impl Fn(AllocationId, &Allocation) -> bool,
) -> MetricValue {
    let mut curve = RisesAndFalls::new(facts);
    for (_, one) in facts.timeline.iter().filter(|(id, one)| counts(*id, one)) {
        curve.add(one.alloc, one.free, one.bytes);
    }
    let (bytes, at) = curve.highest(moments, facts);
    MetricValue { bytes, at, whole, members: alive(facts, at, |one| one.free, counts) }
}

fn of_role(facts: &Facts, moments: &Moments, role: Role) -> MetricValue {
    requested(facts, moments, Some(facts.peak()), |id, _| facts.role(id) == role)
}

fn of_site(facts: &Facts, moments: &Moments, site: &CallSite) -> Result<MetricValue, Silence> {
    let stacks = &facts.snapshot.stacks;
    let fits = |frame: FrameId| {
        let place = Location::of(facts.snapshot, frame);
        place.is_some_and(|one| site.is_in(&format!("{}:{}:{}", one.file, one.line, one.function)))
    };
    let fitting: Vec<bool> = stacks.frame_ids().map(fits).collect();
    let passes = |stack: StackId| {
        let fits = |frame: &FrameId| fitting.get(frame.position()).copied().unwrap_or(false);
        facts.frames.python(stack).iter().any(fits)
    };
    let passing: Vec<bool> = stacks.ids().map(passes).collect();
    let counts = |one: &Allocation| {
        let stack = one.alloc.map_or(one.stack, |event| facts.seen_stack(event));
        stack.is_some_and(|stack| passing.get(stack.position()).copied().unwrap_or(false))
    };
    // A name that fits nothing, misspelt or of code that is gone, must not pass for a line that holds little.
    if !facts.timeline.iter().any(|(_, one)| counts(one)) {
        return Err(Silence::NotApplicable(Absent::CallSite));
    }
    Ok(requested(facts, moments, Some(facts.peak()), |_, one| counts(one)))
}

/// Block sizes until the program gives them back, as PyTorch's `allocated_bytes`.
fn allocated(facts: &Facts, moments: &Moments) -> MetricValue {
    let given_back = |one: &Allocation| one.given_back();
    let mut curve = RisesAndFalls::new(facts);
    for (id, one) in facts.timeline.iter() {
        curve.add(one.alloc, given_back(one), facts.block_size(id));
    }
    let (bytes, at) = curve.highest(moments, facts);
    MetricValue { bytes, at, whole: None, members: alive(facts, at, given_back, |_, _| true) }
}

/// Bytes held from the driver.
fn reserved(facts: &Facts, moments: &Moments) -> MetricValue {
    let mut curve = RisesAndFalls::new(facts);
    curve.start = i128::from(facts.timeline.reserved_at_start.get());
    for (event, change) in facts.trace.events.iter().zip(&mut curve.changes) {
        *change += event.reserves().unwrap_or_default();
    }
    let (bytes, at) = curve.highest(moments, facts);
    MetricValue { bytes, at, whole: None, members: alive(facts, at, |one| one.free, |_, _| true) }
}

/// By how much each iteration leaves more behind than the one before, as the judge of growth sees the requested bytes at the
/// ends of iterations; what comes and goes is no growth. The first is left out where there are enough, as in
/// [`crate::facts::Steady`]. Where that judge sees none, what rises from value to value beyond chance is growth all the same (the last iteration may let go
/// of a lot), and of a rise over too few values nobody knows.
fn growth(facts: &Facts) -> Result<MetricValue, Silence> {
    let ends = facts.iteration_ends();
    let counted = ends.iter().skip(usize::from(ends.len() >= 3));
    let series: Vec<f64> = counted.map(|end| facts.timeline.levels.before(*end).get() as f64).collect();
    let rate = match (series.as_slice(), growth::of_levels(&series)) {
        ([] | [_], _) => return Err(Silence::Blind(Hidden::Growth)),
        // Two ends are a difference and no more.
        ([first, last], _) => last - first,
        (_, Some(growth)) => growth.slope,
        ([first, _, last], None) if last > first => return Err(Silence::Blind(Hidden::Growth)),
        (series, None) => {
            let (median, (least, _)) = slope(series, growth::LEVEL.get());
            if least > 0.0 { median } else { 0.0 }
        }
    };
    let members = facts.growing().iter().flat_map(|growing| growing.stays.iter().copied()).collect();
    let at = ends.last().and_then(|end| EventIndex::at(end.saturating_sub(1)));
    Ok(MetricValue { bytes: Bytes::rounded(rate), at, whole: Some(facts.peak()), members })
}

/// What is reserved beyond what was ever in use; what was held before the recording may have been.
fn fragmentation(facts: &Facts) -> MetricValue {
    let pool = facts.default_pool();
    let bytes = pool.reserved - pool.active.max(pool.held_before);
    MetricValue { bytes, at: None, whole: Some(pool.reserved), members: Vec::new() }
}
