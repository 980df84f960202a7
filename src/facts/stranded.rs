//! What grows because the garbage collector has not come for it yet.
//!
//! In: the lines that grow, and the frees of which it is seen that the collector made them. Out: of which lines everything that goes, but for what goes
//! while they still run, at more than one moment, goes with the collector. It has taken what was young; the rest has grown old, and waits for a collection that the
//! recording does not reach. (Objects of a cycle that a list holds on to go with the collector, too, once they leave it: there is no telling, and a list
//! that has an end is none of the lines that grow.)

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::facts::{Facts, Growing};
use crate::program::CollectorSign;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Index, StackId};

/// A growing line whose tensors wait for the collector.
#[derive(Debug)]
pub struct Stranded {
    /// Its place among the lines that grow.
    pub growing: usize,
    /// What waits, oldest first.
    pub stays: Vec<AllocationId>,
    /// Its like that the collector has taken.
    pub gone: Vec<AllocationId>,
    /// How it is known that it did.
    pub seen: CollectorSign,
}

/// What each stack of a growing line made.
type MadeByStack = FxHashMap<StackId, Vec<AllocationId>>;

/// The stranded lines of a device, fastest first.
pub(super) fn stranded(facts: &Facts) -> Vec<Stranded> {
    let collector = &facts.program.collector;
    if !facts.trace.events.iter().any(|event| collector.frees(event).is_some()) {
        return Vec::new();
    }
    let mut made = MadeByStack::default();
    for growing in facts.growing() {
        made.extend(stacks(facts, growing).map(|stack| (stack, Vec::new())));
    }
    for (id, one) in facts.timeline.iter() {
        if let Some(made) = one.stack.and_then(|stack| made.get_mut(&stack)) {
            made.push(id);
        }
    }
    let lines = facts.growing().iter().enumerate();
    lines.filter_map(|(at, growing)| of_line(facts, &made, at, growing)).collect()
}

fn stacks(facts: &Facts, growing: &Growing) -> impl Iterator<Item = StackId> {
    growing.stays.iter().filter_map(|id| facts.timeline.allocation(*id)?.stack)
}

fn of_line(facts: &Facts, made: &MadeByStack, at: usize, growing: &Growing) -> Option<Stranded> {
    let gone = gone(facts, made, growing);
    let given_back = |id: &AllocationId| facts.timeline.given_back(*id);
    let sign = |id: &AllocationId| {
        let event = facts.trace.events.get(given_back(id)?.position())?;
        facts.program.collector.frees(event)
    };
    let signs = gone.iter().map(sign).collect::<Option<Vec<CollectorSign>>>()?;
    let moments: BTreeSet<_> = gone.iter().filter_map(|id| facts.iteration_of(given_back(id)?)).collect();
    let seen = signs.first().filter(|_| moments.len() > 1).copied()?;
    Some(Stranded { growing: at, stays: growing.stays.clone(), gone, seen })
}

/// Of what the stacks of a growing line made, all that outlives the line and goes.
fn gone(facts: &Facts, made: &MadeByStack, growing: &Growing) -> Vec<AllocationId> {
    let stays: FxHashSet<AllocationId> = growing.stays.iter().copied().collect();
    let line_runs = |one: &Allocation| {
        let python = facts.freed_under(one).map(|stack| facts.frames.python(stack)).unwrap_or_default();
        python.contains(&growing.site)
    };
    let goes = |id: &AllocationId| {
        let one = facts.timeline.allocation(*id);
        one.is_some_and(|one| one.given_back().is_some() && !line_runs(one))
    };
    let stacks: BTreeSet<StackId> = stacks(facts, growing).collect();
    let alike = stacks.iter().filter_map(|stack| made.get(stack)).flatten();
    alike.copied().filter(|id| !stays.contains(id) && goes(id)).collect()
}
