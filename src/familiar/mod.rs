//! What people know an allocation by, beside its role: logits, attention scores, what a checkpoint computes again.
//!
//! In: stacks, phases, roles and lifetimes. Out: a [`Familiar`] for the allocations of which one is sure; most have none. Frames
//! name what is computed where it is computed. What goes *into* a cross entropy or into the softmax of an attention has no frame that
//! says so; it is found from there backwards: the last that was made before, is alive, and holds as many numbers as what the operator
//! makes of it (a softmax changes no shape), in the same format or in half of it. Where that was copied or cast, what it was copied
//! from is the same to whoever looks for it. What lies between and fits in no way ends the search without a name.
//!
//! Where it falls silent: without C++ frames an operator that is called by no function of Python's (`torch.softmax`, the engine's
//! backward) is not seen; logits of which a loss reads a view that is much smaller are not found.
//!
//! Linear: each search ends at the latest where the last one from the same line began.

#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::frames::{Frames, Owner, WorkSign};
use crate::program::{Phase, Program};
use crate::role::{Role, Roles};
use crate::snapshot::Snapshot;
use crate::timeline::{Allocation, Timeline};
use crate::unit::{AllocationId, Bytes, FrameId, Index, StackId};

/// What people know an allocation by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Familiar {
    /// What goes into a cross entropy or a log-softmax, and what it was copied from.
    Logits,
    /// What a cross entropy makes for itself: the upcast, the log-softmax.
    CrossEntropy,
    /// What its backward makes.
    CrossEntropyBackward,
    /// What goes into the softmax of an attention, and what comes out of it.
    Scores,
    /// What any other softmax makes.
    Softmax,
    /// What the backward of a softmax makes.
    SoftmaxBackward,
    /// What a checkpoint computes again in the backward pass.
    Recomputed,
    /// Temporaries of a step that goes operator by operator over many parameters.
    Foreach,
    /// Temporaries of a fused step.
    Fused,
    /// Buckets of DDP.
    Buckets,
    /// Parameters that FSDP has put together.
    Gathered,
    /// Gradients that FSDP reduces.
    Reduced,
}

impl Familiar {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Familiar; 12] = [
        Familiar::Logits,
        Familiar::CrossEntropy,
        Familiar::CrossEntropyBackward,
        Familiar::Scores,
        Familiar::Softmax,
        Familiar::SoftmaxBackward,
        Familiar::Recomputed,
        Familiar::Foreach,
        Familiar::Fused,
        Familiar::Buckets,
        Familiar::Gathered,
        Familiar::Reduced,
    ];

    /// The name in reports and JSON: `attention-scores`.
    pub const fn name(self) -> &'static str {
        match self {
            Familiar::Logits => "logits",
            Familiar::CrossEntropy => "inside-cross-entropy",
            Familiar::CrossEntropyBackward => "cross-entropy-backward",
            Familiar::Scores => "attention-scores",
            Familiar::Softmax => "softmax",
            Familiar::SoftmaxBackward => "softmax-backward",
            Familiar::Recomputed => "recomputed-by-checkpoint",
            Familiar::Foreach => "foreach-step",
            Familiar::Fused => "fused-step",
            Familiar::Buckets => "gradient-buckets",
            Familiar::Gathered => "gathered-parameters",
            Familiar::Reduced => "gradients-being-reduced",
        }
    }

    /// The name for people.
    pub const fn words(self) -> &'static str {
        match self {
            Familiar::Logits => "logits",
            Familiar::CrossEntropy => "inside cross entropy (upcast, log-softmax)",
            Familiar::CrossEntropyBackward => "backward of cross entropy",
            Familiar::Scores => "attention scores",
            Familiar::Softmax => "softmax",
            Familiar::SoftmaxBackward => "backward of softmax",
            Familiar::Recomputed => "recomputed by a checkpoint",
            Familiar::Foreach => "temporaries of a foreach step",
            Familiar::Fused => "temporaries of a fused step",
            Familiar::Buckets => "gradient buckets of DDP",
            Familiar::Gathered => "parameters gathered by FSDP",
            Familiar::Reduced => "gradients being reduced by FSDP",
        }
    }
}

/// What people know the allocations of a timeline by, by their ids.
#[derive(Debug, Default)]
pub struct Familiars(Vec<Option<Familiar>>);

impl Familiars {
    /// Finds those of which one is sure.
    pub fn of(
        (snapshot, frames): (&Snapshot, &Frames),
        timeline: &Timeline,
        program: &Program,
        roles: &Roles,
    ) -> Familiars {
        let sights = snapshot.stacks.ids().map(|stack| Sight::of(snapshot, frames, stack)).collect();
        let mut search = Search { timeline, roles, sights, found: Vec::new() };
        search.found = timeline.iter().map(|(id, one)| search.named(program, id, one)).collect();
        search.trace_inputs();
        Familiars(search.found)
    }

    /// What people know an allocation by.
    pub fn get(&self, id: AllocationId) -> Option<Familiar> {
        self.0.get(id.position()).copied().flatten()
    }
}

/// What a stack shows of the computing under it.
#[derive(Debug, Clone, Copy, Default)]
struct Sight {
    /// What is computed, where that has a name of its own.
    work: WorkSign,
    /// Whether it is a part of an attention.
    attends: bool,
    /// The outermost operator, or the function that stands for it.
    operator: WorkSign,
    /// The line that stands for the stack.
    site: Option<FrameId>,
}

/// What has a name, in the order of precedence: a cross entropy has a softmax in it.
const NAMED: [WorkSign; 9] = [
    WorkSign::Buckets,
    WorkSign::Gathers,
    WorkSign::Reduces,
    WorkSign::CrossEntropyBackward,
    WorkSign::SoftmaxBackward,
    WorkSign::CrossEntropy,
    WorkSign::Softmax,
    WorkSign::Fused,
    WorkSign::Foreach,
];

