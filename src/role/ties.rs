//! Parameters, gradients and states, tied to each other by size and succession.
//!
//! In: the scene and what every other kind of evidence says. Out: roles of what the program itself keeps in plain tensors of its
//! model's sizes: weights, copies of weights, an optimizer's state, gradients of masters. Frames do not tell these from each other, and
//! no single lifetime does; a line's blocks together do. A line counts if it makes, over and over or once, blocks of which nearly all
//! have the size of a parameter or a gradient, and together are no small part of the model. What it makes is then:
//!
//! 1. what it takes the place of ([`kin`]): weights where weights go as it makes them (`p.data = ...`, `torch.cat`), and state where
//!    state goes;
//! 2. state, if it is made of gradients: right after a backward pass, before any other forward pass or a step; but gradients, if most that the
//!    line made is seen to be such (those of masters);
//! 3. of what is kept from setup, weights as far as there are gradients of that size and no other weights; beyond these, state where no
//!    optimizer of PyTorch's is seen, and otherwise
//! 4. a copy of the weights.
//!
//! Each of these decides in recordings of several programs. What decided in none of five hundred was taken out: state that is made blank
//! beside PyTorch's optimizer, gradients of masters that setup makes, state that was taken out for a while and comes back.

mod kin;

use rustc_hash::{FxHashMap, FxHashSet};

use super::gradients::Gradients;
use super::scene::{Life, Scene, StepSide, is_forward};
use super::sizes::Sizes;
use super::stacks::TorchOrigin;
use super::{Ground, Role, RoleGround, RoleVerdict, Verdicts};
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::unit::{Bytes, StackId};

/// Fewer blocks of a line prove nothing by their sizes.
static FEWEST: Threshold<usize> = Threshold::new("role::ties::FEWEST", 4);
/// The share of a line's blocks that must have a size of the model's.
static ALIKE: Threshold<f64> = Threshold::new("role::ties::ALIKE", 0.9);
/// The share of the model's bytes, or of a backward pass's gradients, that a line must make in one turn.
static PART: Threshold<f64> = Threshold::new("role::ties::PART", 0.5);

const WEIGHTS: Ground = Ground::sizes("kept from setup, of the size of a gradient");
const SUCCESSOR: Ground = Ground::sizes("its line makes what takes the place of others with this role");
const OF_GRADIENTS: Ground =
    Ground::sizes("made right after a backward pass, in sizes of the model's, and kept");
const OWN: Ground =
    Ground::sizes("kept from setup beyond the weights of that size, and no optimizer of PyTorch's is seen");
const COPY: Ground = Ground::sizes("a line's blocks have the sizes of the weights: a copy");

/// What one line makes.
#[derive(Debug, Default)]
pub(super) struct LineOutput {
    blocks: usize,
    alike: usize,
    bytes: Bytes,
    turns: FxHashSet<usize>,
    /// How many were made of gradients.
    of_gradients: usize,
    /// How many others it made that are seen to be gradients.
    gradients: usize,
    /// How many were made in a forward pass, also of an evaluation.
    in_forward: usize,
    /// How many were made in a forward pass for which autograd noted what it did.
    in_training: usize,
    /// The first that it makes.
    first: usize,
}

/// What the program's model is, as far as other evidence goes.
struct Model {
    gradients: Gradients,
    /// Of blocks that are weights by more than their size.
    weights: Sizes,
    states: Sizes,
    /// What a line's bytes are held against: those of the weights, and of what each backward pass leaves.
    wholes: Vec<Bytes>,
}

impl Model {
    fn of(scene: &Scene<'_>, verdicts: &Verdicts) -> Model {
        let (mut weights, mut states) = (Sizes::default(), Sizes::default());
        let mut whole = Bytes::ZERO;
        for (life, verdict) in scene.lives().zip(&verdicts.0) {
            match verdict {
                Some((Role::Parameter, ground)) if life.sees_work() => {
                    whole += life.bytes();
                    if ground.evidence != RoleGround::Sizes || life.born().is_none() {
                        weights.add(life.bytes());
                    }
                }
                Some((Role::OptimizerState, _)) => _ = states.add(life.bytes()),
                _ => {}
            }
        }
        let gradients = Gradients::of(scene, verdicts);
        let mut wholes = gradients.passes();
        wholes.push(whole);
        Model { gradients, weights, states, wholes }
    }

    fn has(&self, bytes: Bytes) -> bool {
        self.weights.has(bytes) || self.states.has(bytes) || self.gradients.of_size(bytes) > 0
    }

