//! What is short-lived and large in a recording, and what counts together.
//!
//! In: the facts of a device. Out: for an allocation whether it is large and lives for a moment, and the [`Together`] that chose to
//! make it. Brief is what lives for a small part of an iteration, or, of a computation (a function of the program's own that runs no model and
//! is in none) or of a package's function that the program calls, what is gone before anything but this one call makes memory, however many
//! events that are: where an iteration has twenty events, a tenth of it is less than one operator. Gradients of each sample by itself
//! are brief if they go with their iteration: how many stand at once is the program's choice (`chunk_size`).

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::facts::{Facts, Maker};
use crate::frames::{MemorySign, Method, PhaseSign};
use crate::program::Phase;
use crate::role::Role;
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{Bytes, FrameId, FunctionId, Index, StackId};

/// The share of the peak below which a single tensor is no spike, as a divisor.
static SINGLE_PART: Threshold<u64> = Threshold::new("rules::transient_spike::SINGLE_PART", 10);
/// A tensor may live for an iteration's events divided by this.
static LIFE_PART: Threshold<usize> = Threshold::new("rules::transient_spike::LIFE_PART", 10);
/// The same for what one function makes for a line that calls it: its tensors live until it returns. Matrices of distances
/// in a small network measure 0.13.
static CALL_PART: Threshold<usize> = Threshold::new("rules::transient_spike::CALL_PART", 5);

/// What counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Together {
    /// What one line makes.
    Line(FrameId),
    /// What a function makes for one line that calls it.
    Call { caller: FrameId, function: FunctionId },
    /// What a function makes that computes and runs no model, and all that it calls for it, whoever calls it.
    Computation(FunctionId),
    /// The gradients of each sample by itself that one line asks for.
    PerSample(FrameId),
}

/// A tensor that is large for a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brief {
    /// With what it counts.
    pub(super) place: Together,
    /// Whether it is larger than what layers make: a choice of the code that makes it. Others only count beside such.
    pub(super) chosen: bool,
}

/// What short and large mean here.
pub(super) struct Yardstick<'f, 'a> {
    facts: &'f Facts<'a>,
    makers: Vec<Option<Maker>>,
    /// Bytes from which a single tensor counts.
    large: Bytes,
    /// How many events it may live, and how many if it is a function's.
    short: usize,
    short_in_call: usize,
    /// The largest output of a layer in the loop.
    largest_layer: Bytes,
    /// Functions that run models, backward passes or optimizers.
    at_work: BTreeSet<FunctionId>,
    /// The sizes of the parameters.
    weights: FxHashSet<Bytes>,
}

/// How many events an iteration has, the median one; where nothing repeats, a step's share of the recording.
fn length_of_a_pass(facts: &Facts) -> usize {
    let iterations = facts.program.iterations.iter();
    let mut lengths: Vec<usize> =
        iterations.map(|one| one.end.position().saturating_sub(one.start.position())).collect();
    lengths.sort_unstable();
    lengths
        .get(lengths.len() / 2)
        .copied()
        .unwrap_or(facts.trace.events.len() / facts.program.steps.len().max(1))
}

/// The functions under which a module, a backward pass or an optimizer runs anywhere in the recording.
fn functions_at_work(facts: &Facts) -> BTreeSet<FunctionId> {
    let runs = |frame: &FrameId| {
        let sign = facts.frames.phase(*frame);
        matches!(sign, PhaseSign::ModuleCall | PhaseSign::Backward | PhaseSign::Optimizer)
    };
    let mut at_work = BTreeSet::new();
    for stack in facts.snapshot.stacks.ids() {
        let python = facts.frames.python(stack);
        let Some(last) = python.iter().rposition(runs) else { continue };
        let above = python.iter().take(last);
        at_work.extend(above.filter_map(|frame| facts.frames.function(*frame)));
    }
    at_work
}

