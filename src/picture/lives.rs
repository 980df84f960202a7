//! What is drawn: lifetimes one by one, and clouds of those that are too many or too small.
//!
//! Which are drawn one by one is decided by what can be seen of them: first what findings are about, then by area, bytes times
//! bins. The others are merged by the line that made them; where that are still too many steps, by role and name alone. Lifetimes of one
//! cloud belong to the same findings, so that a finding lights up what it is about and nothing else.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::tree::{Label, Planting};
use super::{Bins, Room, Tree};
use crate::facts::Facts;
use crate::familiar::Familiar;
use crate::program::Phase;
use crate::role::Role;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, Index};
use crate::verdict::Told;

/// Addresses further than this from the lowest one are not kept: a page counts with 53 bits.
const FARTHEST: u64 = 1 << 52;

/// What is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lives {
    /// One by one, in the order of birth.
    pub each: Vec<DrawnLife>,
    /// Merged.
    pub clouds: Vec<Cloud>,
}

/// A lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnLife {
    /// The first bin that shows it.
    pub start: usize,
    /// The bin after the last; `None` where it outlives the recording.
    pub end: Option<usize>,
    /// Requested bytes.
    pub bytes: Bytes,
    /// The bytes of its block.
    pub block: Bytes,
    /// Where it lies, from the picture's base on; nothing where that is too far.
    pub address: Option<u64>,
    /// What it holds.
    pub role: Role,
    /// What people know it by, where one is sure of it.
    pub familiar: Option<Familiar>,
    /// What the program was doing when it was made.
    pub born: Born,
    /// Its stream.
    pub stream: u16,
    /// Who made it: a node of the tree.
    pub node: u32,
}

/// When a lifetime began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Born {
    /// Before the recording.
    Before,
    /// In a phase.
    In(Phase),
}

/// Lifetimes that are drawn as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cloud {
    /// How many they are.
    pub count: usize,
    /// What they hold.
    pub role: Role,
    /// What people know them by, where one is sure of it.
    pub familiar: Option<Familiar>,
    /// Who made them: the node of a line, or of what could not be told apart.
    pub node: u32,
    /// How the bytes in use change: by ascending bins, each once.
    pub steps: Vec<CloudStep>,
}

/// A change of a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudStep {
    /// The first bin that shows it.
    pub bin: usize,
    /// By how many bytes.
    pub by: i64,
}

impl Lives {
    /// The sum of what is drawn in each of some bins.
    pub fn sums(&self, bins: usize) -> Vec<Bytes> {
        let mut steps = vec![0_i128; bins + 1];
        let mut step = |bin: usize, by: i128| {
            if let Some(step) = steps.get_mut(bin) {
                *step += by;
            }
        };
        for life in &self.each {
            let bytes = i128::from(life.bytes.get());
            step(life.start, bytes);
            step(life.end.unwrap_or(bins), -bytes);
        }
        for one in self.clouds.iter().flat_map(|cloud| &cloud.steps) {
            step(one.bin, i128::from(one.by));
        }
        let mut level = 0;
        let sum = |step: i128| {
            level += step;
            Bytes(u64::try_from(level.max(0)).unwrap_or(u64::MAX))
        };
        steps.into_iter().take(bins).map(sum).collect()
    }
}

/// Lives with how to find them again.
pub(super) struct Gathered {
    pub(super) lives: Lives,
    pub(super) tree: Tree,
    /// For each allocation where it is drawn; nothing where it is not seen in any bin.
    pub(super) drawn: Vec<Option<Drawn>>,
}

/// Where an allocation is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawn {
    /// By itself: a position in [`Lives::each`].
    Alone(u32),
    /// In a cloud.
    Merged(u32),
}

/// A lifetime that is seen in some bin.
struct Seen<'a> {
    id: AllocationId,
    one: &'a Allocation,
    bins: Range<usize>,
}

/// What lifetimes of one cloud have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Common {
    node: u32,
    role: Role,
    familiar: Option<Familiar>,
    /// The findings that they belong to.
    findings: Vec<Belonging>,
}

/// How an allocation belongs to a finding: what is lit up is not always all that mending it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Belonging {
    /// The finding is about it.
    About(u32),
    /// Mending the finding changes it.
    Changed(u32),
}

/// Decides how every allocation is drawn.
pub(super) fn gather(facts: &Facts, told: &[Told], bins: &Bins, (room, base): (Room, u64)) -> Gathered {
    let findings = findings(facts, told);
    let mut seen: Vec<Seen> = facts.timeline.iter().filter_map(|(id, one)| see(bins, id, one)).collect();
    let belongs = |one: &Seen| findings.contains_key(&one.id);
    let area = |one: &Seen| u128::from(one.one.bytes.get()) * one.bins.len() as u128;
    seen.sort_by_cached_key(|one| (Reverse(belongs(one)), Reverse(area(one)), one.id));
    let merged = seen.split_off(room.lives.min(seen.len()));
    seen.sort_unstable_by_key(|one| one.id);
    let mut planting = Planting::default();
    let mut drawn = vec![None; facts.timeline.allocations.len()];
    let each: Vec<DrawnLife> = seen.iter().map(|one| life(facts, bins, one, base, &mut planting)).collect();
    for (at, one) in seen.iter().enumerate() {
        note(&mut drawn, one.id, Drawn::Alone, at);
    }
    let clouds = clouds(facts, merged, &findings, bins.len(), room.steps, &mut planting, &mut drawn);
    Gathered { lives: Lives { each, clouds }, tree: planting.done(), drawn }
}

