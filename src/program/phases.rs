//! The phase of every event.
//!
//! In: what each stack says by itself, and the iterations. Out: one [`Phase`] an event.
//!
//! A stack with only user code on it (`x.cuda()`, `loss * scale`) says nothing; its place does: before the first module
//! call of an iteration it brings input, between forward and backward it belongs to the loss, outside the loop it is
//! set-up. On another thread than the main one it is a hook's that the autograd engine called (FSDP gathers and scatters
//! there). Events without a context take the phase of the one before, as long as no marked step lies in between: what goes right after one, as the last
//! optimizer does where the next one is made, or all that a loop held, is no part of it or of the backward pass before.
//!
//! Evaluation looks like forward. It is told by
//! - a framework's evaluation loop on the stack,
//! - its place: module calls after an iteration's last backward or step belong to nothing that is trained, nor do those
//!   after the training loop,
//! - its rarity: module calls from a line that runs in at most half of the iterations and that no backward ever follows
//!   (an evaluation at the head of the loop, as nanoGPT has it). A teacher's forward, or a rollout, runs in every one.
//!
//! Without stacks nothing is known but what annotations cover, the optimizer's steps and `zero_grad`.

use super::Phase;
use super::iterations::Cut;
use super::marks::{Marks, PacedBy};
use super::paths::Paths;
use super::signs::Sign;
use crate::snapshot::{Action, Event};
use crate::unit::Index;

/// Everything that phases depend on.
pub(super) struct PhaseEvidence<'a> {
    pub(super) events: &'a [Event],
    pub(super) signs: &'a [Sign],
    pub(super) paths: &'a Paths,
    pub(super) marks: &'a Marks,
    pub(super) cut: &'a Cut,
    /// Whether frees carry stacks of their own, and not the allocation's.
    pub(super) frees: bool,
}

/// Where a stretch of events lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopSide {
    Before,
    Inside,
    After,
    /// There is no loop at all.
    NoLoop,
}

/// The phase of each event.
pub(super) fn assign(evidence: &PhaseEvidence<'_>) -> Vec<Phase> {
    let mut phases = vec![Phase::Other; evidence.events.len()];
    let rare = evidence.rare_calls();
    let training = evidence.trains();
    let first = evidence.cut.starts.first().copied();
    let mut stretch = |place: LoopSide, start: usize, end: usize| {
        let Some(slots) = phases.get_mut(start..end.max(start)) else { return };
        Stretch { evidence, rare: &rare, training, place, start }.fill(slots);
    };
    match first {
        Some(first) => {
            stretch(LoopSide::Before, 0, first);
            evidence.cut.spans().for_each(|(start, end)| stretch(LoopSide::Inside, start, end));
            stretch(LoopSide::After, evidence.cut.end, evidence.events.len());
        }
        None => stretch(LoopSide::NoLoop, 0, evidence.events.len()),
    }
    evidence.overlay(&mut phases);
    for phase in phases.iter_mut().skip(evidence.teardown()) {
        *phase = Phase::Other;
    }
    phases
}

impl PhaseEvidence<'_> {
    fn sign(&self, event: &Event) -> Option<Sign> {
        if !self.frees && matches!(event.action, Action::FreeRequested | Action::FreeCompleted) {
            return None;
        }
        let sign = event.stack.and_then(|stack| self.signs.get(stack.position())).copied()?;
        let hook = sign.phase.is_none() && self.paths.in_hook(event);
        Some(if hook { Sign { phase: Some(Phase::Backward), ..sign } } else { sign })
    }

    fn phase(&self, event: &Event) -> Option<Phase> {
        self.sign(event).and_then(|sign| sign.phase)
    }

    /// Whether an event allocates in a module call.
    fn computes(&self, event: &Event) -> bool {
        event.action == Action::Alloc && self.phase(event) == Some(Phase::Forward)
    }

    fn trains(&self) -> bool {
        self.marks.paced_by != PacedBy::Nothing
    }

    /// The sites of module calls that run in at most half of the iterations and that no backward ever follows. A backward
    /// follows the last call before it, and what was called before that in the same function (the model, then the loss).
    fn rare_calls(&self) -> Vec<bool> {
        // Sites are numbered below the number of paths.
        let mut iterations = vec![0_usize; self.paths.len()];
        let mut seen = vec![usize::MAX; self.paths.len()];
        let mut trained = vec![false; self.paths.len()];
        // The sites called since the last backward, each once, and the last call. A site has one body.
        let mut recent: Vec<(u32, u32)> = Vec::new();
        let mut is_recent = vec![false; self.paths.len()];
        let mut last = None;
        for (at, event) in self.events.iter().enumerate() {
            if self.computes(event) {
                let Some(call) = self.paths.site_of_event(event) else { continue };
                last = Some(call);
                if let Some(slot) = is_recent.get_mut(call.0 as usize).filter(|slot| !**slot) {
                    *slot = true;
                    recent.push(call);
                }
                let (site, Some(iteration)) = (call.0 as usize, self.cut.find(at)) else { continue };
                let slots = seen.get_mut(site).zip(iterations.get_mut(site));
                if let Some((seen, count)) = slots.filter(|(seen, _)| **seen != iteration) {
                    *seen = iteration;
                    *count += 1;
                }
            } else if self.phase(event) == Some(Phase::Backward)
                && let Some((_, body)) = last.take()
            {
                for (site, of) in recent.drain(..) {
                    let slots = is_recent.get_mut(site as usize).zip(trained.get_mut(site as usize));
                    if let Some((recent, trained)) = slots {
                        *recent = false;
                        *trained |= of == body;
                    }
                }
            }
        }
        let all = self.cut.starts.len();
        let rare = iterations.iter().zip(&trained);
        rare.map(|(&count, &trained)| all >= 3 && count > 0 && count * 2 <= all && !trained).collect()
    }

    /// Where the program goes down: at the end, when no Python code is left (`sys.exit()` out of the loop takes all frames along), what it held is let
    /// go of without a stack, as by the engine's thread. A backward pass makes something, too, and comes before its step.
    fn teardown(&self) -> usize {
        let is_unseen = |event: &Event| self.sign(event).is_some_and(|sign| sign.unseen);
        let start = self.events.iter().rposition(|event| !is_unseen(event)).map_or(0, |last| last + 1);
        let start = start.max(self.marks.steps.last().map_or(0, |step| step.end));
        let last = self.events.get(start..).unwrap_or_default();
        let makes = last.iter().any(|event| event.action == Action::Alloc);
        if makes { self.events.len() } else { start }
    }

    /// Where events carry no stack of their own, the marked calls still say what happened in them.
    fn overlay(&self, phases: &mut [Phase]) {
        let marked = [(&self.marks.steps, Phase::OptimizerStep), (&self.marks.zero_grads, Phase::ZeroGrad)];
        if self.marks.steps.is_empty() {
            return;
        }
        for (spans, phase) in marked {
            for span in spans {
                let slots = phases.get_mut(span.start..span.end.max(span.start)).unwrap_or_default();
                for (slot, event) in slots.iter_mut().zip(self.events.iter().skip(span.start)) {
                    if self.sign(event).is_none() {
                        *slot = phase;
                    }
                }
            }
        }
    }
}

