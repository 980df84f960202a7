//! Which settings of the allocator would have made the recorded program reserve less.
//!
//! In: the recorded requests and frees. Out: the best of the settings worth trying, or that none helps; nothing where the
//! model of the allocator does not reproduce the recording itself, for then it says nothing of other settings.

use crate::facts::Facts;
use crate::replay::{Change, Forecast, Proof, Recorded, Scenario, Script, Tuning, worth_trying};
use crate::unit::Bytes;

/// What the best of the settings worth trying comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct BestSetting {
    /// What to set; none of them reserves less where it is empty.
    pub set: Vec<Change>,
    /// The most that is held from the driver with it.
    pub peak_reserved: Bytes,
    /// How many were tried.
    pub tried: usize,
}

impl BestSetting {
    /// The settings as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub fn conf(&self) -> String {
        self.set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

pub(super) fn best_setting(facts: &Facts) -> Option<BestSetting> {
    let Facts { snapshot, timeline, replay, .. } = *facts;
    // What would have become of a program that failed, nobody knows.
    if replay.failure.is_some() {
        return None;
    }
    let script = Script::of(snapshot, timeline, replay);
    let recorded = Recorded { snapshot, timeline, replay, script: &script };
    let proof = Proof::of(recorded);
    let play = |tuning: Tuning| {
        let scenario = Scenario { tuning, order: proof.order, capacity: None };
        let forecast = scenario.play(recorded, |_, one| one.bytes);
        Some(forecast).filter(|forecast| !forecast.given_up)
    };
    let own = Tuning::recorded(snapshot);
    let peak = |forecast: Forecast| forecast.peak_reserved.bytes;
    let recorded_peak = timeline.peak_reserved.bytes;
    if !proof.is_exact() || play(own.clone()).map(peak) != Some(recorded_peak) {
        return None;
    }
    let others = worth_trying(&own);
    let mut best = BestSetting { set: Vec::new(), peak_reserved: recorded_peak, tried: others.len() };
    for (set, tuning) in others {
        let peak_reserved = play(tuning).map(peak)?;
        if peak_reserved < best.peak_reserved {
            best = BestSetting { set, peak_reserved, ..best };
        }
    }
    Some(best)
}
