//! What rules say of settings that were tried on the replayed allocator. Always: a setting is recommended only where the replay
//! shows that it helps.

use super::measure;
use crate::facts::{Trial, Trials};
use crate::finding::{Measure, Quantity};
use crate::unit::{Bytes, count};

/// PyTorch's own advice.
pub(super) const GROWING: &str = "expandable_segments:True";

/// What the setting comes to that lowers the reserved peak most, or that none does.
pub(super) fn tried(trials: &Trials) -> [Measure; 2] {
    let best = trials.least_reserved();
    let text = match best {
        None => none_helps(trials),
        Some((best, saved)) => {
            let peak = best.forecast.peak_reserved.bytes;
            format!("replayed with {}: {peak} reserved, {saved} less", best.conf())
        }
    };
    outcome(best, text)
}

/// The setting that sets most free for release at the end, and how many bytes; what it adds to the peak counts against it.
pub(super) fn least_pinned(trials: &Trials) -> Option<(&Trial, Bytes)> {
    let (best, _) = trials.best(|forecast| (forecast.end_pinned + forecast.peak_reserved.bytes).get())?;
    let saved = trials.own().end_pinned - best.forecast.end_pinned;
    (saved > Bytes::ZERO).then_some((best, saved))
}

/// What that setting comes to, or that none helps.
pub(super) fn tried_against_pins(trials: &Trials) -> [Measure; 2] {
    let best = least_pinned(trials);
    let text = match best {
        None => {
            let tried = count(trials.count(), "other setting");
            format!("replayed under {tried}: none of them lets more be released")
        }
        Some((best, saved)) => {
            let stays = best.forecast.end_pinned;
            format!("replayed with {}: {stays} could not be released at the end, {saved} less", best.conf())
        }
    };
    outcome(best, text)
}

fn none_helps(trials: &Trials) -> String {
    format!("replayed under {}: none reserves less", count(trials.count(), "other setting"))
}

fn outcome(best: Option<(&Trial, Bytes)>, text: String) -> [Measure; 2] {
    let (conf, saved) = best.map_or((String::new(), Bytes::ZERO), |(best, saved)| (best.conf(), saved));
    [
        measure("best-setting", Quantity::Text(conf), text),
        measure("best-setting-saves", Quantity::Bytes(saved), String::new()),
    ]
}
