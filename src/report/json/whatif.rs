//! `memlint whatif --output-format json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{SCHEMA, TOOL, Tool};
use crate::finding::Location;
use crate::report::replayed;
use crate::unit::{Bytes, Index};
use crate::whatif::{
    Answer, BatchScale, Estimate, Grown, Mended, OutOfMemory, Played, Question, RecordedFigures, ToldBy,
};

/// What a recorded program would need.
#[derive(Serialize, JsonSchema)]
pub(super) struct WhatIf {
    /// The version of this format: `memlint/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    input: String,
    batch_scale: Option<f64>,
    devices: Vec<DeviceAnswer>,
}

/// A device.
#[derive(Serialize, JsonSchema)]
struct DeviceAnswer {
    device: usize,
    /// What PyTorch can have: as asked, or, of a program that ran out of memory, what it had.
    capacity_bytes: Option<u64>,
    recorded: Recorded,
    /// What was played: as asked, or every setting worth trying, best first.
    scenarios: Vec<Scenario>,
    estimate: TextbookEstimate,
    /// The findings that are imagined to be mended, where that was asked for.
    without: Vec<MendedFinding>,
    /// The lines whose requests were taken to grow with the batch, where that was asked for.
    grown: Vec<GrownLine>,
    /// By what that was told, where it was asked for.
    grown_told_by: Option<SizesTold>,
}

/// By what it is told which requests grow with the batch.
#[derive(Serialize, JsonSchema)]
struct SizesTold {
    /// How many different batches were recorded: with one, roles tell all.
    batches: usize,
    /// The share of the bytes asked for of which their sizes say whether they grow; of the others, their roles do.
    measured: f64,
}

/// What was recorded.
#[derive(Serialize, JsonSchema)]
struct Recorded {
    peak_reserved_bytes: u64,
    peak_allocated_bytes: u64,
    peak_requested_bytes: u64,
    end_reserved_bytes: u64,
    holes_bytes: u64,
    driver_calls: usize,
    out_of_memory: Option<Failure>,
    /// Whether the model does all that the recorded allocator did.
    exact: bool,
    /// Where it first does not.
    first_difference: Option<String>,
    /// The peak of the recorded settings where the model assumes the addresses of segments, too.
    rehearsed_peak_reserved_bytes: u64,
}

/// A scenario.
#[derive(Serialize, JsonSchema)]
struct Scenario {
    /// What is set otherwise than in the recording.
    set: BTreeMap<String, String>,
    peak_reserved_bytes: u64,
    peak_allocated_bytes: u64,
    peak_requested_bytes: u64,
    end_reserved_bytes: u64,
    /// What is held, but never in use at a time.
    holes_bytes: u64,
    driver_calls: usize,
    out_of_memory: Option<Failure>,
    /// Whether nothing is known against it: the replay of the recording itself is exact, so are the assumed addresses, and
    /// batches are as they were.
    exact: bool,
}

/// The first request that got no memory; what follows it is not known. Events and iterations count from 0.
#[derive(Serialize, JsonSchema)]
struct Failure {
    event: usize,
    wanted_bytes: u64,
    iteration: Option<usize>,
    location: Option<Spot>,
}

#[derive(Serialize, JsonSchema)]
struct Spot {
    file: String,
    line: u32,
    function: String,
}

/// Parameters + optimizer state + the larger of gradients with the step's temporaries, and activations.
#[derive(Serialize, JsonSchema)]
struct TextbookEstimate {
    parameter_bytes: u64,
    optimizer_state_bytes: u64,
    gradient_bytes: u64,
    step_temporary_bytes: u64,
    activation_bytes: u64,
    estimate_bytes: u64,
    /// By how much it misses the recorded peak of allocated bytes, as a share of that.
    error: f64,
}

