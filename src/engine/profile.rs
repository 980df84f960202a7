//! What a device's peak consists of, and what each iteration needed.

use crate::program::{Phase, Program};
use crate::role::{Role, Roles};
use crate::timeline::{Allocation, Timeline};
use crate::unit::{Bytes, EventIndex, Index, IterationIndex};

/// The figures that reports show of a device whatever the rules say.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What is alive at the peak of requested bytes, by role, largest first; adds up to the peak.
    pub peak_by_role: Vec<(Role, Bytes)>,
    /// The phase in which the peak is reached.
    pub peak_phase: Phase,
    /// The iteration in which the peak is reached.
    pub peak_iteration: Option<IterationIndex>,
    /// What each iteration of the program needed, in their order.
    pub iterations: Vec<IterationMemory>,
}

/// What one iteration needed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct IterationMemory {
    /// The highest requested bytes within it.
    pub peak: Bytes,
    /// Requested bytes at its end.
    pub resident: Bytes,
}

impl Profile {
    /// Measures a device.
    pub fn of(timeline: &Timeline, program: &Program, roles: &Roles) -> Profile {
        let peak_event = timeline.peak_requested.event;
        let levels = levels(timeline);
        let level_after = |count: usize| levels.get(count).copied().unwrap_or_default();
        let iterations = program
            .iterations
            .iter()
            .map(|iteration| {
                let (start, end) = (iteration.start.position(), iteration.end.position());
                let within = levels.get(start..=end).unwrap_or_default();
                IterationMemory {
                    peak: within.iter().copied().max().unwrap_or_default(),
                    resident: level_after(end),
                }
            })
            .collect();
        Profile {
            peak_by_role: composition(timeline, roles, peak_event),
            peak_phase: peak_event
                .and_then(|event| program.phases.get(event.position()))
                .copied()
                .unwrap_or_default(),
            peak_iteration: peak_event.and_then(|event| program.iteration_of(event)),
            iterations,
        }
    }
}

/// Requested bytes before the first event and after each: one more entry than there are events.
fn levels(timeline: &Timeline) -> Vec<Bytes> {
    let mut changes = vec![0_i128; timeline.allocation_of.len()];
    let mut change = |at: Option<EventIndex>, by: i128| {
        if let Some(place) = at.and_then(|event| changes.get_mut(event.position())) {
            *place += by;
        }
    };
    for allocation in &timeline.allocations {
        let bytes = i128::from(allocation.bytes.get());
        change(allocation.alloc, bytes);
        change(allocation.free, -bytes);
    }
    let mut level = i128::from(timeline.requested_at_start.get());
    let bytes = |level: i128| Bytes(u64::try_from(level.max(0)).unwrap_or(u64::MAX));
    let mut levels = Vec::with_capacity(changes.len() + 1);
    levels.push(bytes(level));
    for by in changes {
        level += by;
        levels.push(bytes(level));
    }
    levels
}

/// What is alive at the peak by role, largest first.
fn composition(timeline: &Timeline, roles: &Roles, peak: Option<EventIndex>) -> Vec<(Role, Bytes)> {
    let alive = |allocation: &Allocation| match peak {
        Some(event) => allocation.alive_after(event),
        None => allocation.alloc.is_none(),
    };
    let mut by_role: Vec<(Role, Bytes)> = Vec::new();
    for (id, allocation) in timeline.iter().filter(|(_, allocation)| alive(allocation)) {
        let role = roles.of.get(id.position()).copied().unwrap_or_default();
        match by_role.iter_mut().find(|(known, _)| *known == role) {
            Some((_, bytes)) => *bytes += allocation.bytes,
            None => by_role.push((role, allocation.bytes)),
        }
    }
    by_role.retain(|(_, bytes)| *bytes > Bytes::ZERO);
    by_role.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
    by_role
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Iteration;
    use crate::timeline::Peak;
    use crate::unit::{DeviceIndex, Micros};

    fn event(position: usize) -> EventIndex {
        EventIndex::at(position).unwrap()
    }

    fn allocation(bytes: u64, alloc: Option<usize>, free: Option<usize>) -> Allocation {
        Allocation {
            address: 0,
            bytes: Bytes(bytes),
            alloc: alloc.map(event),
            free_requested: None,
            free: free.map(event),
            stack: None,
            stream: 0,
        }
    }

    #[test]
    fn peaks_and_residents_of_iterations_follow_the_curve() {
        let timeline = Timeline {
            device: DeviceIndex::at(0).unwrap(),
            allocations: vec![
                allocation(10, None, None),
                allocation(5, Some(0), Some(1)),
                allocation(7, Some(2), None),
                allocation(1, Some(3), None),
            ],
            allocation_of: vec![None; 4],
            requested_at_start: Bytes(10),
            reserved_at_start: Bytes::ZERO,
            peak_requested: Peak { bytes: Bytes(18), event: Some(event(3)) },
            peak_reserved: Peak::default(),
            requested_at_end: Bytes(18),
            reserved_at_end: Bytes::ZERO,
            agreement: crate::timeline::Agreement::default(),
        };
        let iteration = |start, end| Iteration {
            start: event(start),
            end: event(end),
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
        let profile = Profile::of(&timeline, &program, &roles);
        let memory = |peak, resident| IterationMemory { peak: Bytes(peak), resident: Bytes(resident) };
        assert_eq!(profile.iterations, [memory(15, 10), memory(18, 18)]);
        assert_eq!(profile.peak_by_role, [(Role::Parameter, Bytes(11)), (Role::Gradient, Bytes(7))]);
        assert_eq!((profile.peak_phase, profile.peak_iteration), (Phase::Backward, IterationIndex::at(1)));
    }
}
