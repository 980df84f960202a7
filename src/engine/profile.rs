//! What a device's peak consists of, and what each iteration needed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::finding::{Location, Severity};
use crate::lives::growth;
use crate::program::{Phase, Program};
use crate::role::{Role, Roles};
use crate::rules;
use crate::snapshot::Snapshot;
use crate::timeline::{Allocation, Timeline};
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, Index, IterationIndex};
use crate::verdict::Told;

/// The figures that reports show of a device whatever the rules say.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// What is alive at the peak of requested bytes, by role, largest first; adds up to the peak.
    pub peak_by_role: Vec<(Role, Bytes)>,
    /// What of it findings say grows from iteration to iteration, by role, largest first.
    pub growing_at_peak: Vec<(Role, Bytes)>,
    /// What of it findings say waits for the garbage collector, by role, largest first.
    pub garbage_at_peak: Vec<(Role, Bytes)>,
    /// The phase in which the peak is reached.
    pub peak_phase: Phase,
    /// The iteration in which the peak is reached.
    pub peak_iteration: Option<IterationIndex>,
    /// The lines that what is alive at the peak counts for, largest first. Memory of which no line is known is left out.
    pub lines_at_peak: Vec<LineProfile>,
    /// What each iteration of the program needed, in their order.
    pub iterations: Vec<IterationMemory>,
    /// By how much what is held from the driver grows in each iteration; nothing where it is not sure to go on growing.
    pub reserved_growth: Bytes,
    /// The highest requested bytes of equal parts of the recording, by events.
    pub curve: Vec<Bytes>,
}

/// Parts of a recording whose highest level is kept: more columns no terminal has (chosen).
const PARTS: usize = 240;

/// A line and what counts for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineProfile {
    /// The line.
    pub location: Location,
    /// Bytes.
    pub bytes: Bytes,
    /// Allocations.
    pub allocations: usize,
}

/// What one iteration needed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationMemory {
    /// The highest requested bytes within it.
    pub peak: Bytes,
    /// Requested bytes at its end.
    pub resident: Bytes,
}

impl Profile {
    /// Measures a device. Its lines are told by its facts, when there are such.
    pub fn of(snapshot: &Snapshot, timeline: &Timeline, program: &Program, roles: &Roles) -> Profile {
        let peak_event = timeline.peak_requested.event;
        let levels = &timeline.levels;
        let iterations = program
            .iterations
            .iter()
            .map(|iteration| {
                let (start, end) = (iteration.start.position(), iteration.end.position());
                let peak = levels.before(start).max(levels.highest(start..end));
                IterationMemory { peak, resident: levels.before(end) }
            })
            .collect();
        Profile {
            peak_by_role: by_role(alive_at(timeline, peak_event), |id| {
                roles.of.get(id.position()).copied().unwrap_or_default()
            }),
            growing_at_peak: Vec::new(),
            garbage_at_peak: Vec::new(),
            peak_phase: peak_event
                .and_then(|event| program.phases.get(event.position()))
                .copied()
                .unwrap_or_default(),
            peak_iteration: peak_event.and_then(|event| program.iteration_of(event)),
            lines_at_peak: Vec::new(),
            iterations,
            reserved_growth: reserved_growth(snapshot, timeline, program),
            curve: curve(timeline),
        }
    }
}

/// By the judge of growth: a segment or two of a warm-up are no pace.
fn reserved_growth(snapshot: &Snapshot, timeline: &Timeline, program: &Program) -> Bytes {
    let events = snapshot.devices.get(timeline.device.position()).map_or(&[][..], |trace| &trace.events);
    let mut changes = events.iter().map(|event| event.reserves().unwrap_or_default());
    let (mut at, mut level) = (0, 0_i128);
    let mut levels = Vec::with_capacity(program.iterations.len());
    for end in program.iterations.iter().map(|one| one.end.position()) {
        level += changes.by_ref().take(end.saturating_sub(at)).sum::<i128>();
        at = end;
        levels.push(level as f64);
    }
    let goes_on = growth::of_levels(&levels).filter(|one| one.confidence(true) > Confidence::Low);
    goes_on.map_or(Bytes::ZERO, |one| Bytes::rounded(one.slope))
}

/// What of the peak of a device findings that count are about, by role, largest first.
#[derive(Debug, Default)]
pub(super) struct Faulty {
    growing: Vec<(Role, Bytes)>,
    garbage: Vec<(Role, Bytes)>,
}

impl Faulty {
    /// By the findings about the device.
    pub(super) fn at_peak(facts: &Facts, told: &[Told]) -> Faulty {
        let counts = || told.iter().filter(|one| one.finding.severity > Severity::Info);
        let grows = |one: &&Told| one.finding.impact.per_iteration.is_some_and(|each| each > Bytes::ZERO);
        let waits = |one: &&Told| one.finding.rule == rules::GARBAGE;
        let growing = about(counts().filter(grows));
        let garbage = &about(counts().filter(waits)) - &growing;
        let standing = |which: BTreeSet<AllocationId>| {
            let alive = alive_at(facts.timeline, facts.timeline.peak_requested.event);
            // A workspace may be made on a line that keeps what it makes, once.
            let counts = |id: AllocationId| which.contains(&id) && facts.role(id) != Role::Workspace;
            by_role(alive.filter(|(id, _)| counts(*id)), |id| facts.role(id))
        };
        Faulty { growing: standing(growing), garbage: standing(garbage) }
    }