impl Sight {
    fn of(snapshot: &Snapshot, frames: &Frames, stack: StackId) -> Sight {
        let signs = || snapshot.stacks.get(stack).iter().filter_map(|frame| frames.get(*frame));
        let shows = |sign: &WorkSign| signs().any(|one| one.work == *sign);
        let mut native = signs().filter(|one| one.owner == Owner::Native && one.work != WorkSign::Nothing);
        let innermost = || signs().find(|one| one.owner != Owner::Native);
        let operator = native.next_back().or_else(innermost).map(|one| one.work).unwrap_or_default();
        Sight {
            work: NAMED.into_iter().find(shows).unwrap_or_default(),
            attends: shows(&WorkSign::Attention),
            operator,
            site: frames.site(stack),
        }
    }
}

/// What is found so far.
struct Search<'a> {
    timeline: &'a Timeline,
    roles: &'a Roles,
    /// By stack.
    sights: Vec<Sight>,
    found: Vec<Option<Familiar>>,
}

impl Search<'_> {
    fn sight(&self, one: &Allocation) -> Sight {
        one.stack.and_then(|stack| self.sights.get(stack.position())).copied().unwrap_or_default()
    }

    /// What the frames that made an allocation name it.
    fn named(&self, program: &Program, id: AllocationId, one: &Allocation) -> Option<Familiar> {
        let (sight, role) = (self.sight(one), self.roles.get(id));
        match sight.work {
            WorkSign::Buckets => return Some(Familiar::Buckets),
            WorkSign::Gathers => return Some(Familiar::Gathered),
            WorkSign::Reduces if role != Role::Gradient => return Some(Familiar::Reduced),
            _ if !matches!(role, Role::Activation | Role::Temporary | Role::Unknown) => return None,
            _ => {}
        }
        let phase = one.alloc.map(|event| program.phase(event)).unwrap_or_default();
        match sight.work {
            _ if phase == Phase::Recomputation => Some(Familiar::Recomputed),
            WorkSign::CrossEntropy => Some(Familiar::CrossEntropy),
            WorkSign::CrossEntropyBackward => Some(Familiar::CrossEntropyBackward),
            WorkSign::Softmax if sight.attends => Some(Familiar::Scores),
            WorkSign::Softmax => Some(Familiar::Softmax),
            WorkSign::SoftmaxBackward => Some(Familiar::SoftmaxBackward),
            WorkSign::Foreach if is_scratch(phase, role) => Some(Familiar::Foreach),
            WorkSign::Fused if is_scratch(phase, role) => Some(Familiar::Fused),
            _ => None,
        }
    }

    /// Names what goes into each cross entropy, and into the softmax of each attention.
    fn trace_inputs(&mut self) {
        let mut last: FxHashMap<(Option<FrameId>, Familiar), usize> = FxHashMap::default();
        let mut before = (None, None);
        for at in 0..self.found.len() {
            let Some(one) = self.timeline.allocations.get(at) else { break };
            let named = self.found.get(at).copied().flatten();
            let here = (self.sight(one).site, named);
            // Of one call the first tells: it is as large as what the call was given.
            let begins = here != before;
            before = here;
            let input = match named.filter(|_| begins) {
                Some(Familiar::CrossEntropy) => Familiar::Logits,
                Some(Familiar::Scores) => Familiar::Scores,
                _ => continue,
            };
            let until = last.insert((here.0, input), at).unwrap_or(0);
            self.trace(one, until..at, input);
        }
    }

    /// Names what was read to make something, among some that were made before it.
    fn trace(&mut self, read: &Allocation, among: std::ops::Range<usize>, name: Familiar) {
        let (mut reader, mut is_copy) = (read, false);
        for at in among.rev() {
            let Some(one) = self.timeline.allocations.get(at) else { return };
            let is_open = self.found.get(at).is_some_and(Option::is_none);
            let role = AllocationId::at(at).map(|id| self.roles.get(id)).unwrap_or_default();
            let may_be = is_open && matches!(role, Role::Activation | Role::Temporary | Role::Unknown);
            if !may_be || !is_alive_at(one, reader) || !holds_as_many(one, reader) {
                continue;
            }
            let operator = self.sight(one).operator;
            let fits = one.bytes == reader.bytes || one.bytes.times(2) == reader.bytes;
            // A copy may leave a part out, and a cast may narrow.
            let is_source = is_copy
                && one.bytes <= reader.bytes.times(2)
                && matches!(operator, WorkSign::Copies | WorkSign::Multiplies);
            if !fits && !is_source {
                return;
            }
            if let Some(found) = self.found.get_mut(at) {
                *found = Some(name);
            }
            if operator != WorkSign::Copies {
                return;
            }
            (reader, is_copy) = (one, true);
        }
    }
}

/// What a step makes and gives back.
fn is_scratch(phase: Phase, role: Role) -> bool {
    phase == Phase::OptimizerStep && role != Role::Activation
}

/// Whether something is alive when another is made.
fn is_alive_at(one: &Allocation, reader: &Allocation) -> bool {
    let Some(made) = reader.alloc else { return false };
    one.alloc < Some(made) && one.given_back().is_none_or(|gone| gone > made)
}

/// Whether something can hold as many numbers as another: a format is at most twice as wide as another that is cast to it.
fn holds_as_many(one: &Allocation, reader: &Allocation) -> bool {
    one.bytes > Bytes::ZERO && one.bytes.times(2) >= reader.bytes
}