impl<'f, 'a> Yardstick<'f, 'a> {
    pub(super) fn of(facts: &'f Facts<'a>) -> Yardstick<'f, 'a> {
        let makers = facts.makers();
        let median = length_of_a_pass(facts);
        let large = Bytes(facts.steady().peak.get() / SINGLE_PART.get());
        let (short, short_in_call) = (median / LIFE_PART.get(), median / CALL_PART.get());
        let at_work = functions_at_work(facts);
        let largest_layer = Bytes::ZERO;
        let weights = facts.parameter_sizes();
        let mut yardstick =
            Yardstick { facts, makers, large, short, short_in_call, largest_layer, at_work, weights };
        let layers = facts.timeline.iter().filter(|(id, one)| {
            yardstick.maker(one) == Some(Maker::Layer)
                && facts.role(*id) != Role::Workspace
                && one.alloc.is_some_and(|event| facts.steady().events.contains(&event.position()))
        });
        yardstick.largest_layer = layers.map(|(_, one)| one.bytes).max().unwrap_or_default();
        yardstick
    }

    fn maker(&self, one: &Allocation) -> Option<Maker> {
        one.stack.and_then(|stack| self.makers.get(stack.position()).copied().flatten())
    }

    /// What an allocation counts as, if it is large and lives for a moment; `scratch` is a library's own, which counts with a
    /// computation alone.
    pub(super) fn brief(&self, one: &Allocation, scratch: bool) -> Option<Brief> {
        let lives = self.life(one).filter(|_| one.bytes >= self.large)?;
        if let Some(line) = self.per_sample(one) {
            return Some(Brief { place: Together::PerSample(line), chosen: true });
        }
        let line = self.line(one);
        if let Some(function) = self.computation(one) {
            let brief = lives <= self.short_in_call || self.within(one, function);
            let place = Together::Computation(function);
            return brief.then_some(Brief { place, chosen: line.is_some() && !scratch });
        }
        let place = self.place(one, line.filter(|_| !scratch)?);
        let longest = if matches!(place, Together::Call { .. }) { self.short_in_call } else { self.short };
        let called = line.and_then(|line| self.called_at(one, line));
        let in_the_call = || called.is_some_and(|function| self.within(one, function));
        (lives <= longest || in_the_call()).then_some(Brief { place, chosen: true })
    }

    /// The line that asks for the gradient of each sample by itself, where that is one, and goes with its iteration: it is as large as a
    /// parameter times the samples at once. In an ensemble, whose parameters are stacked, it is as large as one of them.
    fn per_sample(&self, one: &Allocation) -> Option<FrameId> {
        let born = one.alloc.filter(|event| self.facts.phase(*event) == Phase::Backward)?;
        // What the last iteration makes may go only after the loop.
        let ends = self.facts.turns().held(one);
        let goes = ends.start + 1 >= self.facts.program.iterations.len() || ends.is_empty();
        if !goes || self.weights.contains(&one.bytes) {
            return None;
        }
        // It is made on the engine's thread, which knows nothing of who called.
        let entered = self.facts.calls.backward_before(born)?;
        let vectorizes = self.facts.frames.shows(entered, MemorySign::Vectorizes);
        vectorizes.then(|| self.facts.site(entered)).flatten()
    }

    /// Whether the autograd engine made it, where it lives for a moment.
    pub(super) fn is_brief_gradient(&self, one: &Allocation) -> bool {
        let brief = self.life(one).is_some_and(|lives| lives <= self.short);
        let backward = one.alloc.is_some_and(|event| self.facts.phase(event) == Phase::Backward);
        brief && backward && one.bytes >= self.large && self.maker(one).is_none()
    }

    /// How many events an allocation of the program at work lives. What a step makes is `optimizer-step-peak`'s business.
    fn life(&self, one: &Allocation) -> Option<usize> {
        let (born, died) = (one.alloc?, one.free_requested?);
        let counts = self.facts.works_at(born) && self.facts.phase(born) != Phase::OptimizerStep;
        counts.then(|| died.position() - born.position())
    }

    /// The line that chose to make a tensor: that of a loss, or of code whose tensor is larger than what layers make.
    fn line(&self, one: &Allocation) -> Option<FrameId> {
        let (factor, otherwise) = match self.maker(one)? {
            Maker::Layer => return None,
            Maker::Loss => (0.0, true),
            Maker::Function => (1.5, true),
            Maker::Forward => (3.0, false),
        };
        let outgrows = if self.largest_layer == Bytes::ZERO {
            otherwise
        } else {
            one.bytes.get() as f64 >= factor * self.largest_layer.get() as f64
        };
        self.facts.site(one.stack?).filter(|_| outgrows)
    }