fn note(drawn: &mut [Option<Drawn>], id: AllocationId, how: fn(u32) -> Drawn, at: usize) {
    if let (Some(place), Ok(at)) = (drawn.get_mut(id.position()), u32::try_from(at)) {
        *place = Some(how(at));
    }
}

/// For each allocation that belongs to some finding, to which and how.
fn findings(facts: &Facts, told: &[Told]) -> BTreeMap<AllocationId, Vec<Belonging>> {
    let mut of: BTreeMap<AllocationId, Vec<Belonging>> = BTreeMap::new();
    for (told, number) in told.iter().zip(0_u32..) {
        let about = told.about.iter().map(|id| (*id, Belonging::About(number)));
        let changed = told.lives.changed().map(|id| (id, Belonging::Changed(number)));
        for (id, belonging) in about.chain(changed) {
            let known = of.entry(id).or_default();
            if facts.timeline.allocation(id).is_some() && !known.contains(&belonging) {
                known.push(belonging);
            }
        }
    }
    of
}

/// The bins in which a lifetime is seen; nothing where none shows it, or where it holds nothing.
fn see<'a>(bins: &Bins, id: AllocationId, one: &'a Allocation) -> Option<Seen<'a>> {
    let bins = bins.seen(born(one), died(one));
    (bins.start < bins.end && one.bytes > Bytes::ZERO).then_some(Seen { id, one, bins })
}

/// The moment from which on an allocation is there.
pub(super) fn born(one: &Allocation) -> usize {
    one.alloc.map_or(0, |event| event.position() + 1)
}

/// The moment from which on it is gone.
pub(super) fn died(one: &Allocation) -> Option<usize> {
    one.free.map(|event| event.position() + 1)
}

fn life(facts: &Facts, bins: &Bins, seen: &Seen, base: u64, planting: &mut Planting) -> DrawnLife {
    let Seen { id, one, .. } = *seen;
    DrawnLife {
        start: seen.bins.start,
        end: Some(seen.bins.end).filter(|end| *end < bins.len() || one.free.is_some()),
        bytes: one.bytes,
        block: facts.block_size(id),
        address: one.address.checked_sub(base).filter(|distance| *distance < FARTHEST),
        role: facts.role(id),
        familiar: facts.familiar(id),
        born: one.alloc.map_or(Born::Before, |event| Born::In(facts.phase(event))),
        stream: one.stream,
        node: planting.place(facts, one).whole,
    }
}

/// Merges lifetimes by line and role, and the lines that change most often by role alone, until there are at most so many steps.
fn clouds(
    facts: &Facts,
    merged: Vec<Seen>,
    findings: &BTreeMap<AllocationId, Vec<Belonging>>,
    bins: usize,
    most_steps: usize,
    planting: &mut Planting,
    drawn: &mut [Option<Drawn>],
) -> Vec<Cloud> {
    let mut by_line: BTreeMap<Common, Vec<Seen>> = BTreeMap::new();
    for one in merged {
        let node = planting.place(facts, one.one).site;
        let findings = findings.get(&one.id).cloned().unwrap_or_default();
        let (role, familiar) = (facts.role(one.id), facts.familiar(one.id));
        by_line.entry(Common { node, role, familiar, findings }).or_default().push(one);
    }
    let mut lines: Vec<(Common, Vec<Seen>)> = by_line.into_iter().collect();
    // Those of findings first, then those of few steps a byte: they cost least and tell most.
    let area = |all: &[Seen]| -> u128 {
        all.iter().map(|one| u128::from(one.one.bytes.get()) * one.bins.len() as u128).sum()
    };
    lines.sort_by_cached_key(|(common, all)| {
        let worth = area(all) / (all.len() as u128).max(1);
        (common.findings.is_empty(), Reverse(worth), common.clone())
    });
    let mut left = most_steps;
    let mut kept: BTreeMap<Common, Vec<Seen>> = BTreeMap::new();
    for (common, all) in lines {
        let common = match left.checked_sub(2 * all.len()) {
            Some(rest) => {
                left = rest;
                common
            }
            None => Common { node: planting.apart(Label::Merged), ..common },
        };
        kept.entry(common).or_default().extend(all);
    }
    let cloud = |(at, (common, all)): (usize, (Common, Vec<Seen>))| {
        for one in &all {
            note(drawn, one.id, Drawn::Merged, at);
        }
        let spans = all.iter().map(|one| (one.bins.clone(), one.one.bytes));
        let Common { node, role, familiar, .. } = common;
        Cloud { count: all.len(), role, familiar, node, steps: steps(spans, bins) }
    };
    kept.into_iter().enumerate().map(cloud).collect()
}

/// How the sum of some spans of bytes changes.
pub(super) fn steps(spans: impl Iterator<Item = (Range<usize>, Bytes)>, bins: usize) -> Vec<CloudStep> {
    let mut steps: BTreeMap<usize, i64> = BTreeMap::new();
    let signed = |bytes: Bytes| i64::try_from(bytes.get()).unwrap_or(i64::MAX);
    for (span, bytes) in spans {
        let start = steps.entry(span.start).or_default();
        *start = start.saturating_add(signed(bytes));
        if span.end < bins {
            let end = steps.entry(span.end).or_default();
            *end = end.saturating_sub(signed(bytes));
        }
    }
    steps.into_iter().filter(|(_, by)| *by != 0).map(|(bin, by)| CloudStep { bin, by }).collect()
}
