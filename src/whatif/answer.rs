//! One device's answer.

use std::cmp::{Ordering, Reverse};

use super::batch::{Batch, Grown, ToldBy};
use super::without::{Mended, Removed};
use super::{Estimate, Question, WhatIfError};
use crate::engine::{Device, Input};
use crate::facts::Facts;
use crate::finding::{Finding, Location};
use crate::replay::{
    FitOrder, Forecast, Proof, RecordedTrace, Scenario, Script, SettingChange, Sought, Tuning, as_recorded,
    worth_trying,
};
use crate::snapshot::{Action, DeviceTrace};
use crate::unit::{Bytes, DeviceIndex, EventIndex, Index, IterationIndex};

/// What is known of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The device.
    pub device: DeviceIndex,
    /// What was recorded.
    pub recorded: RecordedFigures,
    /// Whether the model does what the recorded allocator did.
    pub proof: Proof,
    /// What the recorded settings come to where the model answers for the driver, too, and not the recording: how far the
    /// addresses that it assumes can be trusted.
    pub rehearsal: Forecast,
    /// The memory that PyTorch can have: as asked, or, of a program that ran out of it, what it had.
    pub capacity: Option<Bytes>,
    /// What was played, best first; in the order of the settings worth trying where they are equal.
    pub scenarios: Vec<Played>,
    /// What the textbooks say.
    pub estimate: Estimate,
    /// What is imagined to be mended.
    pub without: Vec<Mended>,
    /// The warnings and errors that could be imagined to be mended, too.
    pub open: Vec<Finding>,
    /// The lines whose requests were taken to grow with the batch, largest first; none where nobody asked.
    pub grown: Vec<Grown>,
    /// By what that was told; nothing where nobody asked.
    pub told: Option<ToldBy>,
}

/// The figures of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedFigures {
    /// The most that was held from the driver.
    pub peak_reserved: Bytes,
    /// The most that was handed out, in whole blocks.
    pub peak_allocated: Bytes,
    /// The most that was handed out or waited for other streams.
    pub peak_active: Bytes,
    /// The most that was asked for at a time.
    pub peak_requested: Bytes,
    /// What was held at the end.
    pub end_reserved: Bytes,
    /// How often the driver was called, to get memory or to give it back.
    pub driver_calls: usize,
    /// The first request that failed.
    pub out_of_memory: Option<OutOfMemory>,
}

/// A request that got no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The event.
    pub event: EventIndex,
    /// What was asked for.
    pub wanted: Bytes,
    /// The iteration.
    pub iteration: Option<IterationIndex>,
    /// The user's line.
    pub location: Option<Location>,
}

/// A scenario, played.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// What is set otherwise than in the recording; nothing for its own settings.
    pub set: Vec<SettingChange>,
    /// What came of it.
    pub forecast: Forecast,
    /// The first request that got no memory.
    pub out_of_memory: Option<OutOfMemory>,
    /// Whether nothing is known against it: the replay of the recording is exact, so is the rehearsal, and batches are as they
    /// were.
    pub exact: bool,
}

impl Played {
    /// What is held, but never in use at a time.
    pub fn holes(&self) -> Bytes {
        self.forecast.peak_reserved.bytes - self.forecast.peak_active.bytes
    }

    /// Those that do not run out of memory first, then those that get furthest, then the lowest peak, then the fewest calls of the driver.
    fn better(&self, other: &Played) -> Ordering {
        let key = |one: &Played| {
            let ends = one.out_of_memory.as_ref().map(|failure| Reverse(failure.event));
            (ends, one.forecast.peak_reserved.bytes, one.forecast.driver_calls)
        };
        key(self).cmp(&key(other))
    }
}

impl Answer {
    /// Plays the scenarios of a question on a device; nothing where the device has no history.
    pub(super) fn of(
        (input, device): (&Input, &Device),
        question: &Question,
        left_out: Removed,
    ) -> Result<Option<Answer>, WhatIfError> {
        let trace = input.snapshot.devices.get(device.device.position());
        let Some(trace) = trace.filter(|trace| trace.has_history()) else { return Ok(None) };
        let Some(facts) = device.facts(&input.snapshot, &input.frames) else { return Ok(None) };
        let estimate = Estimate::of(device);
        check_capacity(question, &estimate)?;
        let Device { timeline, replay, .. } = device;
        let script = Script::of(&input.snapshot, timeline, replay);
        let recorded = RecordedTrace { snapshot: &input.snapshot, timeline, replay, script: &script };
        let proof = Proof::of(recorded);
        let had = replay.failure.map(|failure| failure.capacity);
        let script = script.with_ends(timeline, left_out.ends());
        let played = RecordedTrace { script: &script, ..recorded };
        let stage = Stage { facts: &facts, input, played, order: proof.order };
        let figures = RecordedFigures::of(&stage, device, trace);
        let rehearsal =
            Scenario { tuning: Tuning::recorded(&input.snapshot), order: proof.order, capacity: had }
                .play(recorded, as_recorded);
        let batch = question.batch_scale.map(|scale| Batch::of(device, &facts, scale));
        let terms = Premises {
            capacity: question.capacity.or(had),
            exact: proof.is_exact() && figures.agree_with(&rehearsal) && batch.is_none(),
            batch: batch.as_ref(),
        };
        Ok(Some(Answer {
            device: device.device,
            recorded: figures,
            proof,
            rehearsal,
            capacity: terms.capacity,
            scenarios: stage.play_all(question, &terms)?,
            estimate,
            without: left_out.findings,
            open: left_out.open,
            told: batch.as_ref().map(|batch| batch.told),
            grown: batch.as_ref().map(|batch| batch.lines(input, &facts)).unwrap_or_default(),
        }))
    }
}