    /// A function outside every module and outside the main loop's own body does one thing for the line that calls it.
    fn place(&self, one: &Allocation, line: FrameId) -> Together {
        let function = |frame: FrameId| self.facts.frames.function(frame);
        let own = function(line).filter(|own| Some(*own) != self.looping());
        let caller = one.stack.and_then(|stack| self.facts.frames.user(stack).nth(1));
        let call = caller.zip(own).filter(|_| self.maker(one) == Some(Maker::Function));
        call.map_or(Together::Line(line), |(caller, function)| Together::Call { caller, function })
    }

    /// The outermost function around an allocation that computes something and runs no model. Where there are no layers,
    /// functions may be the model.
    fn computation(&self, one: &Allocation) -> Option<FunctionId> {
        let is_function = self.maker(one) == Some(Maker::Function) && self.largest_layer > Bytes::ZERO;
        let chain = self.outside_modules(one.stack.filter(|_| is_function)?);
        let called = chain.split_last().map(|(_, called)| called).unwrap_or_default();
        let functions = called.iter().map_while(|frame| self.facts.frames.function(*frame));
        let computes = |one: &FunctionId| Some(*one) != self.looping() && !self.at_work.contains(one);
        functions.take_while(computes).last()
    }

    /// The function of a package that a line of the user's calls, and that makes an allocation without a model: a search, a metric.
    fn called_at(&self, one: &Allocation, line: FrameId) -> Option<FunctionId> {
        let frames = &self.facts.frames;
        let python = frames.python(one.stack?);
        let at = python.iter().rposition(|frame| *frame == line)?;
        let function = python.get(at + 1).and_then(|frame| frames.function(*frame))?;
        (!self.at_work.contains(&function)).then_some(function)
    }

    /// The lines that may stand for an allocation of a place, innermost first: its own, and those that call for it.
    pub(super) fn lines(&self, place: Together, one: &Allocation) -> Vec<FrameId> {
        let own: Vec<FrameId> =
            one.stack.map(|stack| self.facts.frames.user(stack).collect()).unwrap_or_default();
        let is_of = |function: FunctionId| {
            let is_it = move |frame: &FrameId| self.facts.frames.function(*frame) == Some(function);
            own.iter().rposition(is_it).map_or(1, |last| last + 2)
        };
        let depth = match place {
            Together::Line(_) => 1,
            Together::PerSample(line) => return vec![line],
            Together::Call { .. } => 2,
            Together::Computation(function) => is_of(function),
        };
        own.into_iter().take(depth).collect()
    }

    /// The user's frames of a stack, innermost first, up to the forward of the innermost module that is called.
    fn outside_modules(&self, stack: StackId) -> Vec<FrameId> {
        let frames = &self.facts.frames;
        let python = frames.python(stack).iter().rev().copied();
        let inside = python.take_while(|frame| frames.phase(*frame) != PhaseSign::ModuleCall);
        let own: Vec<FrameId> = inside.filter(|frame| frames.is_own(*frame)).collect();
        let forward = own.iter().position(|frame| frames.method(*frame) == Method::Forward);
        own.get(..forward.map_or(own.len(), |at| at + 1)).unwrap_or_default().to_vec()
    }

    /// Whether nothing but a call of the function makes memory while an allocation is there.
    fn within(&self, one: &Allocation, function: FunctionId) -> bool {
        let Some((born, died)) = one.alloc.zip(one.free_requested) else { return false };
        let meanwhile = self.facts.trace.events.get(born.position()..died.position()).unwrap_or_default();
        let is_its_own = |stack: StackId| {
            let python = self.facts.frames.python(stack);
            python.iter().any(|frame| self.facts.frames.function(*frame) == Some(function))
        };
        let mut made = meanwhile.iter().filter(|event| event.action == Action::Alloc);
        made.all(|event| event.stack.is_some_and(is_its_own))
    }

    fn looping(&self) -> Option<FunctionId> {
        self.facts.program.main_loop.and_then(|main| self.facts.frames.function(main.frame))
    }
}
