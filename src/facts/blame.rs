//! Which line of the user's code is responsible for a set of allocations.
//!
//! In: stacks with weights (bytes). Out: the narrowest of the user's frames through which at least half of the weight
//! passes. The stacks are laid into one call graph; frames that carry less than half are left out; what remains is
//! asked for the dominators of its innermost ends (Cooper, Harvey and Kennedy 2001, as in petgraph), so that recursion
//! and different callers of one line need no special care. A stack whose inner frames are light ends higher up, and must not
//! hide the line that carries the weight: ends are the frames that call no heavy one (or only one another, in turns). All of it is linear in the stacks.
//!
//! A line above the loop (`main()` at a script's end) carries everything and says nothing. Where no narrower one carries half,
//! the heaviest line of those at which the user's code ends is blamed ([`Blame::responsible`]).
//!
//! A module's forward makes its output for whoever called it, and a hook is handed what a submodule made. Where the guilty
//! tensors are such, the caller is responsible, not the line inside the model ([`Blame::past_forwards`]). What a forward
//! makes with an operator of its own, before its end, it keeps itself: then the line inside is.

mod call_graph;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use call_graph::CallGraph;

use crate::frames::{Frames, Method, PhaseSign};
use crate::snapshot::{Action, DeviceTrace, Snapshot};
use crate::threshold::Threshold;
use crate::unit::{EventIndex, FrameId, Index, StackId};

/// The share of the weight that the responsible line has to carry.
static SHARE: Threshold<f64> = Threshold::new("facts::blame::SHARE", 0.5);
/// How many frames of a stack, the innermost ones, and how many forwards, one in the other, are looked at: Python's own
/// limit of recursion.
const DEEPEST: usize = 1000;
/// A guilty stack.
#[derive(Debug, Clone, Copy)]
pub struct GuiltyStack {
    /// The stack.
    pub stack: StackId,
    /// The allocation's event, where it is known.
    pub event: Option<EventIndex>,
    /// Its weight, usually bytes.
    pub weight: u64,
}

/// Finds the responsible line.
#[derive(Debug, Clone, Copy)]
pub struct Blame<'a> {
    /// Strings and stacks.
    pub snapshot: &'a Snapshot,
    /// The events among which the guilty ones are.
    pub trace: &'a DeviceTrace,
    /// What frames say.
    pub frames: &'a Frames,
    /// The line of the main loop, if there is one.
    pub looping: Option<FrameId>,
}

