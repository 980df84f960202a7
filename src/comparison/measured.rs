//! One recording, measured so that it can be compared: the highest moment of each iteration, and whose memory it is.
//!
//! In: an input. Out: for each device the moments at which most is in use (of what comes before the loop, of each
//! iteration, of what comes after), the ends of the iterations, and who is alive at each, by call site and by role.
//! Always: small enough to keep when the input has gone; the parts of a moment add up to its level.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::engine::{Device, Input};
use crate::facts::Facts;
use crate::finding::Location;
use crate::program::Phase;
use crate::role::Role;
use crate::snapshot::Event;
use crate::unit::{Bytes, DeviceIndex, EventIndex, FrameId, Index, StackId};

/// What a comparison needs of one recording.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// What messages call it.
    pub name: String,
    /// The rank of the process that wrote it, where that is known.
    pub rank: Option<u32>,
    /// When it was written, as far as names tell.
    pub moment: Vec<u64>,
    /// Every device that did something.
    pub(super) devices: Vec<MeasuredDevice>,
}

/// What a comparison needs of one device. The moments are those of the set-up, of each iteration, and of what follows.
#[derive(Debug, Clone)]
pub(super) struct MeasuredDevice {
    pub(super) device: DeviceIndex,
    pub(super) iterations: usize,
    /// Steps of the optimizer.
    pub(super) steps: usize,
    /// The highest requested bytes, moment by moment.
    pub(super) peaks: Vec<Bytes>,
    /// The highest reserved bytes, moment by moment.
    pub(super) reserved: Vec<Bytes>,
    /// Requested bytes at the end of each iteration.
    pub(super) resident: Vec<Bytes>,
    /// Allocations in each iteration.
    pub(super) allocations: Vec<usize>,
    pub(super) roles: BTreeMap<Role, SumSeries>,
    pub(super) sites: Vec<AllocationSite>,
}

/// Where memory is allocated: the lines of the user's stack, and what the program is doing.
#[derive(Debug, Clone)]
pub(super) struct AllocationSite {
    /// Innermost first; empty where no line of the user's is on the stack.
    pub(super) frames: Vec<Location>,
    pub(super) phase: Phase,
    /// Bytes alive at each moment.
    pub(super) alive: SumSeries,
    /// Bytes alive at the end of each iteration.
    pub(super) resident: SumSeries,
    /// Allocations in all iterations.
    pub(super) allocations: usize,
    /// Bytes allocated in all iterations.
    pub(super) bytes: Bytes,
}

/// A series of sums, kept as the changes from one to the next: a site costs by its allocations, not by the iterations.
#[derive(Debug, Clone, Default)]
pub(super) struct SumSeries {
    changes: BTreeMap<usize, i128>,
}

impl SumSeries {
    /// Adds bytes to the values from `first` up to, not including, `last`.
    fn raise(&mut self, first: usize, last: usize, bytes: Bytes) {
        if first < last {
            let bytes = i128::from(bytes.get());
            *self.changes.entry(first).or_default() += bytes;
            *self.changes.entry(last).or_default() -= bytes;
        }
    }

    /// Adds the values of another series.
    pub(super) fn add(&mut self, other: &SumSeries) {
        for (at, change) in &other.changes {
            *self.changes.entry(*at).or_default() += change;
        }
    }

    /// One value.
    pub(super) fn at(&self, position: usize) -> Bytes {
        bytes(self.changes.range(..=position).map(|(_, change)| change).sum())
    }

    /// The values from `first` up to, not including, `last`.
    pub(super) fn values(&self, first: usize, last: usize) -> Vec<Bytes> {
        let mut level: i128 = self.changes.range(..first).map(|(_, change)| change).sum();
        let mut values = Vec::with_capacity(last.saturating_sub(first));
        for at in first..last {
            level += self.changes.get(&at).copied().unwrap_or(0);
            values.push(bytes(level));
        }
        values
    }
}

fn bytes(level: i128) -> Bytes {
    Bytes(u64::try_from(level.max(0)).unwrap_or(u64::MAX))
}

impl Measured {
    /// Measures an input.
    pub fn of(input: &Input) -> Measured {
        let devices = input.devices.iter().filter_map(|device| {
            let facts = device.facts(&input.snapshot, &input.frames)?;
            Some(MeasuredDevice::of(device, &facts))
        });
        let (rank, moment) = (input.origin.rank, input.origin.moment.clone());
        Measured { name: input.name.clone(), rank, moment, devices: devices.collect() }
    }
}

impl MeasuredDevice {
    fn of(device: &Device, facts: &Facts) -> MeasuredDevice {
        let spans = spans(facts);
        let iterations = spans.len() - 2;
        let curves = Curves::of(facts, &spans);
        let ends: Vec<usize> = spans.iter().skip(1).take(iterations).map(|(_, end)| *end).collect();
        let mut this = MeasuredDevice {
            device: device.device,
            iterations,
            steps: facts.program.steps.len(),
            resident: curves.after.iter().skip(1).take(iterations).copied().collect(),
            allocations: curves.allocations.iter().skip(1).take(iterations).copied().collect(),
            peaks: curves.peaks,
            reserved: curves.reserved,
            roles: BTreeMap::new(),
            sites: Vec::new(),
        };
        this.attribute(facts, &curves.moments, &ends);
        this
    }

