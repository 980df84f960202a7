//! The stage on which lifetimes are judged: which stretch of the program each event belongs to.
//!
//! In: a timeline, the program's phases and iterations, the traits of the stacks. Out: a [`Life`] for each allocation,
//! and answers about order: same stretch, same iteration, a forward pass in between. Stretches are maximal runs of
//! events of one [`StepSide`]; they are few, so that a binary search over their starts replaces a table over the events.

use super::stacks::{Graph, StackTraits, TorchOrigin, TraitTable};
use crate::frames::Frames;
use crate::program::{Phase, Program};
use crate::snapshot::{Action, Event, Snapshot};
use crate::timeline::{Allocation, FreeStacks, Timeline};
use crate::unit::{Bytes, EventIndex, Index, Ranks, StackId};

/// The part of a training step that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepSide {
    /// The backward pass, recomputation included.
    Backward,
    /// The optimizer's step.
    Optimizer,
    /// Clearing gradients.
    ZeroGrad,
    /// Everything else.
    Main,
}

impl StepSide {
    fn of(phase: Phase) -> StepSide {
        match phase {
            Phase::Backward | Phase::Recomputation => StepSide::Backward,
            Phase::OptimizerStep => StepSide::Optimizer,
            Phase::ZeroGrad => StepSide::ZeroGrad,
            _ => StepSide::Main,
        }
    }
}

/// An allocation as the rules of this module see it. Events are positions in the trace. Nothing is looked up before it is
/// asked for: most questions need a size and a date.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life<'s> {
    pub(super) scene: &'s Scene<'s>,
    allocation: &'s Allocation,
    /// The allocation's position.
    pub(super) at: usize,
}

impl Life<'_> {
    pub(super) fn bytes(&self) -> Bytes {
        self.allocation.bytes
    }

    pub(super) fn stack(&self) -> Option<StackId> {
        self.allocation.stack
    }

    pub(super) fn stream(&self) -> u16 {
        self.allocation.stream
    }

    pub(super) fn born(&self) -> Option<usize> {
        self.allocation.alloc.map(Index::position)
    }

    /// When the program gave it back; `None` while it is held at the end.
    pub(super) fn died(&self) -> Option<usize> {
        given_back(self.allocation).map(Index::position)
    }

    /// Whether it was held for as long as anything was made.
    pub(super) fn is_for_good(&self) -> bool {
        self.died().is_none_or(|died| died > self.scene.last_made)
    }

    pub(super) fn born_phase(&self) -> Option<Phase> {
        self.born().map(|at| self.scene.phase(at))
    }

    pub(super) fn died_phase(&self) -> Option<Phase> {
        self.died().map(|at| self.scene.phase(at))
    }

    /// What the stack says that asked for it.
    pub(super) fn made(&self) -> StackTraits {
        self.scene.traits.get(self.allocation.stack)
    }

    /// What the stack says that gave it back.
    fn freed(&self) -> StackTraits {
        self.scene.traits.get(self.scene.freed_under.get(self.at).copied().flatten())
    }

    /// The side on which it was made; none where it is older than the recording.
    pub(super) fn born_side(&self) -> Option<StepSide> {
        self.born().map(|at| self.scene.side(at))
    }

    /// Whether the backward pass let it go.
    pub(super) fn ends_in_backward(&self) -> bool {
        self.died().is_some_and(|at| self.scene.side(at) == StepSide::Backward)
    }

    /// Whether it was given back in the stretch that made it.
    pub(super) fn is_brief(&self) -> bool {
        let dates = self.born().zip(self.died());
        dates.is_some_and(|(born, died)| self.scene.stretch(born) == self.scene.stretch(died))
    }

    /// How many turns begin in its lifetime; one that is held at the end outlives the last.
    pub(super) fn turns(&self) -> usize {
        let scene = self.scene;
        let end = self.died().map_or(scene.turns.len() + 1, |at| scene.turn(at));
        end.saturating_sub(scene.turn(self.born().unwrap_or(0)))
    }

    /// Whether it was made before the work began.
    pub(super) fn is_from_setup(&self) -> bool {
        self.born().is_some_and(|born| born < self.scene.first_work)
    }

    /// Whether it was held beyond the moment at which the work began.
    pub(super) fn sees_work(&self) -> bool {
        self.died().is_none_or(|died| died > self.scene.first_work)
    }

    /// Whether it was made in the recording and is there when an optimizer steps next.
    pub(super) fn sees_a_step(&self) -> bool {
        let step = self.born().and_then(|born| self.scene.next_step(born));
        step.is_some_and(|step| self.died().is_none_or(|died| died > step))
    }

    /// Whether `zero_grad` gave it back.
    pub(super) fn cleared(&self) -> bool {
        self.died_phase() == Some(Phase::ZeroGrad) || self.freed().origin == TorchOrigin::ZeroGrad
    }

    /// Whether the autograd graph let it go as a saved tensor.
    pub(super) fn was_saved(&self) -> bool {
        self.freed().graph == Graph::Releases
    }

    /// Whether a forward pass made it that runs again for the backward pass (a checkpoint): it makes no gradients.
    pub(super) fn is_of_a_recomputation(&self) -> bool {
        match self.born_phase() {
            Some(Phase::Recomputation) => self.made().in_forward,
            Some(Phase::Backward) => self.made().in_inner_forward,
            _ => false,
        }
    }

    /// Whether the code of a module gave it back; where no release has a stack of its own, whether it went in a forward pass.
    pub(super) fn goes_in_forward(&self) -> bool {
        let by_module = self.freed().in_forward;
        by_module || self.scene.freed_under.is_empty() && self.died_phase().is_some_and(is_forward)
    }

    /// Whether it was a gradient that was added to one that was there.
    pub(super) fn was_added(&self) -> bool {
        self.freed().graph == Graph::Accumulates
    }
}

