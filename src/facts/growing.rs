//! Which lines leave more behind with every iteration.
//!
//! In: lifetimes and the ends of the iterations. Out: the lines that the judge of growth ([`crate::lives::growth`]) finds to
//! grow, each with the allocations that stay. Each line is judged by itself, so that a cache at one does not hide a leak at
//! another; what no line shows alone (generated code, a list to which every layer appends) is judged once more, all lines
//! taken together at which something stays that has not stopped arriving.
//!
//! A line is judged twice: by its tensors, and by how many each iteration makes. Hooks that are added and never removed each keep one tensor
//! and replace it in the next iteration, so that no tensor stays, and yet there are more with every iteration.
//!
//! What a backward pass behind the loop lets go of was kept for it. What is given back elsewhere in exchange is no growth: a rolling buffer that is recorded half way gives back a block from
//! before the recording with each that it takes, and weights that are converted layer by layer go as their successors come.

mod parameters;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use parameters::ParameterCounts;
use rustc_hash::FxHashMap;

use crate::facts::Facts;
use crate::lives::Turns;
use crate::lives::growth::{self, Growth, Stay, judge, may_go_on};
use crate::program::Phase;
use crate::role::Role;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, StackId};

/// A line that grows.
#[derive(Debug, Clone)]
pub struct Growing {
    /// The line: the innermost user frame of the allocations; of many lines the one that gains most.
    pub site: FrameId,
    /// How many lines it is.
    pub lines: usize,
    /// The growth, in bytes an iteration.
    pub growth: Growth,
    /// What stays, oldest first.
    pub stays: Vec<AllocationId>,
    /// Where each set replaces the last and has more members: what the last has beyond the first. Empty of what piles up.
    pub surplus: Vec<AllocationId>,
    /// Bytes alive at the ends of the iterations.
    pub series: Vec<Bytes>,
}

/// A tensor that outlives an end.
#[derive(Clone, Copy)]
struct Outliving {
    id: AllocationId,
    bytes: Bytes,
    /// The ends at which it is held: the first, and the first at which it no longer is.
    first: usize,
    last: usize,
}

/// What outlives ends, line by line.
struct LineHoldings {
    turns: usize,
    sites: BTreeMap<FrameId, Vec<Outliving>>,
    /// What stood before the loop, or the recording, and goes while it turns: the turn and the bytes.
    leaving: Vec<(usize, Bytes)>,
}

/// The lines that grow from iteration to iteration, what is fastest first. At the end of an iteration that was cut off (memory ran out, a
/// snapshot was taken) stands what was under way: whole ones are judged.
///
/// Where nothing trains, the last iteration may be the one that lets go of what all of them collected (a metric that is computed with the last batch): of lines that do
/// not grow to the end, what comes before it is judged, if most of it goes then.
pub(super) fn growing(facts: &Facts) -> Vec<Growing> {
    let last = facts.program.iterations.split_last();
    if let Some((_, whole)) = last.filter(|(last, _)| !last.complete) {
        return growing_through(facts, &Turns::of_iterations(whole));
    }
    let mut found = growing_through(facts, facts.turns());
    let trains = facts.program.phases.contains(&Phase::Backward);
    if let Some((last, before)) = last.filter(|_| !trains) {
        let sites: Vec<FrameId> = found.iter().map(|one| one.site).collect();
        let mut earlier = growing_through(facts, &Turns::of_iterations(before));
        earlier
            .retain(|one| !sites.contains(&one.site) && most_goes(facts, &one.stays, |at| at >= last.start));
        found.append(&mut earlier);
        found.sort_by(fastest_first);
    }
    found
}

fn fastest_first(one: &Growing, other: &Growing) -> Ordering {
    other.growth.slope.total_cmp(&one.growth.slope).then(one.site.cmp(&other.site))
}

/// Whether most of some allocations' bytes go at events of a kind.
pub(super) fn most_goes(facts: &Facts, ids: &[AllocationId], is_meant: impl Fn(EventIndex) -> bool) -> bool {
    let goes = |id: &AllocationId| facts.timeline.given_back(*id).is_some_and(&is_meant);
    let gone: Vec<AllocationId> = ids.iter().copied().filter(goes).collect();
    facts.bytes(&gone).times(2) > facts.bytes(ids)
}

