//! Optimizer state that is allocated again and again.

use std::collections::BTreeSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, StateMaking, StateSizes};
use crate::finding::{Finding, Measure, Quantity, Related, Severity};
use crate::lives::{Change, Changes};
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, StackId, count};

declare_rule! {
    /// The same optimizer state is allocated again and again.
    OptimizerStateRegrowth = "optimizer-state-regrowth", Leak, Error,
    needs: [History, Stacks, Updates],
    summary: "the same optimizer state is allocated again and again",
}

/// How far the state may outgrow the gradients that it is for, against the first making: a group of parameters that is
/// added to an optimizer brings its gradients along. Recordings that add groups measure 1, those that pile up states 2 and
/// more with the second making.
static OUTGROWN: Threshold<f64> = Threshold::new("rules::optimizer_state_regrowth::OUTGROWN", 1.5);
/// A model made anew has parameters for at least this share of its optimizer's state.
static NEW_MODEL: Threshold<f64> = Threshold::new("rules::optimizer_state_regrowth::NEW_MODEL", 0.2);

/// Makings from which on they are a habit: a second state may be a second phase of training.
static HABIT: Threshold<usize> = Threshold::new("rules::optimizer_state_regrowth::HABIT", 3);

/// What became of the states before the last.
struct Earlier {
    all: Vec<AllocationId>,
    /// What of it is still alive when the last state is made.
    kept: Vec<AllocationId>,
}

impl OptimizerStateRegrowth {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let makings = regrown(facts);
        let Some(first) = makings.first() else { return Vec::new() };
        let before = makings.iter().take(makings.len() - 1);
        let all: Vec<AllocationId> = before.flat_map(|making| making.tensors.iter().copied()).collect();
        let kept = if in_use(facts, makings).is_some() { Vec::new() } else { kept(facts, makings) };
        let mended = gone_with_the_next(facts, makings, &kept);
        let about: Vec<AllocationId> =
            makings.iter().flat_map(|making| making.tensors.iter().copied()).collect();
        let resident = facts.bytes(&kept);
        let piles_up = resident.times(2) >= first.bytes;
        let earlier = Earlier { all, kept };
        let told = move |worth: &Worth| tell(facts, makings, &earlier, worth);
        let claim = Claim::new(&Self::META, about, Mending::lives(mended), told);
        let habit = makings.len() - in_use(facts, makings).unwrap_or(0) >= HABIT.get();
        // Where the old state goes, the new one costs what it costs; that its moments are lost is worth a warning. What is made for a
        // growing set of parameters holds the one before.
        let again = makings.iter().rev().skip(1).map(|making| making.bytes).max().unwrap_or_default();
        let claim = claim.holding(if piles_up { resident } else { again });
        let most = match (piles_up, habit) {
            (_, false) => Severity::Info,
            (true, true) => Severity::Error,
            (false, true) => Severity::Warning,
        };
        // Where the first step is lost, so is what the later ones are held against: the history of L-BFGS has equal sizes, too.
        let knows_first = facts.evidence.first_iteration().is_ok();
        vec![claim.sure(if habit && knows_first { Confidence::High } else { Confidence::Low }).at_most(most)]
    }
}

/// The lives of what is kept, if each state went where the next one is made.
fn gone_with_the_next(facts: &Facts, makings: &[StateMaking], kept: &[AllocationId]) -> Changes {
    let mut mended = Changes::default();
    for pair in makings.windows(2) {
        let [old, new] = pair else { continue };
        let Some(born) = new.begun(facts) else { continue };
        for id in old.tensors.iter().filter(|id| kept.binary_search(id).is_ok()) {
            mended.set(*id, Change::EndAt(born));
        }
    }
    mended
}

fn tell(facts: &Facts, makings: &[StateMaking], earlier: &Earlier, worth: &Worth) -> Finding {
    let meta = &OptimizerStateRegrowth::META;
    let (Some(first), Some(last)) = (makings.first(), makings.last()) else {
        return Finding::of(meta.name, meta.group, Severity::Info);
    };
    let resident = facts.bytes(&earlier.kept);
    let piles_up = resident.times(2) >= first.bytes;
    let message = if last.bytes.share_of(first.bytes) > OUTGROWN.get() {
        format!("the optimizer's state is made {} times, up to {}", makings.len(), last.bytes)
    } else {
        format!("the optimizer's {} of state are made {} times", first.bytes, makings.len())
    };
    let help = if piles_up {
        "create the optimizer once, outside the loop, and set group[\"lr\"] of its param_groups; keep none of the old ones"
    } else {
        "create the optimizer once, outside the loop, and change its rate: for group in optimizer.param_groups: group[\"lr\"] = lr"
    };
    let born = last.begun(facts);
    let place = making_place(facts, last)
        .map_or(Anchor::Nowhere, |(stack, frame)| Anchor::At(frame, Some(stack), born));
    let telling = Telling {
        message,
        help: help.to_owned(),
        label: "this step makes state again that exists already".to_owned(),
        related: old_goes(facts, earlier, &place).into_iter().collect(),
        evidence: evidence(makings, first, (resident, piles_up)),
        place,
    };
    telling.told(facts, meta, worth)
}

fn evidence(
    makings: &[StateMaking],
    first: &StateMaking,
    (resident, piles_up): (Bytes, bool),
) -> Vec<Measure> {
    let steps: Vec<String> = makings.iter().map(|making| (making.step + 1).to_string()).collect();
    let fate = if piles_up {
        format!("{resident} of earlier states are still alive: something holds the old optimizers")
    } else {
        "the earlier state goes when the name is bound to the new optimizer: its moments are lost".to_owned()
    };
    vec![
        measure(
            "state",
            Quantity::Bytes(first.bytes),
            format!("{} of the same sizes", count(first.tensors.len(), "tensor")),
        ),
        measure(
            "makings",
            Quantity::Count(makings.len() as u64),
            format!("made in steps {}", steps.join(", ")),
        ),
        measure("old-state-alive", Quantity::Bytes(resident), fate),
    ]
}

