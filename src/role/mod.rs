//! What each allocation is: parameter, gradient, optimizer state, activation and so on.
//!
//! In: a snapshot, one device's timeline and what the program was doing. Out: one [`Role`] an allocation, and the kind
//! of [`RoleGround`] it rests on. Every allocation gets exactly one role; where nothing can be shown it is
//! [`Role::Unknown`].
//!
//! No recording says what a block is for. Evidence does, and it is a table: rows of a sign, a role and a reason in words, of which
//! the first that holds decides ([`rows`]). In this order:
//!
//! 1. *Who asked the allocator* (C++ frames, [`stacks`]). If the frame above the allocator is no maker of tensors, the
//!    block is a library's own scratch memory: cuDNN and cuBLAS workspaces, buffers of reductions and sorts.
//! 2. *Which code of PyTorch asked or let go* (Python frames and phases). `zero_grad` lets go of gradients
//!    and of nothing else; what the optimizer makes and keeps is its state; `Module.to`, constructors of layers,
//!    `deepcopy` and `torch.load` make weights.
//! 3. *When it lives*. What the backward pass makes and leaves behind is a gradient; what
//!    it lets go of and did not make was saved for it: an activation. What dies in the stretch that made it is temporary.
//!
//! What only many lifetimes together show comes after: cuBLAS workspaces without C++ frames ([`workspaces`]), what the end cut short
//! ([`cut_short`]), blocks from before the recording ([`earlier`]), state that a checkpoint brought ([`resumed`]), and last the pass that ties parameters, gradients and states to
//! each other by size and succession ([`ties`]): weights in plain tensors, weights that are replaced, copies of weights, optimizers
//! that the program wrote itself.
//!
//! Beside its role an allocation may have a name that people look for: that is `familiar`'s business.
//!
//! Held against what each recorded process knew of its own tensors (parameters and buffers, gradients, states), at least
//! 99 % of the bytes are right, in all and in the mean of the recordings; `tests/corpus/roles.rs` repeats it. It covers what
//! was allocated in the recording, with the stacks as they were recorded; and, at 95 %, what is held at the end where all events are
//! lost. No test measures the roles of recordings without stacks, and of blocks from before the recording that have none.
//!
//! Where it goes wrong. Sizes cannot tell a buffer from a frozen parameter, nor a copy of the weights from the weights
//! (a teacher of the student's own shape, from before the recording, can pass for optimizer state). A result of
//! `torch.autograd.grad` that has the size of a parameter counts as a gradient. With Python stacks alone, a gradient
//! that is never released and has exactly the size of a cuBLAS workspace can take its place. An output that is kept on
//! purpose is an activation in a program that trains. Of blocks from before the recording the sums by role are better
//! than the role of each.
//!
//! The work is one look at each distinct stack and a few passes over the allocations, each with a binary search or two.

mod cut_short;
mod earlier;
mod gradients;
mod known;
mod resumed;
mod rows;
mod scene;
mod sizes;
mod stacks;
#[cfg(test)]
mod tests;
mod ties;
mod workspaces;

use serde::{Deserialize, Serialize};

use crate::frames::Frames;
use crate::program::Program;
use crate::snapshot::Snapshot;
use crate::timeline::Timeline;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, Index};

use known::Known;
use rows::{Inference, LEFT_BEHIND, LIVES, OLDER, SIGNS, STACKLESS};
use scene::{Life, Scene};

/// What an allocation holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// A trainable or frozen weight.
    Parameter,
    /// A module's state that is no weight.
    Buffer,
    /// A parameter's gradient.
    Gradient,
    /// What the optimizer keeps from step to step.
    OptimizerState,
    /// Saved for the backward pass, or an output that outlives its forward pass.
    Activation,
    /// A batch of data, or data that stays on the device.
    Input,
    /// Dead before the phase that made it ends.
    Temporary,
    /// A library's scratch memory (cuBLAS, cuDNN).
    Workspace,
    /// Buckets, gathered parameters and other memory of collectives.
    Communication,
    /// None of these could be shown.
    #[default]
    Unknown,
}

impl Role {
    /// All roles, in the order in which compositions are shown.
    pub const ALL: [Role; 10] = [
        Role::Parameter,
        Role::Buffer,
        Role::Gradient,
        Role::OptimizerState,
        Role::Activation,
        Role::Input,
        Role::Temporary,
        Role::Workspace,
        Role::Communication,
        Role::Unknown,
    ];

    /// The name in reports and JSON: `optimizer-state`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Parameter => "parameter",
            Role::Buffer => "buffer",
            Role::Gradient => "gradient",
            Role::OptimizerState => "optimizer-state",
            Role::Activation => "activation",
            Role::Input => "input",
            Role::Temporary => "temporary",
            Role::Workspace => "workspace",
            Role::Communication => "communication",
            Role::Unknown => "unknown",
        }
    }

    /// The name for people, of several.
    pub const fn plural(self) -> &'static str {
        match self {
            Role::Parameter => "parameters",
            Role::Buffer => "buffers",
            Role::Gradient => "gradients",
            Role::OptimizerState => "optimizer state",
            Role::Activation => "activations",
            Role::Input => "inputs",
            Role::Temporary => "temporaries",
            Role::Workspace => "workspaces",
            Role::Communication => "communication buffers",
            Role::Unknown => "unknown",
        }
    }
}

