//! Optimizer state that is allocated again and again.

use std::collections::BTreeSet;

use super::{declare_rule, measure, place, shown};
use crate::facts::{Change, Changes, Facts, StateMaking};
use crate::finding::{Finding, Impact, Related, Severity, Value};
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, StackId, count};

declare_rule! {
    /// The same optimizer state is allocated again and again.
    OptimizerStateRegrowth = "optimizer-state-regrowth", Leak, Error,
    needs: [History, Stacks, Optimizer],
    summary: "the same optimizer state is allocated again and again",
}

/// Less than this share of the peak is not worth a line.
const MATTERS: f64 = 0.01;
/// How far the state may outgrow the gradients that it is for, against the first making: a group of parameters that is
/// added to an optimizer brings its gradients along. Recordings that add groups measure 1, those that pile up states 2 and
/// more with the second making.
const OUTGROWN: f64 = 1.5;
/// A model made anew has parameters for at least this share of its optimizer's state.
const NEW_MODEL: f64 = 0.2;

impl OptimizerStateRegrowth {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let makings = regrown(facts);
        let (Some(first), Some(last)) = (makings.first(), makings.last()) else { return Vec::new() };
        let state = first.bytes;
        let old: Vec<AllocationId> = makings
            .iter()
            .take(makings.len() - 1)
            .flat_map(|making| making.tensors.iter().copied())
            .collect();
        let kept: Vec<AllocationId> = old.iter().copied().filter(|id| outlives(facts, *id, last)).collect();
        let resident = bytes(facts, &kept);
        let grows = resident.share_of(state) >= 0.5;
        let message = if last.bytes.share_of(state) > OUTGROWN {
            format!("the optimizer's state is made {} times, up to {}", makings.len(), last.bytes)
        } else {
            format!("the optimizer's {state} of state are made {} times", makings.len())
        };
        let help = if grows {
            "create the optimizer once, outside the loop, and set group[\"lr\"] of its param_groups; keep none of the old ones"
        } else {
            "create the optimizer once, outside the loop, and change its rate: for group in optimizer.param_groups: group[\"lr\"] = lr"
        };
        let mut finding = Self::META.finding(facts, message, help);
        finding.severity = match (grows, makings.len()) {
            (_, ..=2) => Severity::Info,
            (true, _) => Severity::Error,
            (false, _) => Severity::Warning,
        };
        finding.confidence = if makings.len() > 2 { Confidence::High } else { Confidence::Low };
        let made = making_place(facts, last);
        finding.location = made.and_then(|(_, frame)| place(facts, frame));
        finding.stack = made.map(|(stack, _)| shown(facts, stack)).unwrap_or_default();
        let born = last.tensors.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
        finding.phase = born.map(|event| facts.phase(event)).unwrap_or_default();
        "state that exists already is made anew in this step".clone_into(&mut finding.label);
        finding.related = old_goes(facts, &old, &kept);
        let steps: Vec<String> = makings.iter().map(|making| (making.step + 1).to_string()).collect();
        let fate = if grows {
            format!("{resident} of earlier states are still alive: something holds the old optimizers")
        } else {
            "the earlier state goes when the name is bound to the new optimizer: its moments are lost"
                .to_owned()
        };
        finding.evidence = vec![
            measure(
                "state",
                Value::Bytes(state),
                format!("{} of the same sizes", count(first.tensors.len(), "tensor")),
            ),
            measure(
                "makings",
                Value::Count(makings.len() as u64),
                format!("made in steps {}", steps.join(", ")),
            ),
            measure("old-state-alive", Value::Bytes(resident), fate),
        ];
        let mut changes = Changes::default();
        for id in &kept {
            if let Some(event) = born {
                changes.set(*id, Change::EndAt(event));
            }
        }
        finding.impact = Impact {
            peak: Some(changes.saving(facts.timeline)),
            resident: Some(resident),
            ..Impact::default()
        };
        vec![finding]
    }
}

/// The makings of one state, if there are several and no new model asks for them.
fn regrown<'a>(facts: &'a Facts) -> &'a [StateMaking] {
    let makings = facts.state_makings();
    let matters = makings.first().is_some_and(|first| first.bytes.share_of(facts.peak()) >= MATTERS);
    let new_models =
        makings.iter().skip(1).filter(|making| making.new_parameters.share_of(making.bytes) >= NEW_MODEL);
    let same_line = |making: &StateMaking| making_place(facts, making).map(|(_, frame)| frame);
    let alike = makings.windows(2).all(|pair| match pair {
        [a, b] => same_line(a) == same_line(b),
        _ => true,
    });
    let new_groups = new_groups(facts, makings);
    if makings.len() < 2 || !matters || !alike || new_groups || new_models.count() * 2 >= makings.len() {
        &[]
    } else {
        makings
    }
}

/// Whether the earlier states are alive because they are in use: there are gradients for all of it.
fn new_groups(facts: &Facts, makings: &[StateMaking]) -> bool {
    let (Some(first), Some(last)) = (makings.first(), makings.last()) else { return false };
    let earlier = makings.iter().take(makings.len() - 1).flat_map(|making| making.tensors.iter().copied());
    let (earlier, kept): (Vec<AllocationId>, Vec<AllocationId>) =
        earlier.partition(|id| !outlives(facts, *id, last));
    let ((state, gradients), (state_then, gradients_then)) = (last.alive(facts), first.alive(facts));
    let outgrown = state.share_of(gradients) > OUTGROWN * state_then.share_of(gradients_then);
    facts.bytes(&kept) > facts.bytes(&earlier) && gradients > Bytes::ZERO && !outgrown
}

/// What regrown states explain: no other rule reports it again.
pub(super) fn explained(facts: &Facts) -> impl Iterator<Item = AllocationId> {
    regrown(facts).iter().flat_map(|making| making.tensors.iter().copied())
}

fn outlives(facts: &Facts, id: AllocationId, last: &StateMaking) -> bool {
    let birth = last.tensors.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let freed = facts.timeline.allocation(id).and_then(|one| one.free_requested);
    birth.is_some_and(|birth| freed.is_none_or(|freed| freed > birth))
}

fn bytes(facts: &Facts, ids: &[AllocationId]) -> Bytes {
    ids.iter().filter_map(|id| facts.timeline.allocation(*id)).map(|one| one.bytes).sum()
}

/// The stack and the user's line under which a making's first tensor was made.
fn making_place(facts: &Facts, making: &StateMaking) -> Option<(StackId, FrameId)> {
    let event = facts.timeline.allocation(*making.tensors.first()?)?.alloc?;
    let stack = facts.seen_stack(event)?;
    Some((stack, facts.user_frame(stack)?))
}

/// Where the old state goes.
fn old_goes(facts: &Facts, old: &[AllocationId], kept: &[AllocationId]) -> Vec<Related> {
    let kept: BTreeSet<&AllocationId> = kept.iter().collect();
    let freed: Option<EventIndex> = old
        .iter()
        .filter(|id| !kept.contains(id))
        .find_map(|id| facts.timeline.allocation(*id)?.free_requested);
    let frame =
        freed.and_then(|event| facts.trace.event(event)?.stack).and_then(|stack| facts.user_frame(stack));
    let message = "the old optimizer's state goes here".to_owned();
    frame
        .and_then(|frame| place(facts, frame))
        .map(|location| Related { location, message })
        .into_iter()
        .collect()
}
