//! Budgets: the user's own limits, judged on each device like rules.
//!
//! In: a budget, facts, the capacity of the device that the program is to run on. Out: nothing, one finding, or why it
//! cannot be judged. Always: a limit is passed where the measure is above it, not where it reaches it.

mod measure;

use std::borrow::Cow;
use std::collections::BTreeMap;

use self::measure::{MetricValue, measure};
use super::Examination;
use crate::config::{Amount, Budget, BudgetScope, Metric};
use crate::facts::Facts;
use crate::finding::{
    Finding, Group, Hidden, Impact, Matter, Measure, Notice, Quantity, Related, Severity, Silence,
};
use crate::rules::{place, shown};
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index, StackId, percent, told_apart};

/// Lines that are named beside the largest.
const BESIDE: usize = 2;

/// What a budget finds on a device.
pub(super) fn judge(
    budget: &Budget,
    facts: &Facts,
    capacity: Option<Bytes>,
) -> Result<Option<Finding>, Silence> {
    let measured = measure(&budget.metric.value, budget.scope.value, facts)?;
    let limit = match (budget.limit.value, measured.whole.or(capacity)) {
        (Amount::Bytes(bytes), _) => bytes,
        (Amount::Share(share), Some(whole)) => Bytes::rounded(share * whole.get() as f64),
        (Amount::Share(_), None) => return Err(Silence::Blind(Hidden::Capacity)),
    };
    Ok((measured.bytes > limit).then(|| finding(budget, facts, &measured, limit)))
}

/// Says of each budget that no device was measured by, for want of anything to measure: it limits nothing, and a green light would not
/// tell.
pub(super) fn unmeasured(budgets: &[&Budget], examinations: &[Examination]) -> Vec<Notice> {
    let nowhere = |budget: &&Budget| {
        let mut reason = None;
        for one in examinations {
            let mut absent = one.skipped.iter().filter(|skipped| skipped.rule == budget.rule);
            for _ in &one.recording.devices {
                // Where it was measured there is nothing to say, and where it is blind that is said elsewhere.
                reason = Some(absent.next().filter(|skipped| skipped.blind().is_none())?.silence.reason());
            }
        }
        Some(unmeasured_budget(budget, &reason?))
    };
    budgets.iter().filter_map(nowhere).collect()
}

fn unmeasured_budget(budget: &Budget, reason: &str) -> Notice {
    Notice {
        kind: Matter::UnmeasuredBudget,
        severity: Severity::Warning,
        message: format!("{} measured nothing: {reason}", budget.rule),
        help: format!("mend what it is for in `[{}]`, or take it away", budget.rule),
        location: None,
    }
}

fn finding(budget: &Budget, facts: &Facts, measured: &MetricValue, limit: Bytes) -> Finding {
    let MetricValue { bytes, at, members, .. } = measured;
    let metric = &budget.metric.value;
    let lines = lines(facts, members);
    let mut lines = lines.iter().filter_map(|line| Some((line, place(facts, line.frame)?)));
    let largest = lines.next();
    let beside = lines.take(BESIDE).map(|(line, location)| Related {
        location,
        message: format!("holds {}", line.bytes),
        stood: None,
    });
    let growing = matches!(metric, Metric::GrowthPerIteration);
    Finding {
        message: message(budget, *bytes, limit),
        help: help(budget),
        device: Some(facts.device),
        confidence: confidence(metric),
        phase: at.map(|event| facts.phase(event)).unwrap_or_default(),
        label: match &largest {
            Some((line, _)) if growing => format!("{} from here outlive their iterations", line.bytes),
            Some((line, _)) => format!("holds most at that moment: {}", line.bytes),
            None => String::new(),
        },
        stack: largest.as_ref().map(|(line, _)| shown(facts, line.stack)).unwrap_or_default(),
        location: largest.map(|(_, location)| location),
        related: beside.collect(),
        evidence: evidence(budget, facts, measured, limit),
        impact: Impact {
            per_iteration: growing.then_some(*bytes),
            at_once: (!growing).then_some(*bytes),
            ..Impact::default()
        },
        ..Finding::of(budget.rule.clone(), Group::Budget, budget.severity().unwrap_or(Severity::Error))
    }
}

