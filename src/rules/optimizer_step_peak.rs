//! Temporaries of an optimizer's step that set the peak of the run.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, GuiltyStack};
use crate::finding::{Finding, Quantity};
use crate::frames::PhaseSign;
use crate::lives::Changes;
use crate::program::{Phase, Step};
use crate::role::Role;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, count, percent};

declare_rule! {
    /// Temporaries of the optimizer's step set the peak.
    OptimizerStepPeak = "optimizer-step-peak", Peak, Warning,
    needs: [History, Stacks, Updates],
    in_part: [Iterations],
    summary: "temporaries of the optimizer's step set the peak",
}

/// The share of the gradients, each size counted once, of which an update that leaves no other mark has to make temporaries. A norm or a histogram of a few layers is none.
static MOST: Threshold<f64> = Threshold::new("rules::optimizer_step_peak::MOST", 0.5);

/// Optimizers of PyTorch that have a fused kernel, by the name of their file.
const FUSED: [&str; 4] = ["adam", "adamw", "sgd", "adagrad"];

impl OptimizerStepPeak {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let is_seen = !facts.program.steps.is_empty();
        let about = if is_seen { temporaries(facts) } else { of_own_updates(facts) };
        // Where gradients are not seen to be cleared, only what is made of all of them shows that they are used.
        if facts.evidence.updates().is_err() && !each_update_takes_most(facts, &about) {
            return Vec::new();
        }
        let mending = Mending::lives(Changes::removing(about.iter().copied()));
        let told = move |worth: &Worth| tell(facts, worth);
        let claim = Claim::new(&Self::META, about, mending, told);
        vec![claim.sure(if is_seen { Confidence::High } else { Confidence::Medium })]
    }
}

/// What steps make and give back before they end.
fn temporaries(facts: &Facts) -> Vec<AllocationId> {
    let made = facts.timeline.iter().filter(|(id, one)| {
        let short = matches!(facts.role(*id), Role::Temporary | Role::Unknown | Role::Workspace);
        short && one.alloc.is_some_and(|event| facts.phase(event) == Phase::OptimizerStep)
    });
    made.map(|(id, _)| id).collect()
}

/// What an optimizer of the program's own makes and gives back: tensors of the gradients' sizes, made where parameters are updated. A gradient for
/// each sample is as large as no parameter, and what is computed with it is no update yet.
fn of_own_updates(facts: &Facts) -> Vec<AllocationId> {
    let sizes = |role| -> FxHashSet<Bytes> { facts.with_role(role).map(|(_, one)| one.bytes).collect() };
    let (mut gradients, parameters) = (sizes(Role::Gradient), sizes(Role::Parameter));
    gradients.retain(|bytes| parameters.is_empty() || parameters.contains(bytes));
    let updates = facts.updates();
    let updates_at = |event: EventIndex| {
        let last = updates.partition_point(|update| update.start <= event).checked_sub(1);
        last.and_then(|last| updates.get(last)).is_some_and(|update| event < update.end)
    };
    let made = facts.with_role(Role::Temporary).filter(|(_, one)| gradients.contains(&one.bytes));
    made.filter(|(_, one)| one.alloc.is_some_and(updates_at)).map(|(id, _)| id).collect()
}

/// Whether each update makes temporaries of most of the gradients, by their sizes.
fn each_update_takes_most(facts: &Facts, about: &[AllocationId]) -> bool {
    let sizes = |ids: &mut dyn Iterator<Item = &Allocation>| -> Bytes {
        ids.map(|one| one.bytes).collect::<BTreeSet<Bytes>>().into_iter().sum()
    };
    let gradients = sizes(&mut facts.with_role(Role::Gradient).map(|(_, one)| one));
    let made: Vec<&Allocation> = about.iter().filter_map(|id| facts.timeline.allocation(*id)).collect();
    let updates = facts.updates();
    let takes = |update: &Step| {
        let inside = |one: &&Allocation| one.alloc.is_some_and(|at| update.start <= at && at < update.end);
        sizes(&mut made.iter().copied().filter(inside)).share_of(gradients) >= MOST.get()
    };
    gradients > Bytes::ZERO && updates.len() >= 2 && updates.iter().all(takes)
}

fn tell(facts: &Facts, worth: &Worth) -> Finding {
    let (at_peak, peak) = standing_at_peak(facts, &worth.about);
    let bytes = facts.bytes(&at_peak);
    let optimizer = facts.guilty(at_peak.iter().copied()).iter().find_map(|one| optimizer_of(facts, one));
    let help = match optimizer {
        Some(name) if FUSED.contains(&name) => {
            "update in one kernel without temporaries: pass fused=True to the optimizer (or foreach=False)"
        }
        Some(_) => "update one tensor at a time: pass foreach=False to the optimizer",
        None => "update one tensor at a time and in place: torch.addcmul(..., out=buffer), p.add_(update)",
    };
    let share = percent(bytes.share_of(peak));
    let telling = Telling {
        message: format!("temporaries of the optimizer's step set the peak ({bytes})"),
        help: help.to_owned(),
        place: Anchor::responsible(facts, &at_peak, false),
        label: format!("{} of {bytes} live here at the peak", count(at_peak.len(), "temporary tensor")),
        related: Vec::new(),
        evidence: vec![
            measure(
                "temporaries",
                Quantity::Bytes(bytes),
                format!("{bytes} of temporaries, {share} of the peak"),
            ),
            measure("tensors", Quantity::Count(at_peak.len() as u64), count(at_peak.len(), "tensor")),
            measure(
                "optimizer",
                Quantity::Text(optimizer.unwrap_or("unknown").to_owned()),
                optimizer.map_or(String::new(), |name| format!("torch.optim.{name}")),
            ),
        ],
    };
    telling.told(facts, &OptimizerStepPeak::META, worth)
}

/// Which of some temporaries stand at the peak, and how high that is: at that of the steady iterations, or at the run's, where the first step alone is at it.
fn standing_at_peak(facts: &Facts, about: &[AllocationId]) -> (Vec<AllocationId>, Bytes) {
    let (steady, run) = (facts.steady(), &facts.timeline.peak_requested);
    let standing = |(event, peak): (Option<EventIndex>, Bytes)| {
        let stands = |id: &AllocationId| {
            facts.timeline.allocation(*id).zip(event).is_some_and(|(one, at)| one.alive_after(at))
        };
        (about.iter().copied().filter(stands).collect::<Vec<_>>(), peak)
    };
    let peaks = [(steady.peak_event, steady.peak), (run.event, run.bytes)];
    let found = peaks.into_iter().map(standing).find(|(standing, _)| !standing.is_empty());
    found.unwrap_or((Vec::new(), run.bytes))
}

/// The file of PyTorch's optimizer that a stack runs in: `adam`.
fn optimizer_of<'a>(facts: &Facts<'a>, guilty: &GuiltyStack) -> Option<&'a str> {
    let is_optimizer = |frame: &&FrameId| facts.frames.phase(**frame) == PhaseSign::Optimizer;
    let frame = facts.frames.python(guilty.stack).iter().rev().find(is_optimizer)?;
    facts.frames.optimizer(facts.snapshot, *frame)
}
