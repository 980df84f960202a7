//! Gradients that outlive the optimizer's step into the next forward pass.

mod used;

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Quantity, Related, Severity};
use crate::frames::{Method, Owner, PhaseSign};
use crate::lives::{Change, Changes};
use crate::program::{Phase, Step};
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index, StackId, count, percent};
use used::{GradientSet, Makers};

declare_rule! {
    /// Old gradients live through the next forward pass and raise the peak.
    LateZeroGrad = "late-zero-grad", Peak, Warning,
    needs: [History, Updates],
    summary: "old gradients live through the next forward pass and raise the peak",
}

/// A gradient that is cleared after the step that used it, and not at once.
struct Late {
    id: AllocationId,
    bytes: Bytes,
    /// The step that used it last; `None` where that was before the recording.
    step: Option<Step>,
    freed: EventIndex,
}

impl LateZeroGrad {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let late = late_gradients(facts);
        let mut mended = Changes::default();
        for one in &late {
            let end = one.step.and_then(|step| EventIndex::at(step.end.position().saturating_sub(1)));
            mended.set(one.id, end.map_or(Change::Remove, Change::EndAt));
        }
        let cleared = clearing_stack(facts, &late);
        let of_a_framework = cleared.is_some_and(|stack| is_of_a_framework(facts, stack));
        let seen = facts.calls.annotated && !facts.program.steps.is_empty();
        let sure = if seen { Confidence::High } else { Confidence::Medium };
        let about: Vec<AllocationId> = late.iter().map(|one| one.id).collect();
        let told = move |worth: &Worth| tell(facts, &late, cleared, worth);
        let claim = Claim::new(&Self::META, about, Mending::lives(mended), told).sure(sure);
        vec![claim.at_most(if of_a_framework { Severity::Info } else { Severity::Error })]
    }
}

/// Gradients that a step used and that were given back later, with the last such step.
fn late_gradients(facts: &Facts) -> Vec<Late> {
    let steps = facts.updates();
    let done = end_of_training(facts);
    let mut sets: BTreeMap<GradientSet, Vec<Late>> = BTreeMap::new();
    for (id, one) in facts.timeline.iter() {
        let Some(freed) = one.free_requested else { continue };
        // What goes after the last step, and is not cleared, goes with the model: a function of the program returns.
        if done.is_some_and(|done| freed > done) && facts.phase(freed) != Phase::ZeroGrad {
            continue;
        }
        let is_cleared = one.alloc.is_none() && facts.phase(freed) == Phase::ZeroGrad;
        if facts.role(id) != Role::Gradient && !is_cleared {
            continue;
        }
        let first = one.alloc.map(|born| steps.partition_point(|step| step.end <= born));
        let last = steps.partition_point(|step| step.end <= freed).checked_sub(1);
        let is_used = match (first, last) {
            (Some(first), Some(last)) => first <= last,
            // Older than the recording: used by a step before it, if it is cleared before any step.
            (None, None) => true,
            (first, last) => first.is_none() && last.is_some(),
        };
        if is_used {
            let set = GradientSet { first, last, is_cleared };
            sets.entry(set).or_default().push(Late { id, bytes: one.bytes, step: None, freed });
        }
    }
    let mut makers = Makers::of(facts);
    let mut late: Vec<Late> = Vec::new();
    for (set, gradients) in sets {
        let sizes: Vec<Bytes> = gradients.iter().map(|one| one.bytes).collect();
        let step = makers.last_user(&set, &sizes).and_then(|at| steps.get(at)).copied();
        if step.is_some_and(|step| are_bound_anew(facts, &gradients, step)) {
            continue;
        }
        late.extend(gradients.into_iter().map(|one| Late { step, ..one }));
    }
    late.sort_unstable_by_key(|one| one.id);
    late
}

/// Whether a set goes only when its successors are there: no `zero_grad` clears them.
fn are_bound_anew(facts: &Facts, gradients: &[Late], step: Step) -> bool {
    let succeeded = |one: &&Late| {
        facts.timeline.allocation(one.id).is_some_and(|gradient| facts.is_bound_anew(gradient, step.end))
    };
    let bound: Bytes = gradients.iter().filter(succeeded).map(|one| one.bytes).sum();
    bound.times(2) > gradients.iter().map(|one| one.bytes).sum()
}