/// The lines that grow over some turns.
fn growing_through(facts: &Facts, turns: &Turns) -> Vec<Growing> {
    let held = LineHoldings::of(facts, turns);
    let parameters = ParameterCounts::of(facts);
    let mut judged = Judged::default();
    for (site, members) in &held.sites {
        let is_meant =
            |one: &Growing| parameters.bound(facts, &one.stays) || is_for_backward(facts, &one.stays);
        let found = held.judge(*site, members);
        let mut apart = Vec::new();
        if found.as_ref().is_none_or(|one| is_meant(one) || !is_sure(one)) {
            apart = held.judge_stacks(facts, *site, members);
            apart.retain(|one| !is_meant(one));
        }
        let of_site = members.iter().map(|member| (*site, *member));
        match found {
            _ if apart.iter().any(is_certain) => judged.sure.extend(apart.into_iter().filter(is_certain)),
            Some(one) if is_meant(&one) => {}
            Some(one) if is_sure(&one) => judged.sure.push(one),
            Some(one) => {
                judged.unsure.push(one);
                judged.few.extend(of_site);
            }
            None if !apart.is_empty() => judged.unsure.append(&mut apart),
            None if may_go_on(&held.stays(members), held.turns) => {
                // Of a line at which some go, others stay for sure only once they are older than any of these.
                let gone = members.iter().filter(|member| member.last < held.turns);
                let oldest = gone.map(|member| member.last - member.first).max().unwrap_or(0);
                let tells =
                    |member: &Outliving| member.last < held.turns || member.last - member.first > oldest;
                judged.none.extend(of_site.filter(|(_, member)| tells(member)));
            }
            None => {}
        }
    }
    let mut found = judged
        .pooled(|pool| scattered(facts, &held, pool).filter(|one| !parameters.bound(facts, &one.stays)));
    found.retain_mut(|one| parameters.leave_lasting_out(facts, one));
    found.sort_by(fastest_first);
    found
}

/// Whether a backward pass behind the loop lets go of most of it: a loop over layers or samples collects what one pass saves.
fn is_for_backward(facts: &Facts, stays: &[AllocationId]) -> bool {
    most_goes(facts, stays, |at| facts.phase(at) == Phase::Backward)
}

fn is_sure(growing: &Growing) -> bool {
    growing.growth.confidence(true) > Confidence::Low
}

/// Whether a stack's growth counts by itself: of the line something went, and fewer rises may be those of a history that fills up to a bound.
fn is_certain(growing: &Growing) -> bool {
    growing.growth.confidence(true) == Confidence::High
}

/// The lines, each judged by itself.
#[derive(Default)]
struct Judged {
    sure: Vec<Growing>,
    unsure: Vec<Growing>,
    /// What stands at the unsure ones.
    few: Vec<(FrameId, Outliving)>,
    /// What stands at those that show no growth and yet keep something.
    none: Vec<(FrameId, Outliving)>,
}

impl Judged {
    /// Few rises at each of several lines may be many together: first of those that show some, then of all.
    fn pooled(mut self, judge: impl Fn(&[(FrameId, Outliving)]) -> Option<Growing>) -> Vec<Growing> {
        if let Some(one) = judge(&self.few).filter(is_sure) {
            self.sure.push(one);
            return self.sure;
        }
        self.few.append(&mut self.none);
        match judge(&self.few) {
            Some(one) if self.unsure.is_empty() || is_sure(&one) => self.sure.push(one),
            _ => self.sure.append(&mut self.unsure),
        }
        self.sure
    }
}

/// What all lines that do not surely grow by themselves gain together.
fn scattered(facts: &Facts, held: &LineHoldings, rest: &[(FrameId, Outliving)]) -> Option<Growing> {
    let lasting = |id| {
        matches!(facts.role(id), Role::Parameter | Role::Gradient | Role::OptimizerState | Role::Workspace)
    };
    let members: Vec<Outliving> =
        rest.iter().map(|(_, member)| *member).filter(|member| !lasting(member.id)).collect();
    let any = rest.first()?.0;
    let one = held.judge(any, &members).filter(|one| one.surplus.is_empty())?;
    let mut lines: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    for (site, member) in rest.iter().filter(|(_, member)| one.stays.binary_search(&member.id).is_ok()) {
        *lines.entry(*site).or_default() += member.bytes;
    }
    let (site, _) = lines.iter().max_by_key(|(site, bytes)| (**bytes, std::cmp::Reverse(**site)))?;
    Some(Growing { site: *site, lines: lines.len(), ..one })
}

impl LineHoldings {
    fn of(facts: &Facts, turns: &Turns) -> LineHoldings {
        let mut held = LineHoldings { turns: turns.len(), sites: BTreeMap::new(), leaving: Vec::new() };
        for (id, one) in facts.timeline.iter() {
            let ends = turns.held(one);
            if ends.is_empty() {
                continue;
            }
            let in_loop = turns.making(one).is_some();
            if !in_loop && ends.end < held.turns {
                held.leaving.push((ends.end, one.bytes));
            }
            let seen = one.alloc.and_then(|event| facts.seen_stack(event));
            let Some(site) = seen.and_then(|stack| facts.site(stack)).filter(|_| in_loop) else { continue };
            let member = Outliving { id, bytes: one.bytes, first: ends.start, last: ends.end };
            held.sites.entry(site).or_default().push(member);
        }
        held.leaving.sort_unstable();
        held
    }

    /// The growth of some members: of what stays, or of their number.
    fn judge(&self, site: FrameId, members: &[Outliving]) -> Option<Growing> {
        let by_tensor = judge(&self.stays(members), self.turns);
        let growing = match by_tensor {
            Some(growth) => self.piled(site, members, growth),
            None => self.more_and_more(site, members)?,
        };
        (!self.is_exchange(&growing)).then_some(growing)
    }

