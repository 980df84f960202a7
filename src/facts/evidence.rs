//! What a device's recording can show, and what it hides.
//!
//! In: the trace with its lifetimes, phases and roles. Out: for each thing that rules ask of a recording whether it is there,
//! or the [`Hidden`] one. Always: computed once, before any rule runs; every "cannot be judged" of a report comes from here.
//!
//! A recording can lack things in part: `skip_actions` leaves whole kinds of events out, stacks may be on the optimizer's
//! events alone, actions may have names of a later version. What is there for fewer than one in ten does not count as there,
//! and what is missing for more than one in ten counts as missing. No recording of the corpus is near these limits:
//! none lacks an event, stacks are on all allocations or on none, and of those outside the optimizer's steps at least 24 %
//! are made by the user's own code (the rest is the autograd engine's).

use rustc_hash::FxHashSet;

use crate::facts::kind::{Lost, RecordingKind};
use crate::facts::older_gradients::OlderGradients;
use crate::facts::updates;
use crate::finding::{Absent, Hidden, Silence};
use crate::frames::Frames;
use crate::lives::growth::FEWEST;
use crate::program::{FoundBy, Phase, Program};
use crate::role::{Role, Roles};
use crate::snapshot::{Action, DeviceTrace, Event, Gap, Modelled, Snapshot};
use crate::threshold::Threshold;
use crate::timeline::Timeline;
use crate::unit::{EventIndex, Index, StackId};

/// One in so many is few.
static FEW: Threshold<usize> = Threshold::new("facts::evidence::FEW", 10);

/// What a device's recording can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// What kind of recording it is.
    pub kind: RecordingKind,
    /// Why the beginning is lost, where it is.
    pub lost: Option<Lost>,
    events: Result<(), Hidden>,
    history: Result<(), Hidden>,
    stacks: Result<(), Hidden>,
    segments: Result<(), Hidden>,
    iterations: Result<(), Hidden>,
    growth: Result<(), Hidden>,
    pass: Result<(), Hidden>,
    beginning: Result<(), Hidden>,
    standing: Result<(), Hidden>,
    first_iteration: Result<(), Hidden>,
    gradients: Result<(), Hidden>,
    decided: Result<(), Hidden>,
    steps: Result<(), Silence>,
    updates: Result<(), Silence>,
    ran_out: bool,
}

/// What is looked at.
struct Observed<'a> {
    snapshot: &'a Snapshot,
    frames: &'a Frames,
    timeline: &'a Timeline,
    program: &'a Program,
    roles: &'a Roles,
}

impl Evidence {
    /// Looks at a device.
    pub fn of(
        (snapshot, frames): (&Snapshot, &Frames),
        timeline: &Timeline,
        program: &Program,
        roles: &Roles,
    ) -> Evidence {
        let none = DeviceTrace::default();
        let trace = snapshot.devices.get(timeline.device.position()).unwrap_or(&none);
        let recorded = Observed { snapshot, frames, timeline, program, roles };
        let lost = Lost::of((snapshot, frames), trace, timeline, program);
        let mut evidence = Evidence {
            kind: RecordingKind::Whole,
            lost,
            events: if trace.has_history() { Ok(()) } else { Err(Hidden::Trace) },
            history: recorded.history(trace),
            stacks: recorded.stacks(trace),
            segments: recorded.segments(trace),
            iterations: recorded.iterations(),
            growth: recorded.growth(),
            pass: recorded.pass(),
            beginning: recorded.beginning(),
            standing: recorded.standing(),
            first_iteration: recorded.first_iteration(trace),
            gradients: recorded.gradients(trace),
            decided: recorded.decided(),
            steps: Ok(()),
            updates: Ok(()),
            ran_out: trace.events.iter().any(|event| event.action == Action::OutOfMemory),
        };
        evidence.steps = recorded.steps(trace, &evidence);
        let clears = || updates::clears(program, timeline, roles);
        evidence.updates = match evidence.steps {
            Err(Silence::NotApplicable(Absent::Optimizer)) => Ok(()),
            Err(_) if clears() => Ok(()),
            known => known,
        };
        evidence.kind = RecordingKind::of(lost, timeline, program, &evidence);
        evidence
    }

