//! Buffers that are replaced by ever larger ones.
//!
//! In: lifetimes and stacks. Out: chains of allocations of one path, each larger than the one before, which is alive when
//! its successor is made and goes soon after: `buffer = torch.cat([buffer, new])`. Between two versions there may be copies of the same size on
//! another path: what a beam search or a particle filter keeps is put in another order in each step, and then joined. What the autograd engine's thread makes
//! has the path under which the backward pass was entered; there a successor is one of a later iteration (sparse
//! gradients that are added up instead of cleared). Where the sizes of a whole program grow
//! (a curriculum), outputs that are overwritten late look alike; then everything else grows in proportion, and
//! that tells the two apart where the C++ frames do not name the operator. Where the program works on the whole buffer all grows as well; but what is joined to it is
//! there when the next version is made, and as large as that exceeds the last.

mod growth;
mod rest;

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use rest::{JoinedParts, Rest, versions};

use crate::facts::Facts;
use crate::lives::Curve;
use crate::snapshot::Action;
use crate::threshold::Threshold;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, FrameId, FunctionId, Index, StackId};

/// Fewer sizes in a row may be chance: 24 orders of four sizes, one of them rising.
static LINKS: Threshold<usize> = Threshold::new("facts::reallocation::LINKS", 3);
/// Successors that still wait for what they replace: a bound on the work in a file of leaks.
const WAITING: usize = 64;
/// What is smaller than this part of the peak is no copy worth looking for: the rule is silent below it.
const SMALL_PART: u64 = 100;
/// The share of versions that go in the first half of their successor's life: a buffer that is copied into the next lets go
/// of the old one at once.
static SOON: Threshold<f64> = Threshold::new("facts::reallocation::SOON", 0.7);
/// Sizes in a row where no C++ frame names the operator; requests of chance sizes rise four or five times in a row.
static UNNAMED_LINKS: Threshold<usize> = Threshold::new("facts::reallocation::UNNAMED_LINKS", 5);
/// How far a step of such a chain may lie from the median one, and how many of its steps have to lie so near.
static STEP_SPREAD: Threshold<f64> = Threshold::new("facts::reallocation::STEP_SPREAD", 0.1);
static EVEN_STEPS: Threshold<f64> = Threshold::new("facts::reallocation::EVEN_STEPS", 0.7);

/// Buffers that one function of the user's code replaces by ever larger ones.
#[derive(Debug)]
pub struct Reallocation {
    /// The user's line that makes most of them.
    pub site: FrameId,
    /// Each buffer's versions, oldest first, with the copies that were made of them on the way.
    pub chains: Vec<Vec<AllocationId>>,
    /// The most versions of a buffer, its copies left out.
    pub versions: usize,
    /// The bytes of all last versions that exist at once.
    pub last: Bytes,
    /// Whether C++ frames name an operator that joins tensors.
    pub joins: bool,
    /// Whether the autograd engine's thread makes them, with no Python code of its own.
    pub by_engine: bool,
}

impl Reallocation {
    /// Each version with its successor.
    pub fn links(&self) -> impl Iterator<Item = (AllocationId, AllocationId)> {
        let pair = |pair: &[AllocationId]| Some((*pair.first()?, *pair.last()?));
        self.chains.iter().flat_map(move |chain| chain.windows(2).filter_map(pair))
    }
}

/// A chain with the line of its last version, and whether C++ frames name an operator that joins.
type Sited = (FrameId, bool, Vec<AllocationId>);