    /// The growth of what each stack of a line makes, where it has several: behind what one statement of it replaces, and beside the
    /// state that another one makes once, what a third keeps does not show.
    fn judge_stacks(&self, facts: &Facts, site: FrameId, members: &[Outliving]) -> Vec<Growing> {
        let mut parts: BTreeMap<Option<StackId>, Vec<Outliving>> = BTreeMap::new();
        for member in members {
            let stack = facts.timeline.allocation(member.id).and_then(|one| one.stack);
            parts.entry(stack).or_default().push(*member);
        }
        let parts = parts.into_values();
        let parts = parts.filter(|part| part.len() < members.len() && part.len() >= growth::FEWEST.get());
        parts.filter_map(|part| self.judge(site, &part)).collect()
    }

    fn stays(&self, members: &[Outliving]) -> Vec<Stay> {
        let stay = |member: &Outliving| Stay {
            first: member.first,
            last: Some(member.last).filter(|last| *last < self.turns),
            bytes: member.bytes.get() as f64,
            weight: 1.0,
        };
        members.iter().map(stay).collect()
    }

    fn piled(&self, site: FrameId, members: &[Outliving], growth: Growth) -> Growing {
        let until = self.turns - growth.horizon;
        let stays =
            |member: &&Outliving| member.last == self.turns && (growth.from..until).contains(&member.first);
        let mut stays: Vec<AllocationId> = members.iter().filter(stays).map(|member| member.id).collect();
        stays.sort_unstable();
        Growing { site, lines: 1, growth, stays, surplus: Vec::new(), series: self.series(members) }
    }

    /// The growth of sets that replace one another and have ever more members: of how many each turn makes.
    fn more_and_more(&self, site: FrameId, members: &[Outliving]) -> Option<Growing> {
        let mut alive: Vec<&Outliving> = members.iter().filter(|member| member.last == self.turns).collect();
        let mut sizes: Vec<Bytes> = alive.iter().map(|member| member.bytes).collect();
        sizes.sort_unstable();
        let each = sizes.get(sizes.len() / 2)?.get() as f64;
        let mut made = vec![0.0; self.turns];
        for member in members {
            if let Some(made) = made.get_mut(member.first) {
                *made += 1.0;
            }
        }
        let growth = growth::of_levels(&made)?;
        let bounds = (growth.bounds.0 * each, growth.bounds.1 * each);
        let growth = Growth { slope: growth.slope * each, bounds, net: growth.net * each, ..growth };
        alive.sort_unstable_by_key(|member| member.id);
        Some(Growing {
            site,
            lines: 1,
            stays: alive.iter().map(|member| member.id).collect(),
            surplus: beyond_the_first(members, growth.from),
            series: self.series(members),
            growth,
        })
    }

    /// Whether as much as half of what arrives goes elsewhere in the same turns.
    fn is_exchange(&self, growing: &Growing) -> bool {
        let (from, until) = (growing.growth.from, growing.growth.from + growing.growth.turns);
        let mut leaving: FxHashMap<usize, Bytes> = FxHashMap::default();
        let begin = self.leaving.partition_point(|(turn, _)| *turn < from);
        for (turn, bytes) in self.leaving.iter().skip(begin).take_while(|(turn, _)| *turn < until) {
            *leaving.entry(*turn).or_default() += *bytes;
        }
        if leaving.is_empty() {
            return false;
        }
        let mut before = growing.series.get(from.wrapping_sub(1)).copied().unwrap_or_default();
        let mut exchanged = Bytes::ZERO;
        for (turn, level) in growing.series.iter().copied().enumerate().take(until).skip(from) {
            exchanged += (level - before).min(leaving.get(&turn).copied().unwrap_or_default());
            before = level;
        }
        exchanged.get() as f64 * 2.0 >= growing.growth.net
    }

    /// Bytes alive at each end.
    fn series(&self, members: &[Outliving]) -> Vec<Bytes> {
        let mut changes = vec![0_i128; self.turns + 1];
        for member in members {
            let bytes = i128::from(member.bytes.get());
            for (at, by) in [(member.first, bytes), (member.last, -bytes)] {
                if let Some(change) = changes.get_mut(at) {
                    *change += by;
                }
            }
        }
        let sum = |level: &mut i128, change: &i128| {
            *level += change;
            Some(Bytes(u64::try_from(*level).unwrap_or(u64::MAX)))
        };
        changes.iter().take(self.turns).scan(0, sum).collect()
    }
}

/// The members of each set beyond as many as the first one has.
fn beyond_the_first(members: &[Outliving], from: usize) -> Vec<AllocationId> {
    let usual = members.iter().filter(|member| member.first == from).count();
    let mut sets: FxHashMap<usize, usize> = FxHashMap::default();
    let mut beyond = Vec::new();
    for member in members {
        let number = sets.entry(member.first).or_default();
        *number += 1;
        if *number > usual {
            beyond.push(member.id);
        }
    }
    beyond
}