/// What a role rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum RoleGround {
    /// The C++ frame that asked the allocator.
    Requester,
    /// The Python code that made it.
    Frames,
    /// The code that let it go.
    Release,
    /// When it was made and how long it lived.
    Lifetime,
    /// Its size, against those of parameters, gradients and states.
    Sizes,
    /// Nothing.
    #[default]
    Nothing,
}

impl RoleGround {
    /// How far a role that rests on this can be trusted.
    pub const fn confidence(self) -> Confidence {
        match self {
            RoleGround::Requester | RoleGround::Frames | RoleGround::Release => Confidence::High,
            RoleGround::Lifetime => Confidence::Medium,
            RoleGround::Sizes | RoleGround::Nothing => Confidence::Low,
        }
    }

    /// The name in JSON: `requester`.
    pub const fn name(self) -> &'static str {
        match self {
            RoleGround::Requester => "requester",
            RoleGround::Frames => "frames",
            RoleGround::Release => "release",
            RoleGround::Lifetime => "lifetime",
            RoleGround::Sizes => "sizes",
            RoleGround::Nothing => "nothing",
        }
    }
}

/// What a role rests on, for people who ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ground {
    /// The kind.
    pub evidence: RoleGround,
    /// In words: what was seen.
    pub because: &'static str,
}

impl Ground {
    /// Sizes, and at most lives, that fit.
    const fn sizes(because: &'static str) -> Ground {
        Ground { evidence: RoleGround::Sizes, because }
    }
}

/// The role of each allocation of a timeline, by its id.
#[derive(Debug, Default)]
pub struct Roles {
    /// The roles.
    pub of: Vec<Role>,
    /// What each rests on.
    pub grounds: Vec<&'static Ground>,
}

impl Roles {
    /// Infers the roles of a timeline's allocations.
    pub fn infer(snapshot: &Snapshot, timeline: &Timeline, program: &Program, frames: &Frames) -> Roles {
        let scene = Scene::new(snapshot, timeline, program, frames);
        let mut verdicts = Verdicts::open(timeline.allocations.len());
        verdicts.settle(&scene, SIGNS);
        verdicts.settle(&scene, OLDER);
        if !scene.has_stacks {
            verdicts.settle(&scene, STACKLESS);
        }
        workspaces::settle(&scene, &mut verdicts);
        verdicts.settle(&scene, LEFT_BEHIND);
        ties::settle_bucket_views(&scene, &mut verdicts);
        verdicts.settle(&scene, LIVES);
        cut_short::settle(&scene, &mut verdicts);
        earlier::settle(&scene, &mut verdicts);
        resumed::settle(&scene, &mut verdicts);
        ties::settle(&scene, &mut verdicts);
        let settled = |verdict: &Option<RoleVerdict>| verdict.unwrap_or(OPEN);
        let (of, grounds) = verdicts.0.iter().map(settled).unzip();
        Roles { of, grounds }
    }

    /// What the role of an allocation rests on.
    pub fn ground(&self, id: AllocationId) -> Ground {
        self.grounds.get(id.position()).map_or_else(Ground::default, |ground| **ground)
    }

    /// The role of an allocation.
    pub fn get(&self, id: AllocationId) -> Role {
        self.of.get(id.position()).copied().unwrap_or_default()
    }

    /// The requested bytes alive just after event `at` (before the first event for `None`) by role, in the order of
    /// [`Role::ALL`].
    pub fn composition(
        &self,
        timeline: &Timeline,
        at: Option<EventIndex>,
    ) -> [(Role, Bytes); Role::ALL.len()] {
        let mut parts = Role::ALL.map(|role| (role, Bytes::ZERO));
        for (allocation, &role) in timeline.allocations.iter().zip(&self.of) {
            let alive = at.map_or(allocation.alloc.is_none(), |at| allocation.alive_after(at));
            if let Some((_, bytes)) = parts.iter_mut().find(|(of, _)| alive && *of == role) {
                *bytes += allocation.bytes;
            }
        }
        parts
    }
}

/// A role and what it rests on: the latter stands in the tables and is one of few.
type RoleVerdict = (Role, &'static Ground);

/// What is settled by nothing.
const OPEN: RoleVerdict = (Role::Unknown, &Ground { evidence: RoleGround::Nothing, because: "" });

/// What is settled so far, by allocation.
#[derive(Debug)]
struct Verdicts(Vec<Option<RoleVerdict>>);

impl Verdicts {
    fn open(allocations: usize) -> Verdicts {
        Verdicts(vec![None; allocations])
    }

    /// Asks a table about every allocation that is still open.
    fn settle(&mut self, scene: &Scene<'_>, table: &'static [Inference]) {
        let known = Known::of(scene, self);
        self.settle_by(scene, |life| rows::judge(table, life, &known));
    }

    /// Asks `judge` about every allocation that is still open.
    fn settle_by(&mut self, scene: &Scene<'_>, mut judge: impl FnMut(&Life<'_>) -> Option<RoleVerdict>) {
        for (life, verdict) in scene.lives().zip(&mut self.0) {
            if verdict.is_none() {
                *verdict = judge(&life);
            }
        }
    }

    /// The lives of all allocations, with what is settled of each.
    fn lives<'s>(&'s self, scene: &'s Scene<'_>) -> impl Iterator<Item = (Life<'s>, Option<Role>)> + 's {
        scene.lives().zip(self.0.iter().map(|verdict| verdict.map(|(role, _)| role)))
    }
}
