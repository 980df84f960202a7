//! What other settings of the allocator would have made of the recorded program.
//!
//! In: the recorded requests and frees. Out: a forecast for each of the settings worth trying, beside that of the recorded ones;
//! nothing where the model of the allocator does not reproduce the recording itself, for then it says nothing of other
//! settings. A program that ran out of memory is played with what it is known to have had.

use crate::facts::Facts;
use crate::replay::{
    FitOrder, Forecast, Proof, RecordedTrace, Scenario, Script, SettingChange, Tuning, as_recorded,
    worth_trying,
};
use crate::unit::{Bytes, EventIndex};

/// What became of the program under the settings worth trying.
#[derive(Debug, Clone, PartialEq)]
pub struct Trials {
    own: Forecast,
    /// In the order in which they are worth trying.
    others: Vec<Trial>,
}

/// A setting, tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What to set.
    pub set: Vec<SettingChange>,
    /// What came of it.
    pub forecast: Forecast,
}

impl Trial {
    /// The settings as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub fn conf(&self) -> String {
        self.set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

impl Trials {
    /// What came of the recorded settings: what was recorded.
    pub fn own(&self) -> &Forecast {
        &self.own
    }

    /// How many others were tried.
    pub fn count(&self) -> usize {
        self.others.len()
    }

    /// The setting for which a figure is lowest, and by how much; nothing where none is below the recorded one. Of those that are
    /// as good, the first counts. A setting with which the program would not have come to its end is no candidate.
    pub fn best(&self, figure: impl Fn(&Forecast) -> u64) -> Option<(&Trial, u64)> {
        let runs = |trial: &&Trial| trial.forecast.out_of_memory.is_none();
        let best = self.others.iter().filter(runs).min_by_key(|trial| figure(&trial.forecast))?;
        let saved = figure(&self.own).saturating_sub(figure(&best.forecast));
        (saved > 0).then_some((best, saved))
    }

    /// The setting that lowers the reserved peak most, and by how many bytes.
    pub fn least_reserved(&self) -> Option<(&Trial, Bytes)> {
        let best = self.best(|forecast| forecast.peak_reserved.bytes.get());
        best.map(|(trial, saved)| (trial, Bytes(saved)))
    }

    /// The setting with which a request that failed, and all after it, would have got memory; of several the one that
    /// reserves least.
    pub fn fitting(&self, failure: EventIndex) -> Option<&Trial> {
        let fits = |trial: &&Trial| {
            let Forecast { cut_short, refused_again, .. } = trial.forecast;
            !cut_short && refused_again.is_none_or(|last| last < failure)
        };
        self.others.iter().filter(fits).min_by_key(|trial| trial.forecast.peak_reserved.bytes)
    }
}

/// The trials with so much memory, or with no end of it.
pub(super) fn trials(facts: &Facts, capacity: Option<Bytes>) -> Option<Trials> {
    let own = Tuning::recorded(facts.snapshot);
    let stage = Reproduction::of(facts, capacity)?;
    let tried = |(set, tuning)| Some(Trial { set, forecast: stage.play(&stage.script, tuning)? });
    let others = worth_trying(&own).into_iter().map(tried).collect::<Option<Vec<_>>>()?;
    Some(Trials { own: stage.own, others })
}

/// How many bytes fewer would be held at the end, were some private pools one with another one; nothing where the replay
/// cannot tell.
pub(super) fn saved_by_sharing(facts: &Facts, pools: &[(u64, u64)], with: (u64, u64)) -> Option<Bytes> {
    let had = facts.replay.failure.map(|failure| failure.capacity);
    let stage = Reproduction::of(facts, had)?;
    let shared =
        stage.play(&stage.script.with_pools_shared(pools, with), Tuning::recorded(facts.snapshot))?;
    shared.out_of_memory.is_none().then(|| stage.own.end_reserved - shared.end_reserved)
}

/// A recording that the model of the allocator reproduces.
struct Reproduction<'a> {
    facts: &'a Facts<'a>,
    script: Script,
    order: FitOrder,
    capacity: Option<Bytes>,
    own: Forecast,
}

impl<'a> Reproduction<'a> {
    /// Nothing where the model differs, or where the addresses that it assumes make a difference.
    fn of(facts: &'a Facts<'a>, capacity: Option<Bytes>) -> Option<Reproduction<'a>> {
        let Facts { snapshot, timeline, replay, .. } = *facts;
        let script = Script::of(snapshot, timeline, replay);
        let proof = Proof::of(RecordedTrace { snapshot, timeline, replay, script: &script });
        if !proof.is_exact() {
            return None;
        }
        let own = play(facts, &script, Tuning::recorded(snapshot), (proof.order, capacity))?;
        let as_recorded = own.peak_reserved.bytes == timeline.peak_reserved.bytes
            && own.end_reserved == timeline.reserved_at_end
            && own.out_of_memory.map(|(event, _)| event) == replay.failure.map(|failure| failure.event);
        as_recorded.then_some(Reproduction { facts, script, order: proof.order, capacity, own })
    }

    fn play(&self, script: &Script, tuning: Tuning) -> Option<Forecast> {
        play(self.facts, script, tuning, (self.order, self.capacity))
    }
}

fn play(
    facts: &Facts,
    script: &Script,
    tuning: Tuning,
    (order, capacity): (FitOrder, Option<Bytes>),
) -> Option<Forecast> {
    let Facts { snapshot, timeline, replay, .. } = *facts;
    let scenario = Scenario { tuning, order, capacity };
    let forecast = scenario.play(RecordedTrace { snapshot, timeline, replay, script }, as_recorded);
    Some(forecast).filter(|forecast| !forecast.given_up)
}