/// A device that does not hold what every run needs is a slip, not a question.
fn check_capacity(question: &Question, estimate: &Estimate) -> Result<(), WhatIfError> {
    let parameters = estimate.parameters;
    match question.capacity {
        Some(capacity) if capacity < parameters || capacity == Bytes::ZERO => {
            Err(WhatIfError::BelowParameters { capacity, parameters })
        }
        _ => Ok(()),
    }
}

/// What all scenarios of a question share.
struct Premises<'a> {
    capacity: Option<Bytes>,
    batch: Option<&'a Batch>,
    exact: bool,
}

/// What is played.
struct Stage<'a> {
    facts: &'a Facts<'a>,
    input: &'a Input,
    /// The recording, with what is left out of it left out.
    played: RecordedTrace<'a>,
    order: FitOrder,
}

impl Stage<'_> {
    fn play_all(&self, question: &Question, terms: &Premises) -> Result<Vec<Played>, WhatIfError> {
        let own = Tuning::recorded(self.played.snapshot);
        if !question.set.is_empty() {
            let tuning = changed(&own, question)?;
            return Ok(vec![self.play(question.set.clone(), tuning, terms)?]);
        }
        let others = worth_trying(&own);
        let all = std::iter::once((Vec::new(), own)).chain(others);
        let mut played: Vec<Played> =
            all.map(|(set, tuning)| self.play(set, tuning, terms)).collect::<Result<_, _>>()?;
        played.sort_by(Played::better);
        Ok(played)
    }

    fn play(&self, set: Vec<SettingChange>, tuning: Tuning, terms: &Premises) -> Result<Played, WhatIfError> {
        let scenario = Scenario { tuning, order: self.order, capacity: terms.capacity };
        let size = |asked: Sought<'_>| terms.batch.map_or(as_recorded(asked), |batch| batch.size(asked));
        let forecast = scenario.play(self.played, size);
        if forecast.given_up {
            return Err(WhatIfError::GivenUp { device: self.facts.device.position() });
        }
        let out_of_memory = forecast.out_of_memory.map(|(event, wanted)| self.failure(event, wanted));
        Ok(Played { set, forecast, out_of_memory, exact: terms.exact })
    }

    fn failure(&self, event: EventIndex, wanted: Bytes) -> OutOfMemory {
        let frame = self.facts.seen_stack(event).and_then(|stack| self.facts.user_frame(stack));
        OutOfMemory {
            event,
            wanted,
            iteration: self.facts.iteration_of(event),
            location: frame.and_then(|frame| Location::of(&self.input.snapshot, frame)),
        }
    }
}

/// The recorded settings with all that is asked for changed.
fn changed(own: &Tuning, question: &Question) -> Result<Tuning, WhatIfError> {
    let mut tuning = own.clone();
    for (at, change) in question.set.iter().enumerate() {
        if question.set.iter().take(at).any(|earlier| earlier.name == change.name) {
            return Err(WhatIfError::Twice { name: change.name.clone() });
        }
        if change.name == "per_process_memory_fraction" && question.capacity.is_none() {
            return Err(WhatIfError::ShareOfUnknown);
        }
        tuning = tuning.with(change)?;
    }
    Ok(tuning)
}

impl RecordedFigures {
    fn of(stage: &Stage, device: &Device, trace: &DeviceTrace) -> RecordedFigures {
        let Device { timeline, replay, .. } = device;
        let is_call = |action| {
            matches!(
                action,
                Action::SegmentAlloc | Action::SegmentMap | Action::SegmentFree | Action::SegmentUnmap
            )
        };
        let failure = replay.failure.as_ref();
        RecordedFigures {
            peak_reserved: timeline.peak_reserved.bytes,
            peak_allocated: replay.peak_allocated.bytes,
            peak_active: replay.peak_active.bytes,
            peak_requested: timeline.peak_requested.bytes,
            end_reserved: timeline.reserved_at_end,
            driver_calls: trace.events.iter().filter(|event| is_call(event.action)).count(),
            out_of_memory: failure.map(|failure| stage.failure(failure.event, failure.wanted)),
        }
    }

    /// Whether a forecast comes to the same.
    fn agree_with(&self, forecast: &Forecast) -> bool {
        self.peak_reserved == forecast.peak_reserved.bytes
            && self.peak_allocated == forecast.peak_allocated.bytes
            && self.end_reserved == forecast.end_reserved
            && self.out_of_memory.as_ref().map(|failure| failure.event)
                == forecast.out_of_memory.map(|(event, _)| event)
    }
}