/// The moment after which there is neither a step nor a new gradient.
fn end_of_training(facts: &Facts) -> Option<EventIndex> {
    let is_gradient = |id: &AllocationId| facts.role(*id) == Role::Gradient;
    let gradients = facts.timeline.iter().filter(|(id, _)| is_gradient(id));
    let last_gradient = gradients.filter_map(|(_, one)| one.alloc).max();
    last_gradient.max(facts.updates().last().map(|step| step.end))
}

fn tell(facts: &Facts, late: &[Late], cleared: Option<StackId>, worth: &Worth) -> Finding {
    let bytes = held_at_once(late);
    let backward = late.iter().find_map(|one| {
        let born = facts.timeline.allocation(one.id)?.alloc?;
        facts.seen_stack(born)
    });
    let label = match cleared {
        Some(_) => "cleared only here, after the forward pass",
        None => "made here, and cleared only after the next forward pass",
    };
    let place = Anchor::of_stack(facts, cleared.or(backward));
    let steps = late.iter().filter_map(|one| one.step).map(|step| step.start);
    let steps = steps.collect::<BTreeSet<_>>().len();
    let telling = Telling {
        message: format!("old gradients ({bytes}) live through the next forward pass"),
        help: "clear them directly after the step: optimizer.step(); optimizer.zero_grad(set_to_none=True)"
            .to_owned(),
        label: label.to_owned(),
        related: last_use(facts, late, &place).into_iter().collect(),
        evidence: vec![
            measure("gradients", Quantity::Bytes(bytes), format!("{bytes} of gradients at once")),
            measure(
                "steps",
                Quantity::Count(steps as u64),
                format!("held after {}", count(steps, "optimizer step")),
            ),
            measure(
                "share-of-peak",
                Quantity::Ratio(worth.share),
                format!("{} of the peak", percent(worth.share)),
            ),
        ],
        place,
    };
    telling.told(facts, &LateZeroGrad::META, worth)
}

/// The most that outlived one step.
fn held_at_once(late: &[Late]) -> Bytes {
    let mut by_step: BTreeMap<Option<EventIndex>, Bytes> = BTreeMap::new();
    for one in late {
        *by_step.entry(one.step.map(|step| step.start)).or_default() += one.bytes;
    }
    by_step.into_values().max().unwrap_or_default()
}

/// The stack under which most of the gradients are cleared: `zero_grad`, or the user's own code that drops them.
fn clearing_stack(facts: &Facts, late: &[Late]) -> Option<StackId> {
    if !facts.timeline.frees_have_stacks() {
        return None;
    }
    let mut bytes: BTreeMap<StackId, Bytes> = BTreeMap::new();
    for one in late {
        let stack = facts.trace.event(one.freed).and_then(|event| event.stack);
        if let Some(stack) = stack.filter(|stack| facts.site(*stack).is_some()) {
            *bytes.entry(stack).or_default() += one.bytes;
        }
    }
    let most = bytes.into_iter().max_by_key(|(stack, bytes)| (*bytes, std::cmp::Reverse(*stack)));
    most.map(|(stack, _)| stack)
}

/// Whether a library's loop decides when gradients are cleared, so that no line of the user's does.
fn is_of_a_framework(facts: &Facts, stack: StackId) -> bool {
    let mut frames = facts.frames.python(stack).iter().rev().skip_while(|frame| {
        matches!(facts.frames.owner(**frame), Owner::Torch | Owner::Python)
            || matches!(facts.frames.phase(**frame), PhaseSign::ZeroGrad | PhaseSign::Wrapper)
            || facts.frames.method(**frame) == Method::ZeroGrad
    });
    frames.next().is_some_and(|frame| !facts.frames.is_own(*frame))
}

/// The line of the step that used the gradients last.
fn last_use(facts: &Facts, late: &[Late], place: &Anchor) -> Option<Related> {
    let mut steps: Vec<Step> = late.iter().filter_map(|one| one.step).collect();
    // The gradients of one step stand together: it is searched once.
    steps.dedup_by_key(|step| step.start);
    let stack = steps.into_iter().find_map(|step| facts.step_stack(step))?;
    related(facts, facts.site(stack), place, "used for the last time here")
}
