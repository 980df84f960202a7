//! `memlint stats --output-format json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Gap, Loop, SCHEMA, TOOL, Tool, check};
use crate::engine::{self, Closer, Device, Input, RecordedDevice};
use crate::report::place::SourceLine;
use crate::report::replayed;
use crate::snapshot;
use crate::source::SourceMap;
use crate::timeline::Allocation;
use crate::unit::{AllocationId, Bytes, EventIndex, Index, Micros};

/// What a snapshot holds.
#[derive(Serialize, JsonSchema)]
pub(super) struct Stats {
    /// The version of this format: `memlint/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    input: String,
    rank: Option<u32>,
    devices: Vec<DeviceStats>,
    /// Every allocation of every device, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<Vec<AllocationStats>>,
    host_memory: Option<HostMemory>,
    gaps: Vec<Gap>,
}

/// Pinned host memory when the snapshot was taken; of its history only the length is kept.
#[derive(Serialize, JsonSchema)]
struct HostMemory {
    blocks: usize,
    held_bytes: u64,
    used_bytes: u64,
    events: usize,
}

impl HostMemory {
    fn of(gaps: &[snapshot::Gap]) -> Option<HostMemory> {
        gaps.iter().find_map(|gap| match *gap {
            snapshot::Gap::HostMemory { blocks, bytes, used, events } => {
                Some(HostMemory { blocks, held_bytes: bytes.get(), used_bytes: used.get(), events })
            }
            _ => None,
        })
    }
}

/// A device.
#[derive(Serialize, JsonSchema)]
struct DeviceStats {
    device: usize,
    /// What kind of recording it is, as in `check`.
    recording: &'static str,
    events: usize,
    /// Null where the recording hides it.
    peak_requested_bytes: Option<u64>,
    /// Null where the recording hides it.
    peak_allocated_bytes: Option<u64>,
    /// Null where the recording hides it.
    peak_reserved_bytes: Option<u64>,
    requested_bytes_at_end: u64,
    reserved_bytes_at_end: u64,
    #[serde(rename = "loop")]
    main_loop: Option<Loop>,
    iterations_found_by: &'static str,
    iterations_confidence: &'static str,
    iterations: Vec<IterationStats>,
    /// Counted from 0.
    peak_event: Option<usize>,
    peak_phase: &'static str,
    /// Counted from 0.
    peak_iteration: Option<usize>,
    roles_at_peak: BTreeMap<&'static str, u64>,
    /// What of the peak people know by a name (`logits`, `attention-scores`): only what is sure, and so a part of it.
    names_at_peak: BTreeMap<&'static str, u64>,
    /// The user's lines that allocated what is alive at the peak, largest first; memory whose stack shows none of them is left out.
    lines_at_peak: Vec<LineStats>,
    /// Whether a model of the allocator does all that the recorded one did; null where there is no history.
    replay_exact: Option<bool>,
    /// Where it first does not.
    replay_first_difference: Option<String>,
}

/// A line of the user's and what it has alive at the peak.
#[derive(Serialize, JsonSchema)]
struct LineStats {
    /// The local file, or the recorded one where that is not at hand.
    file: String,
    line: u32,
    function: Option<String>,
    bytes: u64,
    allocations: usize,
}

impl LineStats {
    fn of(line: &engine::LineProfile, sources: &SourceMap) -> LineStats {
        let place = SourceLine::of(&line.location, sources);
        LineStats {
            file: place.name().to_owned(),
            line: place.number,
            function: Some(line.location.function.clone()).filter(|name| !name.is_empty()),
            bytes: line.bytes.get(),
            allocations: line.allocations,
        }
    }
}

/// An iteration of the program: its events from `start_event` up to `end_event`, which is no longer its own. They count from 0, as `index` does.
#[derive(Serialize, JsonSchema)]
struct IterationStats {
    index: usize,
    start_event: usize,
    end_event: usize,
    /// Null where the recording has no times (PyTorch 2.1 and before).
    start_us: Option<i64>,
    /// Null where the recording has no times.
    end_us: Option<i64>,
    complete: bool,
    /// Null where the recording hides it.
    peak_requested_bytes: Option<u64>,
    /// Null where the recording hides it.
    resident_bytes: Option<u64>,
}

/// An allocation; what it was born with is null where it is older than the recording, `free_*` where it is alive at the end.
#[derive(Serialize, JsonSchema)]
struct AllocationStats {
    device: usize,
    address: u64,
    bytes: u64,
    role: &'static str,
    /// The kind of evidence for the role: who asked the allocator, frames, its release, its lifetime, sizes, or nothing.
    evidence: &'static str,
    /// The evidence in words; empty where there is none.
    because: &'static str,
    phase: Option<&'static str>,
    /// Counted from 0, as events are.
    iteration: Option<usize>,
    alloc_event: Option<usize>,
    free_event: Option<usize>,
    alloc_us: Option<i64>,
    free_us: Option<i64>,
}