/// The makings of one state, if there are several and no new model asks for them.
fn regrown<'a>(facts: &'a Facts) -> &'a [StateMaking] {
    let makings = facts.state_makings();
    let new_models = makings
        .iter()
        .skip(1)
        .filter(|making| making.new_parameters.share_of(making.bytes) >= NEW_MODEL.get());
    let same_line = |making: &StateMaking| making_place(facts, making).map(|(_, frame)| frame);
    let alike = makings.windows(2).all(|pair| match pair {
        [a, b] => same_line(a) == same_line(b),
        _ => true,
    });
    let knows_first = facts.evidence.first_iteration().is_ok();
    let meant = new_groups(facts, makings)
        || in_use(facts, makings).is_some_and(|others| others + 1 == makings.len())
        || (knows_first && is_kept_by_every_step(facts, makings));
    if makings.len() < 2 || !alike || meant || new_models.count() * 2 >= makings.len() {
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
    let outgrown = state.share_of(gradients) > OUTGROWN.get() * state_then.share_of(gradients_then);
    facts.bytes(&kept) > facts.bytes(&earlier) && gradients > Bytes::ZERO && !outgrown
}

/// What is still alive of the earlier makings when the last one begins.
fn kept(facts: &Facts, makings: &[StateMaking]) -> Vec<AllocationId> {
    let Some((last, earlier)) = makings.split_last() else { return Vec::new() };
    let earlier = earlier.iter().flat_map(|making| making.tensors.iter().copied());
    earlier.filter(|id| outlives(facts, *id, last)).collect()
}

/// How many of the earlier makings are alive because other optimizers use them; `None` if there are no parameters for all that is. Several
/// optimizers, each of parameters of its own (adapters, heads, members of an ensemble), make theirs in the first step of each. How much a
/// parameter needs the first step shows, by the gradients that it has.
fn in_use(facts: &Facts, makings: &[StateMaking]) -> Option<usize> {
    // Of a recording that begins late, what is older may be state, too.
    facts.evidence.first_iteration().ok()?;
    let (first, last) = makings.first().zip(makings.last())?;
    let step = facts.updates().get(first.step)?;
    let kept = kept(facts, makings);
    let ids = |role: Role| facts.with_role(role).map(|(id, _)| id).collect::<Vec<_>>();
    let before_it =
        |id: &&AllocationId| facts.timeline.allocation(**id).is_some_and(|one| one.alive_after(step.start));
    let parameters = StateSizes::of(facts, &ids(Role::Parameter));
    let gradients = StateSizes::of(facts, ids(Role::Gradient).iter().filter(before_it));
    let needed = StateSizes::of(facts, &first.tensors);
    let fits = |bytes: Bytes, alive: usize| {
        let with_gradient = gradients.count(bytes);
        with_gradient > 0 && alive * with_gradient <= needed.count(bytes) * parameters.count(bytes)
    };
    let fit = !kept.is_empty() && StateSizes::of(facts, kept.iter().chain(&last.tensors)).mostly(fits);
    fit.then(|| {
        let is_kept = |making: &&StateMaking| making.tensors.iter().any(|id| kept.binary_search(id).is_ok());
        makings.iter().filter(is_kept).count()
    })
}

/// Whether a step of the program's own makes a set every time and lets go of none: something that the optimizer files away, which
/// grows like any other list. An optimizer that is made anew makes its state in its first step alone.
fn is_kept_by_every_step(facts: &Facts, makings: &[StateMaking]) -> bool {
    let (Some(first), Some(last)) = (makings.first(), makings.last()) else { return false };
    let innermost =
        making_place(facts, last).and_then(|(stack, frame)| Some((facts.frames.innermost(stack)?, frame)));
    let every = last.step - first.step + 1 == makings.len() && makings.len() >= HABIT.get();
    let kept = |making: &StateMaking| making.tensors.iter().all(|id| outlives(facts, *id, last));
    every && innermost.is_some_and(|(inner, user)| inner == user) && makings.iter().all(kept)
}

fn outlives(facts: &Facts, id: AllocationId, last: &StateMaking) -> bool {
    let birth = last.begun(facts);
    let freed = facts.timeline.allocation(id).and_then(|one| one.free_requested);
    birth.is_some_and(|birth| freed.is_none_or(|freed| freed > birth))
}

/// The stack and the user's line under which a making's first tensor was made.
fn making_place(facts: &Facts, making: &StateMaking) -> Option<(StackId, FrameId)> {
    let stack = facts.seen_stack(making.begun(facts)?)?;
    Some((stack, facts.user_frame(stack)?))
}

/// Where the old state goes.
fn old_goes(facts: &Facts, earlier: &Earlier, place: &Anchor) -> Option<Related> {
    let kept: BTreeSet<&AllocationId> = earlier.kept.iter().collect();
    let mut gone = earlier.all.iter().filter(|id| !kept.contains(id));
    let freed: Option<EventIndex> = gone.find_map(|id| facts.timeline.allocation(*id)?.free_requested);
    let stack = freed.and_then(|event| facts.trace.event(event)?.stack);
    related(
        facts,
        stack.and_then(|stack| facts.user_frame(stack)),
        place,
        "the old optimizer's state goes here",
    )
}
