//! What a recorded program would have needed under other settings.

use super::allocator::FitOrder;
use super::imagined::Imagined;
use super::player::{OperationOutcome, Player, RecordedTrace, Sought};
use super::script::Operation;
use super::tuning::Tuning;
use crate::timeline::Peak;
use crate::unit::{Bytes, EventIndex, Index};

/// What is imagined.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The allocator's settings.
    pub tuning: Tuning,
    /// The order of free blocks.
    pub order: FitOrder,
    /// How much memory there is; `None` is no end of it.
    pub capacity: Option<Bytes>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// The most that was held from the driver.
    pub peak_reserved: Peak,
    /// The most that was handed out, in whole blocks.
    pub peak_allocated: Peak,
    /// The most that was handed out or waited for other streams.
    pub peak_active: Peak,
    /// The most that was asked for at a time.
    pub peak_requested: Peak,
    /// What is held at the end.
    pub end_reserved: Bytes,
    /// What of it lies free.
    pub end_free: Bytes,
    /// What would still be held if `empty_cache` were called then.
    pub end_pinned: Bytes,
    /// How often the driver was called, to get memory or to give it back.
    pub driver_calls: usize,
    /// The first request that got no memory, and how much it wanted.
    pub out_of_memory: Option<(EventIndex, Bytes)>,
    /// The last request that failed in the recording and got no memory here either.
    pub refused_again: Option<EventIndex>,
    /// Whether the replay ended at a request that got memory in the recording, so that nothing is known of what follows.
    pub cut_short: bool,
    /// Whether the replay was given up: then nothing of this holds.
    pub given_up: bool,
}

impl Scenario {
    /// Plays a recording; `bytes` says how large each request is to be. After a request that was recorded and gets no memory,
    /// nothing is known of the program, and the replay ends.
    pub fn play(&self, recorded: RecordedTrace, bytes: impl Fn(Sought<'_>) -> Bytes) -> Forecast {
        let driver = Imagined::new(self.capacity, &self.tuning, &recorded.script.habits);
        let mut player = Player::new(recorded, self.tuning.clone(), self.order, driver);
        let (mut out_of_memory, mut refused_again, mut cut_short) = (None, None, false);
        for (at, step) in &recorded.script.steps {
            player.allocator.driver.position = at.position();
            if let OperationOutcome::Failed(wanted) = player.step(*at, *step, &bytes) {
                out_of_memory = out_of_memory.or(Some((*at, wanted)));
                if *step != Operation::Refused {
                    cut_short = true;
                    break;
                }
                refused_again = Some(*at);
            }
        }
        let levels = player.allocator.levels();
        player.allocator.release_cached();
        Forecast {
            peak_reserved: levels.peak_held,
            peak_allocated: levels.peak_allocated,
            peak_active: levels.peak_active,
            peak_requested: player.requested.peak,
            end_reserved: levels.held,
            end_free: levels.held - levels.active,
            end_pinned: player.allocator.levels().held,
            driver_calls: levels.driver_calls,
            out_of_memory,
            refused_again,
            cut_short,
            given_up: player.allocator.is_exhausted(),
        }
    }
}