    /// Whether anything was recorded that moves memory.
    pub fn events(&self) -> Result<(), Hidden> {
        self.events
    }

    /// Whether allocations are seen from their beginning to their end, and no events are missing in between.
    pub fn history(&self) -> Result<(), Hidden> {
        self.history
    }

    /// Whether it is known how much was in use when. (That nothing was freed hides no bytes.)
    pub fn levels(&self) -> Result<(), Hidden> {
        match self.history {
            Err(Hidden::Lives) => Ok(()),
            known => known,
        }
    }

    /// Whether it would be seen that memory ran out.
    pub fn failures(&self) -> Result<(), Hidden> {
        if self.ran_out { Ok(()) } else { self.history }
    }

    /// Whether the stacks of allocations tell the user's lines.
    pub fn stacks(&self) -> Result<(), Hidden> {
        self.stacks
    }

    /// Whether it is seen when memory came from the driver and went back.
    pub fn segments(&self) -> Result<(), Hidden> {
        self.segments
    }

    /// Whether there are at least two iterations.
    pub fn iterations(&self) -> Result<(), Hidden> {
        self.iterations
    }

    /// Whether there are as many iterations as growth needs rises.
    pub fn growth(&self) -> Result<(), Hidden> {
        self.growth
    }

    /// Whether there are at least two iterations, or one pass of what may be a loop.
    pub fn pass(&self) -> Result<(), Hidden> {
        self.pass
    }

    /// Whether all that was recorded is still there.
    pub fn beginning(&self) -> Result<(), Hidden> {
        self.beginning
    }

    /// Whether it is seen what stands at the end, and by which lines of the user's it was made.
    pub fn standing(&self) -> Result<(), Hidden> {
        self.standing
    }

    /// Whether the first iteration of the loop is in the recording, and with it the first backward pass and step.
    pub fn first_iteration(&self) -> Result<(), Hidden> {
        self.first_iteration
    }

    /// Whether it is seen how gradients come and go.
    pub fn gradients(&self) -> Result<(), Hidden> {
        self.gradients
    }

    /// Whether what the program did can be what it does with a GPU.
    pub fn decided(&self) -> Result<(), Hidden> {
        self.decided
    }

    /// Whether it is seen that parameters are updated: by steps, or by gradients that are cleared in each iteration.
    pub fn updates(&self) -> Result<(), Silence> {
        self.updates
    }

    /// Whether steps of an optimizer are seen; where they are not, whether there are none.
    pub fn steps(&self) -> Result<(), Silence> {
        self.steps
    }
}