/// `peak of reserved memory 71.2 GiB is above the budget of 70 GiB`.
fn message(budget: &Budget, bytes: Bytes, limit: Bytes) -> String {
    let what = match &budget.metric.value {
        Metric::PeakAllocated => "peak of allocated memory".to_owned(),
        Metric::PeakReserved => "peak of reserved memory".to_owned(),
        Metric::PeakRequested => "peak".to_owned(),
        Metric::GrowthPerIteration => "growth per iteration".to_owned(),
        Metric::Fragmentation => "fragmentation".to_owned(),
        Metric::RoleBytes(role) => format!("{} memory", role.name()),
        Metric::CallSiteBytes(_) => "memory of the call site".to_owned(),
    };
    let [bytes, limit] = told_apart([bytes, limit]);
    format!("{what} {bytes} is above the budget of {limit}")
}

fn help(budget: &Budget) -> String {
    let how = match &budget.metric.value {
        Metric::GrowthPerIteration => "let go of what each iteration leaves behind",
        Metric::Fragmentation => "let free blocks fit (`memlint explain fragmentation`)",
        _ => "let less be alive at that moment",
    };
    let name = budget.rule.trim_start_matches(Budget::PREFIX);
    format!("{how}, or raise `limit` of [budget.{name}] ({})", budget.limit.origin)
}

/// Levels are exact; what holds a role, and what grows, is inferred.
const fn confidence(metric: &Metric) -> Confidence {
    match metric {
        Metric::RoleBytes(_) | Metric::GrowthPerIteration => Confidence::Medium,
        _ => Confidence::High,
    }
}

fn evidence(budget: &Budget, facts: &Facts, value: &MetricValue, limit: Bytes) -> Vec<Measure> {
    let one = |name, value, text| Measure { name: Cow::Borrowed(name), value, text };
    let bytes = value.bytes;
    let metric = budget.metric.value.name();
    let [measured, allowance] = told_apart([bytes, limit]);
    let mut evidence = vec![
        one("measured", Quantity::Bytes(bytes), format!("{metric} {measured}")),
        one("limit", Quantity::Bytes(limit), allowed(budget, &allowance)),
        one("excess", Quantity::Bytes(bytes - limit), format!("{} too much", bytes - limit)),
    ];
    if let BudgetScope::Phase(phase) = budget.scope.value {
        let text = format!("in the phase {}", phase.name());
        evidence.push(one("phase", Quantity::Text(phase.name().to_owned()), text));
    }
    let iteration = value.at.and_then(|event| facts.program.iteration_of(event));
    if let Some(iteration) = iteration.filter(|_| !matches!(budget.metric.value, Metric::GrowthPerIteration))
    {
        let number = iteration.position() + 1;
        evidence.push(one(
            "iteration",
            Quantity::Count(number as u64),
            format!("first in iteration {number}"),
        ));
    }
    evidence
}

/// `70 GiB allowed`, `63 GiB allowed (90 % of 70 GiB)`.
fn allowed(budget: &Budget, limit: &str) -> String {
    match budget.limit.value {
        Amount::Bytes(_) => format!("{limit} allowed"),
        Amount::Share(share) => format!("{limit} allowed ({})", percent(share)),
    }
}

/// A line of the user's and what it holds.
struct Line {
    frame: FrameId,
    bytes: Bytes,
    /// The stack of its largest allocation.
    stack: StackId,
    largest: Bytes,
}

/// The lines that hold some allocations, the largest first.
fn lines(facts: &Facts, members: &[AllocationId]) -> Vec<Line> {
    let mut lines: BTreeMap<FrameId, Line> = BTreeMap::new();
    for one in members.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        let Some(stack) = one.alloc.map_or(one.stack, |event| facts.seen_stack(event)) else { continue };
        let Some(frame) = facts.site(stack) else { continue };
        let line =
            lines.entry(frame).or_insert(Line { frame, bytes: Bytes::ZERO, stack, largest: Bytes::ZERO });
        line.bytes += one.bytes;
        if one.bytes > line.largest {
            (line.stack, line.largest) = (stack, one.bytes);
        }
    }
    let mut lines: Vec<Line> = lines.into_values().collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.bytes), line.frame));
    lines
}