/// The reallocations of a device, by line.
pub(super) fn reallocations(facts: &Facts) -> Vec<Reallocation> {
    let chains = chains(facts);
    let growing: FxHashSet<AllocationId> = chains.iter().flatten().copied().collect();
    // Both go through the whole recording, and nothing is asked of them where C++ frames name the operators.
    let rest = LazyCell::new(|| Rest::of(facts, &growing));
    let parts = LazyCell::new(|| JoinedParts::of(facts, &chains));
    let mut functions: BTreeMap<FunctionId, Vec<Sited>> = BTreeMap::new();
    for chain in &chains {
        let Some(last) = chain.last().and_then(|id| facts.timeline.allocation(*id)) else { continue };
        let Some((own, stack)) = last.stack.zip(last.alloc.and_then(|event| facts.seen_stack(event))) else {
            continue;
        };
        let joins = facts.joins(own);
        let shown = joins
            || (is_even(facts, chain) && (rest.stands_still(facts, chain) || parts.make_up(facts, chain)));
        if !shown {
            continue;
        }
        let user = facts.user_frame(stack);
        let Some((site, function)) = user.and_then(|site| Some((site, facts.frames.function(site)?))) else {
            continue;
        };
        functions.entry(function).or_default().push((site, joins, chain.clone()));
    }
    let of_function = |chains: Vec<Sited>| {
        let mut weights: BTreeMap<FrameId, Bytes> = BTreeMap::new();
        for (site, _, chain) in &chains {
            *weights.entry(*site).or_default() += largest(facts, chain);
        }
        let (site, _) = weights.into_iter().max_by_key(|(site, bytes)| (*bytes, Reverse(*site)))?;
        let joins = chains.iter().any(|(_, joins, _)| *joins);
        let chains: Vec<Vec<AllocationId>> = chains.into_iter().map(|(_, _, chain)| chain).collect();
        let own = |id: &AllocationId| facts.timeline.allocation(*id)?.stack;
        let by_engine = |id| own(id).is_some_and(|stack| facts.frames.python(stack).is_empty());
        let by_engine = chains.iter().filter_map(|chain| chain.last()).any(by_engine);
        let versions = chains.iter().map(|chain| versions(facts, chain).len()).max()?;
        Some(Reallocation { site, last: at_once(facts, &chains), chains, versions, joins, by_engine })
    };
    functions.into_values().filter_map(of_function).collect()
}

/// A possible successor.
struct Waiting {
    id: AllocationId,
    bytes: Bytes,
    /// The position of its birth.
    at: usize,
    /// How large what it was taken to replace is. What is joined to a buffer may be made on its path and go before it
    /// does: of several the largest is the old version, of equals the oldest.
    replaces: Option<(Bytes, Reverse<usize>)>,
}

/// Where something is made: the path, and whether it is the one under which the engine's thread ran.
type MakingPath = (usize, bool);

/// The numbers of the paths of all stacks.
struct MakingPaths<'f> {
    facts: &'f Facts<'f>,
    of_stack: Vec<Option<usize>>,
}

impl<'f> MakingPaths<'f> {
    fn of(facts: &'f Facts<'f>) -> MakingPaths<'f> {
        let mut ids: FxHashMap<&[FrameId], usize> = FxHashMap::default();
        let mut path_of = |stack: StackId| {
            let path = facts.frames.python(stack);
            let next = ids.len();
            (!path.is_empty()).then(|| *ids.entry(path).or_insert(next))
        };
        let of_stack = facts.snapshot.stacks.ids().map(&mut path_of).collect();
        MakingPaths { facts, of_stack }
    }

    fn path(&self, one: &Allocation) -> Option<MakingPath> {
        let known = |stack: StackId| self.of_stack.get(stack.position()).copied().flatten();
        match known(one.stack?) {
            Some(own) => Some((own, false)),
            None => Some((known(self.facts.seen_stack(one.alloc?)?)?, true)),
        }
    }
}

/// What is alive and may replace what goes.
struct Search<'f> {
    paths: MakingPaths<'f>,
    /// By path.
    waiting: FxHashMap<MakingPath, Vec<Waiting>>,
    /// What is large enough to count, by size: a copy in another order has the size of what it was made of.
    copies: FxHashMap<Bytes, Vec<(AllocationId, usize)>>,
    least: Bytes,
    before: BTreeMap<AllocationId, AllocationId>,
}