impl Blame<'_> {
    /// The line to blame: the narrowest that carries half of the weight, or past every forward that only hands the
    /// allocations out; where that is above the loop, the heaviest line of its own.
    pub fn responsible(&self, guilty: &[GuiltyStack], hands_out: bool) -> Option<FrameId> {
        let narrow = if hands_out { self.past_forwards(guilty) } else { self.narrowest(guilty) };
        let narrow = narrow.map(|frame| self.called(frame, guilty, hands_out).unwrap_or(frame));
        narrow.filter(|frame| !self.is_above_the_loop(*frame, guilty)).or_else(|| self.heaviest(guilty))
    }

    /// The heaviest line of the one function of the user's that is called below a frame: by a library (a collator, a callback, a metric), or, of what is
    /// kept, by the user. Two of its lines that share the weight meet only in the call, which says nothing. The forward of a model is called for its
    /// output.
    fn called(&self, frame: FrameId, guilty: &[GuiltyStack], kept: bool) -> Option<FrameId> {
        let mut lines: BTreeMap<FrameId, (u64, usize)> = BTreeMap::new();
        for one in guilty {
            let python = self.frames.python(one.stack);
            let Some(at) = python.iter().rposition(|other| *other == frame) else { continue };
            let inner = python.get(at + 1..).unwrap_or_default();
            let own = inner.iter().position(|frame| self.frames.is_own(*frame))?;
            let (between, line) = (inner.get(..own)?, *inner.get(own)?);
            let packaged = between.iter().any(|frame| self.frames.owner(*frame).is_package());
            if !(packaged || kept) || between.iter().any(|frame| self.is_module_call(*frame)) {
                return None;
            }
            let (weight, times) = lines.entry(line).or_default();
            *weight = weight.saturating_add(one.weight);
            *times += 1;
        }
        let mut functions = lines.keys().map(|line| self.frames.function(*line));
        let first = functions.next()?;
        functions.all(|function| function == first).then_some(())?;
        let heaviest = lines.into_iter().max_by_key(|(line, (weight, _))| (*weight, Reverse(*line)));
        // Lines that run once each are code that is generated anew.
        heaviest.filter(|(_, (_, times))| !kept || *times > 1).map(|(line, _)| line)
    }

    /// Whether a frame stands outside the function that holds the main loop, in every stack that shows both. A loop inside a
    /// module's forward is the model's own, and whoever calls the model is no bystander.
    fn is_above_the_loop(&self, frame: FrameId, guilty: &[GuiltyStack]) -> bool {
        let function = |frame: FrameId| self.frames.function(frame);
        let Some(looping) = self.looping.and_then(function) else { return false };
        let mut inside = guilty.iter().filter_map(|one| {
            let python = self.frames.python(one.stack);
            let at = python.iter().rposition(|other| *other == frame)?;
            let body = python.iter().position(|other| function(*other) == Some(looping))?;
            let model = python.iter().position(|other| self.is_module_call(*other));
            Some((at, body)).filter(|_| model.is_none_or(|model| body < model))
        });
        let mut any = false;
        inside.all(|(at, body)| {
            any = true;
            at < body
        }) && any
    }

    /// The line at which most of the weight is made.
    fn heaviest(&self, guilty: &[GuiltyStack]) -> Option<FrameId> {
        let mut sites: BTreeMap<FrameId, u64> = BTreeMap::new();
        for one in guilty {
            if let Some(site) = self.frames.site(one.stack) {
                let sum = sites.entry(site).or_default();
                *sum = sum.saturating_add(one.weight);
            }
        }
        sites.into_iter().max_by_key(|(site, weight)| (*weight, Reverse(*site))).map(|(site, _)| site)
    }

    /// The narrowest user frame that carries at least half of the weight, wherever it stands.
    pub fn narrowest(&self, guilty: &[GuiltyStack]) -> Option<FrameId> {
        self.carrying(guilty, SHARE.get())
    }

    /// The narrowest user frame through which all guilty stacks pass that show any Python: where which tensor is large
    /// does not matter, but what was running.
    pub fn common(&self, guilty: &[GuiltyStack]) -> Option<FrameId> {
        let equal: Vec<GuiltyStack> = guilty.iter().map(|one| GuiltyStack { weight: 1, ..*one }).collect();
        self.carrying(&equal, 1.0).or_else(|| self.past_forwards(guilty))
    }

    fn carrying(&self, guilty: &[GuiltyStack], share: f64) -> Option<FrameId> {
        let mut stacks: BTreeMap<StackId, u64> = BTreeMap::new();
        for one in guilty.iter().filter(|one| !self.frames.python(one.stack).is_empty()) {
            let weight = stacks.entry(one.stack).or_default();
            *weight = weight.saturating_add(one.weight);
        }
        let mut weights: FxHashMap<FrameId, u64> = FxHashMap::default();
        let mut total = 0_u64;
        for (stack, weight) in &stacks {
            total = total.saturating_add(*weight);
            // A frame that recurs in one stack carries the stack's weight once.
            let mut frames = self.frames.python(*stack).to_vec();
            frames.sort_unstable();
            frames.dedup();
            for frame in frames {
                let sum = weights.entry(frame).or_default();
                *sum = sum.saturating_add(*weight);
            }
        }
        let enough = total as f64 * share;
        let heavy = |frame: &FrameId| weights.get(frame).is_some_and(|weight| *weight as f64 >= enough);
        let mut graph = CallGraph::new();
        for stack in stacks.into_keys() {
            // Only the user's frames: two lines that call one and the same function of a library do not meet in it.
            let mut path: Vec<FrameId> = self.blamable(stack).into_iter().filter(heavy).collect();
            path.drain(..path.len().saturating_sub(DEEPEST));
            graph.add(&path);
        }
        graph.dominating_the_ends()
    }

    /// The narrowest user frame, and from there outward past every forward of a module that hands the guilty allocations
    /// to others: as its output, or because a submodule made them. (A submodule's output that a forward stores itself is
    /// taken for one that a hook or the caller stores, since the recording shows no difference.)
    pub fn past_forwards(&self, guilty: &[GuiltyStack]) -> Option<FrameId> {
        let mut frame = self.narrowest(guilty)?;
        // How far in a stack is still asked about. Where modules call each other in turns, a frame recurs; each step outward
        // is a step outward in the stack that shows the caller, so that this comes to an end.
        let mut limits: Vec<usize> = guilty.iter().map(|one| self.frames.python(one.stack).len()).collect();
        for _ in 0..DEEPEST {
            let mut inside: Vec<(&GuiltyStack, usize)> = Vec::new();
            for (one, limit) in guilty.iter().zip(&mut limits) {
                if let Some(depth) = self.depth_of(one.stack, frame, *limit) {
                    *limit = depth;
                    inside.push((one, depth));
                }
            }
            let outputs = inside.iter().filter(|(one, depth)| self.is_handed_out(one, *depth)).count();
            if inside.is_empty() || outputs * 2 < inside.len() {
                break;
            }
            let caller = self.heaviest_caller(&inside);
            let Some(caller) = caller else { break };
            frame = caller;
        }
        Some(frame)
    }

    /// The user's line right above a place in some stacks that most of their weight passes; of equal ones the first.
    fn heaviest_caller(&self, inside: &[(&GuiltyStack, usize)]) -> Option<FrameId> {
        let mut callers: BTreeMap<FrameId, (u64, Reverse<usize>)> = BTreeMap::new();
        for (order, (one, depth)) in inside.iter().enumerate() {
            let outer = self.frames.python(one.stack).get(..*depth).unwrap_or_default();
            if let Some(caller) = outer.iter().rev().copied().find(|outer| self.frames.is_own(*outer)) {
                let (weight, _) = callers.entry(caller).or_insert((0, Reverse(order)));
                *weight = weight.saturating_add(one.weight);
            }
        }
        callers.into_iter().max_by_key(|(_, rank)| *rank).map(|(caller, _)| caller)
    }

    /// The frames of a stack that can be blamed, outermost first: the user's; where there are none, a library's.
    fn blamable(&self, stack: StackId) -> Vec<FrameId> {
        let python = self.frames.python(stack);
        let own: Vec<FrameId> = python.iter().copied().filter(|frame| self.frames.is_own(*frame)).collect();
        if !own.is_empty() {
            return own;
        }
        python.iter().copied().filter(|frame| self.frames.owner(*frame).is_package()).collect()
    }

    /// Where a frame stands among a stack's outermost `limit` frames; the innermost place if it recurs.
    fn depth_of(&self, stack: StackId, frame: FrameId, limit: usize) -> Option<usize> {
        self.frames.python(stack).get(..limit)?.iter().rposition(|other| *other == frame)
    }

    /// Whether the frame at `depth` of an allocation's stack is a module's forward, and the allocation is a submodule's or
    /// the last that the forward makes: its output.
    fn is_handed_out(&self, guilty: &GuiltyStack, depth: usize) -> bool {
        let python = self.frames.python(guilty.stack);
        let Some((caller, event)) =
            depth.checked_sub(1).and_then(|outer| python.get(outer)).zip(guilty.event)
        else {
            return false;
        };
        // Hooks are called from the same place as forwards.
        let forward = python.get(depth).is_some_and(|frame| self.frames.method(*frame) == Method::Forward);
        let by_submodule = python.get(depth + 1).is_some_and(|inner| self.is_module_call(*inner));
        self.is_module_call(*caller)
            && forward
            && !self.is_called_back(python.get(..depth).unwrap_or_default())
            && (by_submodule || !self.goes_on(python, depth, event))
    }

    /// Whether what calls a module, given its callers, is a function of a package that is no model itself (a solver, an optimizer): to that the output goes, and
    /// no line of the user's outside of it gets to see it.
    fn is_called_back(&self, outer: &[FrameId]) -> bool {
        let between = outer.iter().rev().take_while(|frame| !self.frames.is_own(**frame));
        let mut packaged = between.filter(|frame| self.frames.owner(**frame).is_package());
        packaged.any(|frame| {
            let passes_on = self.frames.phase(*frame) == PhaseSign::Wrapper;
            self.frames.method(*frame) != Method::Forward && !passes_on
        })
    }

    fn is_module_call(&self, frame: FrameId) -> bool {
        self.frames.phase(frame) == PhaseSign::ModuleCall
    }

    /// Whether the call at `depth` allocates again after an event: the next allocation of that thread has the same
    /// callers, stands in the same function, and no line further up (that would be the next call).
    fn goes_on(&self, python: &[FrameId], depth: usize, event: EventIndex) -> bool {
        let after = self.trace.events.iter().skip(event.position() + 1);
        let next = after.filter(|event| event.action == Action::Alloc).find_map(|event| event.stack);
        let Some(next) = next.map(|stack| self.frames.python(stack)) else { return false };
        if next.get(..depth) != python.get(..depth) || next == python {
            return false;
        }
        let frame = |stack: &[FrameId]| stack.get(depth).and_then(|frame| self.frames.get(*frame));
        frame(python)
            .zip(frame(next))
            .is_some_and(|(here, there)| here.function == there.function && there.line >= here.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Frame;

    #[test]
    fn very_many_paths_take_no_square() {
        let mut snapshot = Snapshot::default();
        let mut text = |name: &str| snapshot.strings.intern(name).unwrap();
        let (name, file) = (text("step"), text("/home/me/train.py"));
        let frames: Vec<FrameId> =
            (0..17).map(|line| snapshot.stacks.intern_frame(Frame { name, file, line }).unwrap()).collect();
        // Every subset of 16 lines under one: each line carries half of the weight, no two paths are equal.
        let guilty: Vec<GuiltyStack> = (0..1_u32 << 16)
            .map(|set| {
                let inner = (0..16).rev().filter(|at| set >> at & 1 == 1);
                let path: Vec<FrameId> = inner.map(|at| frames[at + 1]).chain([frames[0]]).collect();
                GuiltyStack { stack: snapshot.stacks.intern(&path).unwrap(), event: None, weight: 1 }
            })
            .collect();
        let (trace, meanings) = (DeviceTrace::default(), Frames::of(&snapshot));
        let blame = Blame { snapshot: &snapshot, trace: &trace, frames: &meanings, looping: None };
        // The path of all lines contains all others.
        assert_eq!(blame.narrowest(&guilty), Some(frames[16]));
    }

    #[test]
    fn of_functions_that_call_each_other_in_turns_the_one_that_is_entered_is_to_blame() {
        let mut snapshot = Snapshot::default();
        let mut frame = |line: u32| {
            let name = snapshot.strings.intern("call").unwrap();
            let file = snapshot.strings.intern("/home/me/train.py").unwrap();
            snapshot.stacks.intern_frame(Frame { name, file, line }).unwrap()
        };
        let (script, caller, tree, node) = (frame(9), frame(1), frame(2), frame(3));
        let stack = snapshot.stacks.intern(&[tree, node, tree, node, caller, script]).unwrap();
        let (trace, meanings) = (DeviceTrace::default(), Frames::of(&snapshot));
        let blame = Blame { snapshot: &snapshot, trace: &trace, frames: &meanings, looping: None };
        assert_eq!(blame.narrowest(&[GuiltyStack { stack, event: None, weight: 1 }]), Some(node));
    }

    /// What is blamed for two lines of one function that make as much each, called through these frames, the innermost first.
    fn blamed(file: &str, between: &[(&str, &str)], kept: bool) -> u32 {
        let mut snapshot = Snapshot::default();
        let mut frame = |file: &str, name: &str, line: u32| {
            let (name, file) =
                (snapshot.strings.intern(name).unwrap(), snapshot.strings.intern(file).unwrap());
            snapshot.stacks.intern_frame(Frame { name, file, line }).unwrap()
        };
        let outer: Vec<FrameId> = between.iter().map(|(file, name)| frame(file, name, 7)).collect();
        let main = frame("/home/me/train.py", "main", 44);
        let lines = [27, 30].map(|line| frame(file, "__call__", line));
        let guilty = [lines[0], lines[1], lines[0], lines[1]].map(|line| {
            let path: Vec<FrameId> = [line].into_iter().chain(outer.iter().copied()).chain([main]).collect();
            GuiltyStack { stack: snapshot.stacks.intern(&path).unwrap(), event: None, weight: 1 }
        });
        let (trace, meanings) = (DeviceTrace::default(), Frames::of(&snapshot));
        let blame = Blame { snapshot: &snapshot, trace: &trace, frames: &meanings, looping: None };
        snapshot.stacks.frame(blame.responsible(&guilty, kept).unwrap()).unwrap().line
    }

    #[test]
    fn what_a_library_calls_back_is_to_blame_and_not_the_call_of_the_library() {
        let trainer = ("/v/site-packages/transformers/trainer.py", "train");
        let module = ("/v/site-packages/torch/nn/modules/module.py", "_call_impl");
        assert_eq!(blamed("/home/me/data.py", &[trainer], false), 27);
        assert_eq!(blamed("/home/me/data.py", &[], false), 44, "the caller is the user's");
        assert_eq!(blamed("/home/me/data.py", &[], true), 27, "the call says nothing of what is kept");
        for kept in [false, true] {
            assert_eq!(
                blamed("/home/me/data.py", &[module, trainer], kept),
                44,
                "a model's forward makes what its caller asked for"
            );
        }
        assert_eq!(
            blamed("/v/site-packages/torchmetrics/metric.py", &[trainer], false),
            44,
            "nobody edits a library"
        );
    }

    #[test]
    fn what_a_model_hands_to_a_solver_no_line_outside_of_it_gets_to_see() {
        let told = |caller: (&str, &str)| {
            let module = ("/v/site-packages/torch/nn/modules/module.py", "_call_impl", 1779);
            let path = [
                ("/v/site-packages/torch/nn/modules/linear.py", "forward", 134),
                module,
                ("/home/me/train.py", "forward", 36),
                module,
                (caller.0, caller.1, 7),
                ("/home/me/train.py", "main", 54),
            ];
            let mut snapshot = Snapshot::default();
            let path = path.map(|(file, name, line)| {
                let (name, file) =
                    (snapshot.strings.intern(name).unwrap(), snapshot.strings.intern(file).unwrap());
                snapshot.stacks.intern_frame(Frame { name, file, line }).unwrap()
            });
            let stack = snapshot.stacks.intern(&path).unwrap();
            let guilty = [GuiltyStack { stack, event: EventIndex::at(0), weight: 1 }];
            let (trace, meanings) = (DeviceTrace::default(), Frames::of(&snapshot));
            let blame = Blame { snapshot: &snapshot, trace: &trace, frames: &meanings, looping: None };
            snapshot.stacks.frame(blame.past_forwards(&guilty).unwrap()).unwrap().line
        };
        assert_eq!(told(("/v/site-packages/torchdiffeq/_impl/solvers.py", "integrate")), 36);
        assert_eq!(told(("/v/site-packages/timm/models/vision_transformer.py", "forward")), 54);
    }
}