    /// Into the device's profile.
    pub(super) fn tell(self, profile: &mut Profile) {
        profile.growing_at_peak = self.growing;
        profile.garbage_at_peak = self.garbage;
    }
}

/// The allocations that findings are about.
fn about<'t>(told: impl Iterator<Item = &'t Told>) -> BTreeSet<AllocationId> {
    told.flat_map(|one| one.about.iter().copied()).collect()
}

/// The highest requested bytes of equal parts.
fn curve(timeline: &Timeline) -> Vec<Bytes> {
    let (levels, events) = (&timeline.levels, timeline.allocation_of.len());
    let parts = PARTS.min(events);
    let edge = |part: usize| part * events / parts;
    let highest = |part: usize| levels.before(edge(part)).max(levels.highest(edge(part)..edge(part + 1)));
    (0..parts).map(highest).collect()
}

/// What is alive just after an event, or before the first.
pub(super) fn alive_at(
    timeline: &Timeline,
    event: Option<EventIndex>,
) -> impl Iterator<Item = (AllocationId, &Allocation)> {
    timeline.iter().filter(move |(_, allocation)| match event {
        Some(event) => allocation.alive_after(event),
        None => allocation.alloc.is_none(),
    })
}

/// Allocations by role, largest first.
fn by_role<'a>(
    alive: impl Iterator<Item = (AllocationId, &'a Allocation)>,
    role: impl Fn(AllocationId) -> Role,
) -> Vec<(Role, Bytes)> {
    let mut sums: BTreeMap<Role, Bytes> = BTreeMap::new();
    for (id, allocation) in alive.filter(|(_, allocation)| allocation.bytes > Bytes::ZERO) {
        *sums.entry(role(id)).or_default() += allocation.bytes;
    }
    let mut by_role: Vec<(Role, Bytes)> = sums.into_iter().collect();
    by_role.sort_by_key(|(_, bytes)| Reverse(*bytes));
    by_role
}

/// The lines that what is alive at the peak counts for, largest first.
pub(super) fn lines_at_peak(facts: &Facts) -> Vec<LineProfile> {
    let mut sums: BTreeMap<FrameId, (Bytes, usize)> = BTreeMap::new();
    for (_, allocation) in alive_at(facts.timeline, facts.timeline.peak_requested.event) {
        let Some(frame) = facts.line_of(allocation) else { continue };
        let (bytes, allocations) = sums.entry(frame).or_default();
        *bytes += allocation.bytes;
        *allocations += 1;
    }
    let mut lines: Vec<LineProfile> = sums
        .into_iter()
        .filter_map(|(frame, (bytes, allocations))| {
            Some(LineProfile { location: Location::of(facts.snapshot, frame)?, bytes, allocations })
        })
        .collect();
    lines.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.location.cmp(&b.location)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Iteration;
    use crate::testing::{allocation, at, timeline};
    use crate::unit::Micros;

    #[test]
    fn peaks_and_residents_of_iterations_follow_the_curve() {
        let allocations = vec![
            allocation(10, None, None),
            allocation(5, Some(0), Some(1)),
            allocation(7, Some(2), None),
            allocation(1, Some(3), None),
        ];
        let timeline = timeline(allocations, 10, &[15, 10, 17, 18]);
        let iteration = |start, end| Iteration {
            start: at(start),
            end: at(end),
            start_time: Micros(0),
            end_time: Micros(0),
            complete: true,
        };
        let program = Program {
            iterations: vec![iteration(0, 2), iteration(2, 4)],
            phases: vec![Phase::Forward, Phase::Forward, Phase::Setup, Phase::Backward],
            ..Program::default()
        };
        let roles = Roles {
            of: vec![Role::Parameter, Role::Activation, Role::Gradient, Role::Parameter],
            ..Roles::default()
        };
        let snapshot = Snapshot::default();
        let profile = Profile::of(&snapshot, &timeline, &program, &roles);
        let memory = |peak, resident| IterationMemory { peak: Bytes(peak), resident: Bytes(resident) };
        assert_eq!(profile.iterations, [memory(15, 10), memory(18, 18)]);
        assert_eq!(profile.curve, [15, 15, 17, 18].map(Bytes), "an event each");
        assert_eq!(profile.peak_by_role, [(Role::Parameter, Bytes(11)), (Role::Gradient, Bytes(7))]);
        assert_eq!((profile.peak_phase, profile.peak_iteration), (Phase::Backward, IterationIndex::at(1)));
    }
}