    /// Says of every allocation at which moments and ends it is alive.
    fn attribute(&mut self, facts: &Facts, moments: &[usize], ends: &[usize]) {
        let mut of_stack: FxHashMap<(Option<StackId>, Phase), usize> = FxHashMap::default();
        let mut of_frames: BTreeMap<(Vec<FrameId>, Phase), usize> = BTreeMap::new();
        let looped = facts.program.iterations.first().map(|first| first.start);
        for (id, allocation) in facts.timeline.iter() {
            let after = |event: EventIndex| event.position() + 1;
            let (birth, death) =
                (allocation.alloc.map_or(0, after), allocation.free.map_or(usize::MAX, after));
            let span = |places: &[usize]| {
                (places.partition_point(|at| *at < birth), places.partition_point(|at| *at < death))
            };
            let ((first, last), (first_end, last_end)) = (span(moments), span(ends));
            self.roles.entry(facts.role(id)).or_default().raise(first, last, allocation.bytes);
            let stack = facts.stack_of(allocation);
            let phase = allocation.alloc.map_or(Phase::Setup, |event| facts.phase(event));
            let place = *of_stack.entry((stack, phase)).or_insert_with(|| {
                let frames: Vec<FrameId> = stack.map_or_else(Vec::new, |stack| frames(facts, stack));
                *of_frames.entry((frames, phase)).or_insert_with_key(|(frames, phase)| {
                    self.sites.push(AllocationSite::of(facts, frames, *phase));
                    self.sites.len() - 1
                })
            });
            let Some(site) = self.sites.get_mut(place) else { continue };
            site.alive.raise(first, last, allocation.bytes);
            site.resident.raise(first_end, last_end, allocation.bytes);
            if allocation.alloc.zip(looped).is_some_and(|(born, looped)| born >= looped) {
                site.allocations += 1;
                site.bytes += allocation.bytes;
            }
        }
    }
}

/// The user's lines of a stack, innermost first, or the one that stands for a packaged program.
fn frames(facts: &Facts, stack: StackId) -> Vec<FrameId> {
    let user: Vec<FrameId> = facts.frames.user(stack).collect();
    if user.is_empty() { facts.site(stack).into_iter().collect() } else { user }
}

impl AllocationSite {
    fn of(facts: &Facts, frames: &[FrameId], phase: Phase) -> AllocationSite {
        let location = |frame: &FrameId| Location::of(facts.snapshot, *frame);
        AllocationSite {
            frames: frames.iter().filter_map(location).collect(),
            phase,
            alive: SumSeries::default(),
            resident: SumSeries::default(),
            allocations: 0,
            bytes: Bytes::ZERO,
        }
    }
}

/// The events before the loop, of each iteration, and after it; all of them come after where there is no loop.
fn spans(facts: &Facts) -> Vec<(usize, usize)> {
    let iterations = &facts.program.iterations;
    let end = facts.trace.events.len();
    let first = iterations.first().map_or(0, |iteration| iteration.start.position());
    let last = iterations.last().map_or(0, |iteration| iteration.end.position());
    let each = iterations.iter().map(|iteration| (iteration.start.position(), iteration.end.position()));
    std::iter::once((0, first)).chain(each).chain(std::iter::once((last, end.max(last)))).collect()
}

/// What a walk over the events says of each span.
#[derive(Default)]
struct Curves {
    /// How many events have happened when most is in use.
    moments: Vec<usize>,
    peaks: Vec<Bytes>,
    reserved: Vec<Bytes>,
    /// Requested bytes at the end.
    after: Vec<Bytes>,
    allocations: Vec<usize>,
}

impl Curves {
    fn of(facts: &Facts, spans: &[(usize, usize)]) -> Curves {
        let mut curves = Curves::default();
        let mut requested = i128::from(facts.timeline.requested_at_start.get());
        let mut reserved = i128::from(facts.timeline.reserved_at_start.get());
        let mut at = 0;
        for &(_, end) in spans {
            let mut highest = (requested, at);
            let (mut most_reserved, mut allocations) = (reserved, 0);
            while at < end {
                let (change, driver) = changes(facts, at);
                at += 1;
                requested += change;
                reserved += driver;
                most_reserved = most_reserved.max(reserved);
                allocations += usize::from(change > 0);
                if requested > highest.0 {
                    highest = (requested, at);
                }
            }
            curves.moments.push(highest.1);
            curves.peaks.push(bytes(highest.0));
            curves.reserved.push(bytes(most_reserved));
            curves.after.push(bytes(requested));
            curves.allocations.push(allocations);
        }
        curves
    }
}

/// By how much an event changes the requested and the reserved bytes.
fn changes(facts: &Facts, at: usize) -> (i128, i128) {
    let of = |bytes: Bytes| i128::from(bytes.get());
    let allocation = facts.timeline.allocation_of.get(at).copied().flatten();
    let allocation = allocation.and_then(|id| facts.timeline.allocation(id));
    let here = EventIndex::at(at);
    let requested = match allocation {
        Some(one) if one.alloc == here => of(one.bytes),
        Some(one) if one.free == here => -of(one.bytes),
        _ => 0,
    };
    let reserved = facts.trace.events.get(at).and_then(Event::reserves).unwrap_or_default();
    (requested, reserved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_add_up_at_every_place() {
        let mut levels = SumSeries::default();
        levels.raise(1, 4, Bytes(10));
        levels.raise(2, 3, Bytes(5));
        levels.raise(3, 3, Bytes(99));
        assert_eq!(levels.values(0, 5), [0, 10, 15, 10, 0].map(Bytes));
        assert_eq!(levels.values(2, 4), [15, 10].map(Bytes));
        let mut twice = levels.clone();
        twice.add(&levels);
        assert_eq!((twice.at(2), twice.at(9)), (Bytes(30), Bytes::ZERO));
    }
}