/// How far a pass has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PassProgress {
    Begun,
    Forward,
    Backward,
}

/// A stretch of events with one place: an iteration, or what lies before or after all of them.
struct Stretch<'a> {
    evidence: &'a PhaseEvidence<'a>,
    rare: &'a [bool],
    training: bool,
    place: LoopSide,
    start: usize,
}

impl Stretch<'_> {
    fn fill(&self, slots: &mut [Phase]) {
        let events = self.evidence.events.get(self.start..self.start + slots.len()).unwrap_or_default();
        let tail = self.tail(events);
        let shows = |sought: Phase| events.iter().any(|event| self.evidence.phase(event) == Some(sought));
        let computes = shows(Phase::Forward);
        // Without a loop around it, a stretch in which nothing computes and nothing is trained is no pass.
        let is_idle = self.place == LoopSide::NoLoop && !computes && !shows(Phase::Backward);
        let mut progress = PassProgress::Begun;
        let mut before = if self.place == LoopSide::Before { Phase::Setup } else { Phase::Other };
        let mut last = 0;
        for (at, (slot, event)) in slots.iter_mut().zip(events).enumerate() {
            let here = self.start + at;
            let Some(sign) = self.evidence.sign(event) else {
                let stepped = before != Phase::Setup && self.evidence.marks.stepped(last, here);
                *slot = if stepped { Phase::Other } else { before };
                continue;
            };
            last = here;
            let evaluates = sign.evaluating || at >= tail || self.is_evaluation(event, sign);
            before = match sign.phase {
                None | Some(Phase::Forward | Phase::Input) if evaluates => Phase::Evaluation,
                Some(phase) => phase,
                None if is_idle => Phase::Other,
                None => self.by_place(progress, computes, before),
            };
            *slot = before;
            progress = match (sign.phase, before) {
                (Some(Phase::Backward | Phase::OptimizerStep), _) => PassProgress::Backward,
                (Some(Phase::Forward), Phase::Forward) if event.action == Action::Alloc => {
                    PassProgress::Forward
                }
                (Some(Phase::Forward), Phase::Forward) => progress.max(PassProgress::Forward),
                _ => progress,
            };
        }
    }

    /// Where an iteration's tail of module calls without a backward begins, counted from its first event.
    fn tail(&self, events: &[Event]) -> usize {
        if !self.training || self.place != LoopSide::Inside {
            return usize::MAX;
        }
        let trains = |event: &Event| {
            matches!(
                self.evidence.phase(event),
                Some(Phase::Backward | Phase::OptimizerStep | Phase::Clipping)
            )
        };
        let Some(last) = events.iter().rposition(trains) else { return usize::MAX };
        let after = last + 1;
        if events.iter().skip(after).any(|event| self.evidence.computes(event)) { after } else { usize::MAX }
    }

    fn is_evaluation(&self, event: &Event, sign: Sign) -> bool {
        if !self.training || sign.phase != Some(Phase::Forward) {
            return false;
        }
        let site = self.evidence.paths.site_of_event(event);
        self.place == LoopSide::After
            || site.is_some_and(|(site, _)| self.rare.get(site as usize) == Some(&true))
    }

    /// The phase of user code that says nothing itself.
    fn by_place(&self, progress: PassProgress, computes: bool, before: Phase) -> Phase {
        match self.place {
            LoopSide::Before => Phase::Setup,
            LoopSide::After => Phase::Other,
            LoopSide::Inside | LoopSide::NoLoop => match progress {
                _ if before == Phase::Evaluation => Phase::Evaluation,
                PassProgress::Begun if !computes => Phase::Forward,
                PassProgress::Begun => Phase::Input,
                PassProgress::Forward => Phase::Forward,
                PassProgress::Backward => Phase::Other,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::Phase;
    use crate::program::tape::Tape;

    #[test]
    fn very_many_sites_without_a_backward_take_no_square() {
        let mut tape = Tape::default();
        for _ in 0..2 {
            for line in 0..120_000 {
                tape.alloc(&format!("main:{} @module forward:5", 10 + line));
            }
        }
        let program = tape.program();
        assert_eq!(program.phases.len(), 240_000);
        assert!(program.phases.iter().all(|phase| *phase != Phase::Backward));
    }
}