    /// Whether a line makes so much of what the model has that it is no chance.
    fn is_made_by(&self, line: &LineOutput) -> bool {
        let alike = line.alike as f64 >= ALIKE.get() * line.blocks as f64;
        let of_a_turn = |whole: &Bytes| {
            *whole > Bytes::ZERO && line.bytes.share_of(whole.times(line.turns.len() as u64)) >= PART.get()
        };
        line.blocks >= FEWEST.get() && alike && self.wholes.iter().any(of_a_turn)
    }
}

/// Settles what other evidence could only guess.
pub(super) fn settle(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let model = Model::of(scene, verdicts);
    let lines = Lines::of(scene, verdicts, &model);
    if scene.trains() {
        settle_setup(scene, verdicts, &model);
    }
    let kinds = kin::find(scene, verdicts, &lines);
    for (life, verdict) in scene.lives().zip(&mut verdicts.0) {
        let of_setup = |verdict: &RoleVerdict| verdict.0 == Role::Parameter && life.is_from_setup();
        let Some(guess) = verdict.filter(|verdict| !of_setup(verdict)) else { continue };
        let Some(at) = lines.of_life(&life, guess) else { continue };
        let kind = kinds.get(at).copied().flatten();
        let Some(line) = lines.all.get(at) else { continue };
        // Weights may be replaced inside of a forward pass; no optimizer works there. (A functional call without autograd looks like an
        // evaluation: moments may be resized with those of images.)
        if let Some(role) = kind.filter(|role| *role == Role::Parameter || line.in_training == 0) {
            *verdict = Some((role, &SUCCESSOR));
        } else if line.gradients > line.blocks {
            // The last pass's, which nothing has cleared yet.
            *verdict = Some((Role::Gradient, &SUCCESSOR));
        } else if line.of_gradients * 2 > line.blocks {
            *verdict = Some((Role::OptimizerState, &OF_GRADIENTS));
        } else if line.in_forward > 0 {
            // A forward pass keeps what it keeps; sizes alone do not make it weights.
        } else if life.died().is_none() || life.turns() > 1 {
            *verdict = Some((Role::Parameter, &COPY));
        }
    }
}

/// The lines that make blocks of the model's sizes, oldest first.
pub(super) struct Lines {
    by_stack: FxHashMap<StackId, usize>,
    all: Vec<LineOutput>,
}

impl Lines {
    fn of(scene: &Scene<'_>, verdicts: &Verdicts, model: &Model) -> Lines {
        let mut lines: FxHashMap<StackId, LineOutput> = FxHashMap::default();
        // What is made after the last pass has no gradients yet: that its size is not known says nothing.
        let last_pass = scene.last_backward.unwrap_or(usize::MAX);
        for (life, verdict) in scene.lives().zip(&verdicts.0) {
            let open = life.stack().filter(|_| verdict.is_some_and(|verdict| may_be_tied(&life, verdict)));
            let alike = model.has(life.bytes());
            let born = life.born().filter(|born| alike || *born < last_pass);
            let Some((stack, born)) = open.zip(born) else { continue };
            let line =
                lines.entry(stack).or_insert_with(|| LineOutput { first: life.at, ..LineOutput::default() });
            line.blocks += 1;
            line.alike += usize::from(alike);
            line.bytes += life.bytes();
            line.turns.insert(scene.turn(born));
            let in_forward = life.born_phase().is_some_and(is_forward);
            line.in_forward += usize::from(in_forward);
            line.in_training += usize::from(life.born_phase() == Some(Phase::Forward));
            line.of_gradients += usize::from(!in_forward && scene.follows_backward(born));
        }
        lines.retain(|_, line| model.is_made_by(line));
        for (life, verdict) in scene.lives().zip(&verdicts.0) {
            let is_gradient = verdict.is_some_and(|(role, _)| role == Role::Gradient);
            let line = life.stack().filter(|_| is_gradient).and_then(|stack| lines.get_mut(&stack));
            if let Some(line) = line {
                line.gradients += 1;
            }
        }
        let mut ordered: Vec<(StackId, LineOutput)> = lines.into_iter().collect();
        ordered.sort_by_key(|(_, line)| line.first);
        let by_stack = ordered.iter().enumerate().map(|(at, (stack, _))| (*stack, at)).collect();
        Lines { by_stack, all: ordered.into_iter().map(|(_, line)| line).collect() }
    }