impl Search<'_> {
    fn born(&mut self, id: AllocationId, one: &Allocation, at: usize) {
        let Some(path) = self.paths.path(one) else { return };
        let here = self.waiting.entry(path).or_default();
        if here.len() == WAITING {
            here.remove(here.iter().position(|other| other.replaces.is_some()).unwrap_or(0));
        }
        here.push(Waiting { id, bytes: one.bytes, at, replaces: None });
        if one.bytes >= self.least {
            self.copies.entry(one.bytes).or_default().push((id, at));
        }
    }

    fn dies(&mut self, id: AllocationId, one: &Allocation) {
        let Some(path) = self.paths.path(one) else { return };
        if let Some(here) = self.waiting.get_mut(&path) {
            here.retain(|other| other.id != id);
        }
        let copies = self.copies.get_mut(&one.bytes);
        if let Some(copies) = copies {
            copies.retain(|(other, _)| *other != id);
        }
        let next = self.larger(path, one).or_else(|| self.larger_than_original(id, one));
        if let Some(next) = next.or_else(|| self.copy(path, one)) {
            self.before.insert(next, id);
        }
    }

    /// The smallest larger one of a path that was made after.
    fn larger(&mut self, path: MakingPath, one: &Allocation) -> Option<AllocationId> {
        let facts = self.paths.facts;
        let born = one.alloc.map_or(0, Index::position);
        let own_iteration = facts.born_in(one);
        let later = |at: usize| facts.event(at).and_then(|event| facts.iteration_of(event)) > own_iteration;
        let here = self.waiting.get_mut(&path)?;
        let old = (one.bytes, Reverse(born));
        let is_larger = |other: &&mut Waiting| {
            let is_free = other.replaces.is_none_or(|taken| taken < old);
            is_free && other.bytes > one.bytes && other.at > born && (!path.1 || later(other.at))
        };
        // The first of equals.
        let next = here.iter_mut().filter(is_larger).min_by_key(|other| (other.bytes, other.replaces))?;
        next.replaces = Some(old);
        Some(next.id)
    }

    /// Of a copy, the larger one that is made where its original was.
    fn larger_than_original(&mut self, id: AllocationId, one: &Allocation) -> Option<AllocationId> {
        let facts = self.paths.facts;
        let original = facts.timeline.allocation(*self.before.get(&id)?)?;
        let path = self.paths.path(original).filter(|_| original.bytes == one.bytes)?;
        self.larger(path, one)
    }

    /// What was copied of it on another path before it went: `cache = [k.index_select(0, beams) for k in cache]`.
    fn copy(&self, path: MakingPath, one: &Allocation) -> Option<AllocationId> {
        let born = one.alloc.map_or(0, Index::position);
        let is_copy = |(id, at): &&(AllocationId, usize)| {
            let path_of = |id: AllocationId| self.paths.path(self.paths.facts.timeline.allocation(id)?);
            *at > born && !self.before.contains_key(id) && path_of(*id) != Some(path)
        };
        // The last: another buffer of that size, as a cache's values beside its keys, was made before the copies.
        self.copies.get(&one.bytes)?.iter().rfind(is_copy).map(|(id, _)| *id)
    }
}

/// The chains of all paths.
fn chains(facts: &Facts) -> Vec<Vec<AllocationId>> {
    let mut search = Search {
        paths: MakingPaths::of(facts),
        waiting: FxHashMap::default(),
        copies: FxHashMap::default(),
        least: Bytes(facts.peak().get() / SMALL_PART),
        before: BTreeMap::new(),
    };
    for (at, event) in facts.trace.events.iter().enumerate() {
        let known = facts.timeline.allocation_of.get(at).copied().flatten();
        let Some((id, one)) = known.and_then(|id| Some((id, facts.timeline.allocation(id)?))) else {
            continue;
        };
        if event.action == Action::Alloc {
            search.born(id, one, at);
        } else if one.given_back().is_some_and(|freed| freed.position() == at) {
            search.dies(id, one);
        }
    }
    let before = search.before;
    let replaced: BTreeSet<AllocationId> = before.values().copied().collect();
    let last = before.keys().filter(|id| !replaced.contains(id));
    let chain = |id: &AllocationId| {
        let mut chain: Vec<AllocationId> =
            std::iter::successors(Some(*id), |id| before.get(id).copied()).collect();
        chain.reverse();
        let chain = from_growth_to_growth(facts, &chain).to_vec();
        let versions = versions(facts, &chain);
        let is_one_buffer = versions.len() == chain.len() || by_iterations(facts, &versions);
        (versions.len() > LINKS.get() && is_one_buffer && goes_soon(facts, &chain)).then_some(chain)
    };
    last.filter_map(chain).collect()
}