/// The stage.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) timeline: &'a Timeline,
    phases: &'a [Phase],
    traits: TraitTable,
    /// The stack under which each allocation was given back; none where free events carry the stack of their allocation
    /// (`context="alloc"`) and say nothing of the release.
    freed_under: Vec<Option<StackId>>,
    /// Where each stretch begins, and its side.
    stretches: Vec<(usize, StepSide)>,
    stretch_starts: Ranks,
    /// The first event of each turn after the first: an iteration, or what stands in for it.
    turns: Ranks,
    /// Where optimizers step: one that leaves no event (fused, with its state made) shows in an annotation.
    steps: Vec<usize>,
    /// Runs of events of a forward pass: first and last.
    forwards: Vec<(usize, usize)>,
    /// The first addresses of the segments, ascending.
    segments: Vec<u64>,
    /// The first event of a forward or backward pass; where none is known, of what follows setup or the first release.
    pub(super) first_work: usize,
    /// The last event that allocates.
    last_made: usize,
    /// Where the first and the last backward pass begin.
    pub(super) first_backward: Option<usize>,
    pub(super) last_backward: Option<usize>,
    /// Whether an optimizer of PyTorch's is seen: a step, or a stack of its code.
    pub(super) has_optimizer: bool,
    /// Whether any event has a stack.
    pub(super) has_stacks: bool,
    /// Whether there are no events at all.
    pub(super) is_still: bool,
}