impl Stats {
    pub(super) fn of(input: &Input, closer: &[Closer], sources: &SourceMap, allocations: bool) -> Stats {
        let every = || {
            let of_device = |device| {
                let all = Allocations::of(input, device);
                device.timeline.iter().map(move |(id, allocation)| all.describe(id, allocation))
            };
            input.devices.iter().flat_map(of_device).collect()
        };
        let recording = input.recording();
        let devices = input.devices.iter().zip(&recording.devices).enumerate();
        Stats {
            schema: SCHEMA,
            tool: TOOL,
            input: input.name.clone(),
            rank: input.origin.rank,
            devices: devices
                .map(|(position, (device, recorded))| {
                    DeviceStats::of(device, recorded, closer.get(position), sources)
                })
                .collect(),
            allocations: allocations.then(every),
            host_memory: HostMemory::of(&recording.gaps),
            gaps: Gap::all(&recording),
        }
    }
}

impl DeviceStats {
    fn of(
        device: &Device,
        recorded: &RecordedDevice,
        closer: Option<&Closer>,
        sources: &SourceMap,
    ) -> DeviceStats {
        let (timeline, program, profile) = (&device.timeline, &device.program, &recorded.profile);
        let memory = |index: usize| profile.iterations.get(index);
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        let proof = closer.and_then(|closer| closer.proof);
        let familiar = closer.map_or(&[][..], |closer| &closer.familiar_at_peak);
        DeviceStats {
            device: device.device.position(),
            recording: recorded.kind.name(),
            events: timeline.allocation_of.len(),
            peak_requested_bytes: bytes(recorded.peak_requested),
            peak_allocated_bytes: bytes(recorded.peak_allocated),
            peak_reserved_bytes: bytes(recorded.peak_reserved),
            requested_bytes_at_end: timeline.requested_at_end.get(),
            reserved_bytes_at_end: timeline.reserved_at_end.get(),
            main_loop: Loop::of(recorded, sources),
            iterations_found_by: program.found_by.name(),
            iterations_confidence: program.confidence.name(),
            iterations: program
                .iterations
                .iter()
                .enumerate()
                .map(|(index, iteration)| IterationStats {
                    index,
                    start_event: iteration.start.position(),
                    end_event: iteration.end.position(),
                    start_us: micros(iteration.start_time),
                    end_us: micros(iteration.end_time),
                    complete: iteration.complete,
                    peak_requested_bytes: memory(index).map(|memory| memory.peak.get()),
                    resident_bytes: memory(index).map(|memory| memory.resident.get()),
                })
                .collect(),
            peak_event: recorded.peak_requested.and(timeline.peak_requested.event).map(Index::position),
            peak_phase: profile.peak_phase.name(),
            peak_iteration: profile.peak_iteration.map(Index::position),
            roles_at_peak: check::by_role(recorded),
            names_at_peak: familiar.iter().map(|(name, bytes)| (name.name(), bytes.get())).collect(),
            lines_at_peak: profile.lines_at_peak.iter().map(|line| LineStats::of(line, sources)).collect(),
            replay_exact: proof.map(|proof| proof.is_exact()),
            replay_first_difference: proof
                .and_then(|proof| proof.difference)
                .map(|one| replayed::difference(&one)),
        }
    }
}

/// One device's allocations and what describes them.
struct Allocations<'a> {
    input: &'a Input,
    device: &'a Device,
}

impl<'a> Allocations<'a> {
    fn of(input: &'a Input, device: &'a Device) -> Allocations<'a> {
        Allocations { input, device }
    }

    fn describe(&self, id: AllocationId, allocation: &Allocation) -> AllocationStats {
        let device = self.device;
        let program = &device.program;
        let ground = device.roles.ground(id);
        AllocationStats {
            device: device.device.position(),
            address: allocation.address,
            bytes: allocation.bytes.get(),
            role: device.roles.of.get(id.position()).copied().unwrap_or_default().name(),
            evidence: ground.evidence.name(),
            because: ground.because,
            phase: allocation
                .alloc
                .and_then(|at| program.phases.get(at.position()))
                .map(|phase| phase.name()),
            iteration: allocation.alloc.and_then(|at| program.iteration_of(at)).map(Index::position),
            alloc_event: allocation.alloc.map(Index::position),
            free_event: allocation.free.map(Index::position),
            alloc_us: self.time(allocation.alloc),
            free_us: self.time(allocation.free),
        }
    }

    fn time(&self, event: Option<EventIndex>) -> Option<i64> {
        let trace = self.input.snapshot.devices.get(self.device.device.position())?;
        micros(trace.event(event?)?.time)
    }
}

/// A moment; nothing where none was recorded, which reads as the beginning of all time.
fn micros(time: Micros) -> Option<i64> {
    (time > Micros(0)).then_some(time.0)
}