impl Observed<'_> {
    fn history(&self, trace: &DeviceTrace) -> Result<(), Hidden> {
        let agreement = self.timeline.agreement;
        let lists_blocks = self.snapshot.segments_of(self.timeline.device.position()).next().is_some();
        let without_block = if lists_blocks { agreement.allocations_without_block } else { 0 };
        let lost = agreement.lost_frees + agreement.lost_allocations + without_block;
        let lives = self.timeline.allocations.len() + agreement.lost_allocations;
        // Where every allocation is still a block at the end, and none of another is missing, nothing was freed, and no free is left out.
        let is_all_held = lists_blocks && lost == 0 && agreement.blocks_evicted == 0;
        let whole = |life: &crate::timeline::Allocation| life.alloc.is_some() && life.free.is_some();
        if !trace.has_history() && !self.has_strange(trace) {
            Err(Hidden::Trace)
        } else if self.strange(trace).count() * FEW.get() > trace.events.len() {
            Err(Hidden::Kinds)
        } else if !trace.events.iter().any(|event| event.action == Action::Alloc) {
            Err(Hidden::Allocations)
        } else if !(self.timeline.allocations.iter().any(whole) || is_all_held) {
            Err(Hidden::Lives)
        } else if lost * FEW.get() > lives {
            Err(Hidden::Events)
        } else {
            Ok(())
        }
    }

    fn has_strange(&self, trace: &DeviceTrace) -> bool {
        self.strange(trace).next().is_some()
    }

    /// The events of kinds that memlint does not know.
    fn strange<'t>(&self, trace: &'t DeviceTrace) -> impl Iterator<Item = &'t Event> {
        let unknown = self.snapshot.gaps.iter().filter_map(|gap| match gap {
            Gap::UnknownActions(names) => Some(names),
            _ => None,
        });
        let find = |(name, _): &(String, usize)| self.snapshot.strings.find(name);
        let names: FxHashSet<_> = unknown.flatten().filter_map(find).collect();
        let snapshot = self.snapshot;
        let is_strange = move |event: &&Event| {
            let name = || snapshot.particulars_of(event).action;
            event.action == Action::Other && name().is_some_and(|name| names.contains(&name))
        };
        trace.events.iter().filter(is_strange)
    }

    fn stacks(&self, trace: &DeviceTrace) -> Result<(), Hidden> {
        let (mut all, mut bare, mut outside, mut python, mut own) = (0, 0, 0, 0, 0);
        for (at, event) in trace.events.iter().enumerate() {
            if event.action != Action::Alloc {
                continue;
            }
            all += 1;
            bare += usize::from(event.stack.is_none());
            let phase = EventIndex::at(at).map(|at| self.program.phase(at));
            if matches!(phase, Some(Phase::OptimizerStep | Phase::ZeroGrad)) {
                continue;
            }
            // The autograd engine's threads run no Python: the more passes a backward pass goes through, the fewer stacks have any.
            if phase == Some(Phase::Backward)
                && event.stack.is_some_and(|stack| self.frames.python(stack).is_empty())
            {
                continue;
            }
            let tells = |by: &dyn Fn(StackId) -> bool| usize::from(event.stack.is_some_and(by));
            outside += 1;
            python += tells(&|stack| !self.frames.python(stack).is_empty());
            own += tells(&|stack| self.frames.user(stack).next().is_some());
        }
        if bare * FEW.get() > all || python == 0 || python * FEW.get() < outside {
            Err(Hidden::Stacks)
        } else if own == 0 || own * FEW.get() < outside {
            Err(Hidden::OwnFrames)
        } else {
            Ok(())
        }
    }

    /// Where nothing was there before the recording, the first allocation needed memory from the driver; no event of that
    /// kind means that they were left out. Where there are no allocations, whole kinds are.
    fn segments(&self, trace: &DeviceTrace) -> Result<(), Hidden> {
        let seen = trace.events.iter().any(|event| event.reserves().is_some());
        let allocates = trace.events.iter().any(|event| event.action == Action::Alloc);
        let older = self.timeline.allocations.iter().any(|life| life.alloc.is_none());
        if seen || (older && allocates) { Ok(()) } else { Err(Hidden::Segments) }
    }

    fn iterations(&self) -> Result<(), Hidden> {
        let found = self.program.iterations.len() >= 2 && self.program.found_by != FoundBy::Nothing;
        if found { Ok(()) } else { Err(Hidden::Iterations) }
    }

    fn growth(&self) -> Result<(), Hidden> {
        self.iterations()?;
        if self.program.iterations.len() >= FEWEST.get() { Ok(()) } else { Err(Hidden::Growth) }
    }

    /// Of several steps without a loop around them nothing is known; neither of a recording in which no model runs.
    fn pass(&self) -> Result<(), Hidden> {
        let runs = || self.program.phases.contains(&Phase::Forward);
        let one = self.program.iterations.is_empty() && self.program.steps.len() <= 1 && runs();
        if one { Ok(()) } else { self.iterations() }
    }

    fn beginning(&self) -> Result<(), Hidden> {
        if self.timeline.agreement.blocks_evicted == 0 { Ok(()) } else { Err(Hidden::Beginning) }
    }

    /// What stands keeps its stacks, whatever was lost of the events.
    fn standing(&self) -> Result<(), Hidden> {
        let (mut all, mut own) = (0, 0);
        for life in self.timeline.allocations.iter().filter(|life| life.given_back().is_none()) {
            all += 1;
            own += usize::from(life.stack.is_some_and(|stack| self.frames.user(stack).next().is_some()));
        }
        if own > 0 && own * FEW.get() >= all { Ok(()) } else { Err(Hidden::Stacks) }
    }

    /// An iteration that ran before leaves things behind which the next one lets go of: its loss, its batch, its gradients;
    /// and a step leaves optimizer state. (A model that was built before the recording stays.)
    fn first_iteration(&self, trace: &DeviceTrace) -> Result<(), Hidden> {
        self.beginning()?;
        let first = self.program.iterations.first().map(|one| (one.start, one.end));
        let step = || self.program.steps.first().map(|step| step.end.position());
        let (start, end) = match first {
            Some((start, end)) => (start.position(), end.position()),
            None => (0, step().unwrap_or(trace.events.len())),
        };
        let left_behind = self.timeline.older().any(|(id, life)| {
            let given_back = life.given_back().map(Index::position);
            let of_step = matches!(self.roles.get(id), Role::Gradient | Role::OptimizerState);
            given_back.is_some_and(|at| (start..end).contains(&at)) || of_step
        });
        if left_behind { Err(Hidden::FirstIteration) } else { Ok(()) }
    }

    /// A backward pass and a step that follows show whether parameters had gradients before, where that is so of all or of none; else
    /// the first iteration and one more show whether they are cleared.
    fn gradients(&self, trace: &DeviceTrace) -> Result<(), Hidden> {
        let last = self.program.steps.last().map_or(0, |step| step.start.position());
        let mut before = self.program.phases.iter().zip(&trace.events).take(last);
        if before.any(|(phase, event)| *phase == Phase::Backward && event.action == Action::Alloc) {
            let first = self.first_iteration(trace);
            let older = || OlderGradients::of(self.timeline, self.program, self.roles);
            return if first.is_err() && older().is_ambiguous(!self.program.zero_grads.is_empty()) {
                first
            } else {
                Ok(())
            };
        }
        self.iterations()?;
        self.first_iteration(trace)
    }

    fn decided(&self) -> Result<(), Hidden> {
        let hides = self.snapshot.modelled.as_ref().is_some_and(Modelled::hides_steps);
        if hides { Err(Hidden::Values) } else { Ok(()) }
    }

    /// That a program does not train is shown by iterations, of which all is seen, without a backward pass.
    fn steps(&self, trace: &DeviceTrace, evidence: &Evidence) -> Result<(), Silence> {
        if !self.program.steps.is_empty() {
            return Ok(());
        }
        let seen = [evidence.history, evidence.stacks, evidence.iterations, evidence.beginning];
        if let Some(hidden) = seen.into_iter().find_map(Result::err) {
            return Err(Silence::Blind(hidden));
        }
        let trains = self
            .program
            .phases
            .iter()
            .zip(&trace.events)
            .any(|(phase, event)| *phase == Phase::Backward && event.action == Action::Alloc);
        let clears = || updates::clears(self.program, self.timeline, self.roles);
        let asks_for_others = || updates::asks_for_others(self.program, self.timeline, self.roles);
        Err(if !trains {
            Silence::NotApplicable(Absent::Training)
        } else if asks_for_others() && !clears() {
            Silence::NotApplicable(Absent::Optimizer)
        } else {
            Silence::Blind(Hidden::Steps)
        })
    }
}