/// A chain without the copies before its first growth and after its last.
fn from_growth_to_growth<'c>(facts: &Facts, chain: &'c [AllocationId]) -> &'c [AllocationId] {
    let size = |id: &AllocationId| facts.timeline.allocation(*id).map(|one| one.bytes);
    let grows = |pair: &[AllocationId]| pair.first().map(size) < pair.last().map(size);
    let mut grown = chain.windows(2).enumerate().filter(|(_, pair)| grows(pair)).map(|(at, _)| at);
    let first = grown.next().unwrap_or(0);
    let last = grown.next_back().unwrap_or(first);
    chain.get(first..(last + 2).min(chain.len())).unwrap_or_default()
}

/// Whether each is of a later iteration than the one before: layers of one pass, each larger than the last, are no buffer that was copied.
fn by_iterations(facts: &Facts, versions: &[&Allocation]) -> bool {
    let born = |one: &&Allocation| facts.born_in(one);
    let later = |pair: &[&Allocation]| {
        let (old, new) = (pair.first().and_then(born), pair.last().and_then(born));
        old.zip(new).is_some_and(|(old, new)| old < new)
    };
    // The first may be a copy: it is of the iteration in which it is joined.
    versions.get(1..).unwrap_or_default().windows(2).all(later)
}

/// Whether most versions go in the first half of their successor's life.
fn goes_soon(facts: &Facts, chain: &[AllocationId]) -> bool {
    let soon = |pair: &[AllocationId]| {
        let old = facts.timeline.allocation(*pair.first()?)?;
        let new = facts.timeline.allocation(*pair.last()?)?;
        let (dies, born) = (old.given_back()?.position(), new.alloc?.position());
        let end = new.given_back().map_or(facts.trace.events.len(), Index::position);
        Some(dies.saturating_sub(born) * 2 <= end.saturating_sub(born))
    };
    let yes = chain.windows(2).filter(|pair| soon(pair) == Some(true)).count();
    yes as f64 >= SOON.get() * (chain.len() - 1) as f64
}

/// Whether a buffer grows in even steps, often enough to be no chance; or the sides of a square one do.
fn is_even(facts: &Facts, chain: &[AllocationId]) -> bool {
    let sizes: Vec<f64> = versions(facts, chain).iter().map(|one| one.bytes.get() as f64).collect();
    let sides: Vec<f64> = sizes.iter().map(|size| size.sqrt()).collect();
    rises_evenly(&sizes) || rises_evenly(&sides)
}

fn rises_evenly(series: &[f64]) -> bool {
    let pairs = series.iter().zip(series.iter().skip(1));
    let mut steps: Vec<f64> = pairs.map(|(before, after)| after - before).collect();
    steps.sort_by(f64::total_cmp);
    let median = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
    let near = steps.iter().filter(|step| (**step - median).abs() <= STEP_SPREAD.get() * median).count();
    steps.len() >= UNNAMED_LINKS.get() && near as f64 >= EVEN_STEPS.get() * steps.len() as f64
}

fn largest(facts: &Facts, chain: &[AllocationId]) -> Bytes {
    chain.last().and_then(|id| facts.timeline.allocation(*id)).map_or(Bytes::ZERO, |one| one.bytes)
}

/// The most that the chains' last versions take at one time.
fn at_once(facts: &Facts, chains: &[Vec<AllocationId>]) -> Bytes {
    let mut curve = Curve::default();
    for chain in chains {
        let ends = |id: Option<&AllocationId>| id.and_then(|id| facts.timeline.allocation(*id));
        let (Some(first), Some(last)) = (ends(chain.first()), ends(chain.last())) else { continue };
        let born = first.alloc.map_or(0, Index::position);
        curve.add(born, last.given_back().map(Index::position), last.bytes);
    }
    curve.highest().0
}