/// A finding that is imagined to be mended.
#[derive(Serialize, JsonSchema)]
struct MendedFinding {
    rule: String,
    fingerprint: String,
    location: Option<Spot>,
    /// How many allocations are left out, or end at another time.
    allocations: usize,
    /// What mending this one alone takes off the peak of requested bytes, as `memlint check` says.
    saves_peak_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct GrownLine {
    location: Option<Spot>,
    bytes: u64,
}

impl WhatIf {
    pub(super) fn of(name: &str, question: &Question, answers: &[Answer]) -> WhatIf {
        WhatIf {
            schema: SCHEMA,
            tool: TOOL,
            input: name.to_owned(),
            batch_scale: question.batch_scale.map(BatchScale::get),
            devices: answers.iter().map(DeviceAnswer::of).collect(),
        }
    }
}

impl DeviceAnswer {
    fn of(answer: &Answer) -> DeviceAnswer {
        DeviceAnswer {
            device: answer.device.position(),
            capacity_bytes: answer.capacity.map(Bytes::get),
            recorded: Recorded::of(answer),
            scenarios: answer.scenarios.iter().map(Scenario::of).collect(),
            estimate: TextbookEstimate::of(&answer.estimate, &answer.recorded),
            without: answer.without.iter().map(MendedFinding::of).collect(),
            grown_told_by: answer.told.map(|ToldBy { batches, measured }| SizesTold { batches, measured }),
            grown: answer.grown.iter().map(GrownLine::of).collect(),
        }
    }
}

impl Recorded {
    fn of(answer: &Answer) -> Recorded {
        let recorded = &answer.recorded;
        Recorded {
            peak_reserved_bytes: recorded.peak_reserved.get(),
            peak_allocated_bytes: recorded.peak_allocated.get(),
            peak_requested_bytes: recorded.peak_requested.get(),
            end_reserved_bytes: recorded.end_reserved.get(),
            holes_bytes: (recorded.peak_reserved - recorded.peak_active).get(),
            driver_calls: recorded.driver_calls,
            out_of_memory: recorded.out_of_memory.as_ref().map(Failure::of),
            exact: answer.proof.is_exact(),
            first_difference: answer.proof.difference.as_ref().map(replayed::difference),
            rehearsed_peak_reserved_bytes: answer.rehearsal.peak_reserved.bytes.get(),
        }
    }
}

impl Scenario {
    fn of(played: &Played) -> Scenario {
        let forecast = &played.forecast;
        let set = played.set.iter().map(|change| (change.name.clone(), change.value.clone()));
        Scenario {
            set: set.collect(),
            peak_reserved_bytes: forecast.peak_reserved.bytes.get(),
            peak_allocated_bytes: forecast.peak_allocated.bytes.get(),
            peak_requested_bytes: forecast.peak_requested.bytes.get(),
            end_reserved_bytes: forecast.end_reserved.get(),
            holes_bytes: played.holes().get(),
            driver_calls: forecast.driver_calls,
            out_of_memory: played.out_of_memory.as_ref().map(Failure::of),
            exact: played.exact,
        }
    }
}

impl Failure {
    fn of(failure: &OutOfMemory) -> Failure {
        Failure {
            event: failure.event.position(),
            wanted_bytes: failure.wanted.get(),
            iteration: failure.iteration.map(Index::position),
            location: failure.location.as_ref().map(Spot::of),
        }
    }
}

impl Spot {
    fn of(location: &Location) -> Spot {
        Spot { file: location.file.clone(), line: location.line, function: location.function.clone() }
    }
}

impl TextbookEstimate {
    fn of(estimate: &Estimate, recorded: &RecordedFigures) -> TextbookEstimate {
        TextbookEstimate {
            parameter_bytes: estimate.parameters.get(),
            optimizer_state_bytes: estimate.optimizer_state.get(),
            gradient_bytes: estimate.gradients.get(),
            step_temporary_bytes: estimate.step_temporaries.get(),
            activation_bytes: estimate.activations.get(),
            estimate_bytes: estimate.total().get(),
            error: estimate.error(recorded.peak_allocated),
        }
    }
}

impl MendedFinding {
    fn of(mended: &Mended) -> MendedFinding {
        let finding = &mended.finding;
        MendedFinding {
            rule: finding.rule.to_string(),
            fingerprint: finding.fingerprint.to_string(),
            location: finding.location.as_ref().map(Spot::of),
            allocations: mended.allocations,
            saves_peak_bytes: finding.impact.peak.map(Bytes::get),
        }
    }
}

impl GrownLine {
    fn of(grown: &Grown) -> GrownLine {
        GrownLine { location: grown.location.as_ref().map(Spot::of), bytes: grown.bytes.get() }
    }
}