    /// The line that made a block, if other evidence leaves its role open.
    fn of_life(&self, life: &Life<'_>, verdict: RoleVerdict) -> Option<usize> {
        let stack = life.stack().filter(|_| may_be_tied(life, verdict))?;
        self.by_stack.get(&stack).copied()
    }
}

/// Whether nothing but a guess gives a block its role, and no pass for gradients made it.
fn may_be_tied(life: &Life<'_>, (role, ground): RoleVerdict) -> bool {
    let guessed = match role {
        Role::Unknown | Role::Input | Role::Buffer => true,
        Role::Activation => ground.evidence == RoleGround::Lifetime,
        Role::Parameter => ground.evidence == RoleGround::Sizes && life.born().is_some(),
        _ => false,
    };
    let outside = life.born_side() == Some(StepSide::Main);
    let lasting = life.died().is_none() || life.turns() > 0 || life.is_from_setup();
    guessed && outside && lasting && life.sees_work()
}

/// What setup leaves in sizes of gradients: the oldest are the weights, as far as no others are known.
fn settle_setup(scene: &Scene<'_>, verdicts: &mut Verdicts, model: &Model) {
    let mut seen = Sizes::default();
    for (life, verdict) in scene.lives().zip(&mut verdicts.0) {
        let bytes = life.bytes();
        let is_kept = life.is_from_setup() && life.born_phase() != Some(Phase::Input);
        let is_open = is_kept && verdict.is_some_and(|verdict| may_be_tied(&life, verdict));
        if !is_open || model.gradients.of_size(bytes) == 0 {
            continue;
        }
        let weights = model.gradients.of_size(bytes).saturating_sub(model.weights.of(bytes));
        if seen.add(bytes) <= weights {
            *verdict = Some((Role::Parameter, &WEIGHTS));
        } else if !scene.has_optimizer {
            *verdict = Some((Role::OptimizerState, &OWN));
        }
    }
}

const BUCKETS: Ground = Ground {
    evidence: RoleGround::Lifetime,
    because: "a bucket of gradients, and the backward pass leaves no others",
};

const OF_A_HOOK: Ground = Ground {
    evidence: RoleGround::Sizes,
    because: "the backward pass left it, no parameter has its size, and the buckets are the gradients",
};

/// With `gradient_as_bucket_view=True` DDP's buckets are the gradients. Then steps see next to nothing of a parameter's size that a backward pass
/// left behind, beside the buckets that stay. What else it leaves is a hook's, which
/// exchanges the gradients and keeps something on the way.
pub(super) fn settle_bucket_views(scene: &Scene<'_>, verdicts: &mut Verdicts) {
    let replicated = |life: &Life| life.made().origin == TorchOrigin::Replicated;
    let is_weight = |life: &Life, role: Option<Role>| match role {
        Some(role) => role == Role::Parameter,
        None => life.born().is_none() && life.died().is_none(),
    };
    let weights = Sizes::count(verdicts.lives(scene).filter(|(life, role)| is_weight(life, *role)));
    let is_bucket = |(life, role): &(Life<'_>, Option<Role>)| {
        *role == Some(Role::Communication) && replicated(life) && life.died().is_none()
    };
    let (mut buckets, mut rebuilt) = (Bytes::ZERO, 0);
    for (life, _) in verdicts.lives(scene).filter(is_bucket) {
        buckets += life.bytes();
        rebuilt = rebuilt.max(life.born().unwrap_or(0));
    }
    // What `no_sync` adds up is apart until the pass that is reduced, and no step sees it.
    let is_apart = |(life, role): &(Life<'_>, Option<Role>)| {
        let until = life.born().and_then(|born| scene.next_step(born)).unwrap_or(rebuilt).max(rebuilt);
        let stays = life.died().is_none_or(|died| died > until);
        *role == Some(Role::Gradient) && weights.has(life.bytes()) && stays
    };
    let gradients: Bytes = verdicts.lives(scene).filter(is_apart).map(|(life, _)| life.bytes()).sum();
    if !scene.trains() || buckets == Bytes::ZERO || gradients.share_of(buckets) > 0.1 {
        return;
    }
    for (life, verdict) in scene.lives().zip(&mut verdicts.0) {
        if replicated(&life) {
            *verdict = Some((Role::Gradient, &BUCKETS));
        } else if verdict.is_some_and(|(role, _)| role == Role::Gradient) && !weights.has(life.bytes()) {
            *verdict = Some((Role::Unknown, &OF_A_HOOK));
        }
    }
}