impl<'a> Scene<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        timeline: &'a Timeline,
        program: &'a Program,
        frames: &Frames,
    ) -> Scene<'a> {
        let events = snapshot.devices.get(timeline.device.position()).map_or(&[][..], |trace| &trace.events);
        let copied = timeline.free_stacks == FreeStacks::Copied;
        let freed_under = if copied { Vec::new() } else { stacks_of_frees(events, timeline) };
        let phases = &program.phases[..];
        let stretches = stretches(events.len(), phases);
        let is_work = |phase: &Phase| is_forward(*phase) || *phase == Phase::Backward;
        let mut segments: Vec<u64> =
            snapshot.segments_of(timeline.device.position()).map(|segment| segment.address).collect();
        segments.sort_unstable();
        let traits = TraitTable::of(snapshot, frames);
        let of = |side: StepSide| stretches.iter().filter(move |one| one.1 == side).map(|one| one.0);
        Scene {
            timeline,
            has_optimizer: !program.steps.is_empty()
                || of(StepSide::Optimizer).next().is_some()
                || traits.shows(TorchOrigin::Optimizer),
            first_backward: of(StepSide::Backward).next(),
            last_backward: of(StepSide::Backward).next_back(),
            traits,
            freed_under,
            turns: Ranks::of(turns(program, &stretches)),
            steps: program.steps.iter().map(|step| step.start.position()).collect(),
            forwards: forwards(phases),
            first_work: phases.iter().position(is_work).unwrap_or_else(|| end_of_setup(events, phases)),
            last_made: events.iter().rposition(|event| event.action == Action::Alloc).unwrap_or(0),
            segments,
            is_still: events.is_empty(),
            has_stacks: snapshot.stacks.ids().any(|stack| !snapshot.stacks.get(stack).is_empty()),
            stretch_starts: Ranks::of(stretches.iter().map(|&(start, _)| start)),
            stretches,
            phases,
        }
    }

    /// Whether a stack shows a module that is built, moved, cast, copied or loaded.
    pub(super) fn makes_modules(&self) -> bool {
        self.traits.shows(TorchOrigin::Module) || self.traits.shows(TorchOrigin::File)
    }

    /// Whether there is a backward pass.
    pub(super) fn trains(&self) -> bool {
        self.first_backward.is_some()
    }

    /// The allocation at a position as the rules see it.
    pub(super) fn life(&self, at: usize) -> Option<Life<'_>> {
        self.timeline.allocations.get(at).map(|allocation| Life { scene: self, allocation, at })
    }

    /// All allocations, in their order.
    pub(super) fn lives(&self) -> impl Iterator<Item = Life<'_>> {
        let allocations = self.timeline.allocations.iter().enumerate();
        allocations.map(|(at, allocation)| Life { scene: self, allocation, at })
    }

    fn phase(&self, at: usize) -> Phase {
        self.phases.get(at).copied().unwrap_or_default()
    }

    /// The first address of the segment that held an address at the end; 0 where it was released since.
    pub(super) fn segment_of(&self, address: u64) -> u64 {
        let after = self.segments.partition_point(|&start| start <= address);
        after.checked_sub(1).and_then(|at| self.segments.get(at)).copied().unwrap_or(0)
    }

    /// The number of the stretch that holds an event.
    pub(super) fn stretch(&self, at: usize) -> usize {
        self.stretch_starts.up_to(at)
    }

    /// The side of an event.
    pub(super) fn side(&self, at: usize) -> StepSide {
        StepSide::of(self.phase(at))
    }

    /// The number of the turn that holds an event.
    pub(super) fn turn(&self, at: usize) -> usize {
        self.turns.up_to(at)
    }

    /// The number of the last turn.
    pub(super) fn last_turn(&self) -> usize {
        self.turns.len()
    }

    /// When an optimizer steps next after an event, whether or not that leaves an event.
    pub(super) fn next_step(&self, at: usize) -> Option<usize> {
        let next = self.stretches.get(self.stretch(at)..).unwrap_or_default();
        let seen = next.iter().find(|&&(_, of)| of == StepSide::Optimizer).map(|&(start, _)| start);
        let known = self.steps.get(self.steps.partition_point(|step| *step <= at)).copied();
        seen.into_iter().chain(known).min()
    }

    /// Whether an event stands right behind a backward pass of its turn, before any other forward pass or a step.
    pub(super) fn follows_backward(&self, at: usize) -> bool {
        let stretch = |back: usize| self.stretches.get(self.stretch(at).checked_sub(back)?);
        let Some((&(start, _), &(_, before))) = stretch(1).zip(stretch(2)) else { return false };
        let same_turn = start.checked_sub(1).is_some_and(|last| self.turn(last) == self.turn(at));
        let stepped =
            self.steps.get(self.steps.partition_point(|step| *step < start)).is_some_and(|step| *step <= at);
        before == StepSide::Backward && same_turn && !stepped && !self.forward_has_begun(at)
    }

    /// The first event of a forward pass at or after an event.
    pub(super) fn next_forward(&self, at: usize) -> Option<usize> {
        let run = self.forwards.partition_point(|&(_, last)| last < at);
        self.forwards.get(run).map(|&(first, _)| first.max(at))
    }

    /// Whether a forward pass has begun before an event, in the same turn and stretch.
    pub(super) fn forward_has_begun(&self, at: usize) -> bool {
        let run = self.forwards.partition_point(|&(first, _)| first < at);
        let last = run.checked_sub(1).and_then(|run| self.forwards.get(run)).map(|&(_, last)| last.min(at));
        last.is_some_and(|last| self.turn(last) == self.turn(at) && self.stretch(last) == self.stretch(at))
    }
}

/// Whether a phase is a forward pass of its own.
pub(super) fn is_forward(phase: Phase) -> bool {
    matches!(phase, Phase::Forward | Phase::Evaluation)
}

fn given_back(allocation: &Allocation) -> Option<EventIndex> {
    allocation.given_back()
}

fn stacks_of_frees(events: &[Event], timeline: &Timeline) -> Vec<Option<StackId>> {
    let stack = |allocation| events.get(given_back(allocation)?.position())?.stack;
    timeline.allocations.iter().map(stack).collect()
}

/// Where a recording without forward or backward passes gets to work: after the last event of setup or, if none is
/// known, at the first release.
fn end_of_setup(events: &[Event], phases: &[Phase]) -> usize {
    let setup = phases.iter().rposition(|&phase| phase == Phase::Setup).map(|last| last + 1);
    let release = || events.iter().position(|event| event.action == Action::FreeRequested);
    setup.or_else(release).unwrap_or(events.len())
}

fn stretches(events: usize, phases: &[Phase]) -> Vec<(usize, StepSide)> {
    let mut found: Vec<(usize, StepSide)> = Vec::new();
    for (at, &phase) in phases.iter().take(events).enumerate() {
        let side = StepSide::of(phase);
        if found.last().is_none_or(|&(_, last)| last != side) {
            found.push((at, side));
        }
    }
    found
}

/// The starts of the iterations after the first; without iterations, what follows each optimizer step or, failing
/// that, each backward pass.
fn turns(program: &Program, stretches: &[(usize, StepSide)]) -> Vec<usize> {
    if program.iterations.len() > 1 {
        return program.iterations.iter().map(|iteration| iteration.start.position()).collect();
    }
    let after = |side: StepSide| -> Vec<usize> {
        stretches.windows(2).filter(|pair| pair[0].1 == side).map(|pair| pair[1].0).collect()
    };
    let steps = after(StepSide::Optimizer);
    if steps.is_empty() { after(StepSide::Backward) } else { steps }
}

fn forwards(phases: &[Phase]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in phases.iter().enumerate().filter(|(_, phase)| is_forward(**phase)) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => runs.push((at, at)),
        }
    }
    runs
}
