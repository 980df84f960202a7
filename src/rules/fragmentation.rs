//! Reserved memory far above what was ever in use.

use super::{declare_rule, growing_reallocation, measure, place, shown};
use crate::facts::{BestSetting, Facts, Guilty, PoolPeaks};
use crate::finding::{Finding, Impact, Measure, Related, Severity, Value};
use crate::unit::{Bytes, Confidence, count, percent};

declare_rule! {
    /// Reserved memory is far larger than what was ever in use, because free blocks do not fit.
    Fragmentation = "fragmentation", Allocator, Warning,
    needs: [History],
    summary: "reserved memory is far larger than what was ever in use",
}

/// The share of reserved memory from which holes count. Healthy recordings reach 20 % with small models only.
const SHARE: f64 = 0.2;
/// Below this the holes are the allocator's ordinary rounding of segments.
const NOTED: Bytes = Bytes(256 << 20);
/// From here on they are worth a change.
const WARNED: Bytes = Bytes::GIB;

impl Fragmentation {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let pool = facts.default_pool();
        let reserved = pool.reserved;
        // What was held before the recording may have been in use then: it is given the benefit of the doubt.
        let unused = reserved - pool.active.max(pool.held_before);
        let share = unused.share_of(reserved);
        if share < SHARE || unused < NOTED {
            return Vec::new();
        }
        let message = format!("{unused} of {reserved} reserved are holes ({})", percent(share));
        let best = facts.best_setting();
        let mut finding = Self::META.finding(facts, message, &help(facts, best));
        finding.severity = if unused >= WARNED { Severity::Warning } else { Severity::Info };
        finding.confidence = Confidence::High;
        finding.impact = Impact { peak: Some(unused), ..Impact::default() };
        let misses = misses(facts);
        let blamed = facts.blame().narrowest(&misses);
        finding.location = blamed.and_then(|frame| place(facts, frame));
        "these requests fit into none of the free blocks".clone_into(&mut finding.label);
        if let Some(one) = misses
            .iter()
            .find(|one| blamed.is_some_and(|frame| facts.code.python(one.stack).contains(&frame)))
        {
            finding.stack = shown(facts, one.stack);
        }
        finding.related = outgrown(facts);
        finding.evidence = evidence(facts, pool, unused);
        finding.evidence.extend(best.into_iter().flat_map(|best| replayed(facts, best)));
        vec![finding]
    }
}

/// The setting that the replay shows to help most; where it cannot tell, the one that helps most programs.
fn help(facts: &Facts, best: Option<&BestSetting>) -> String {
    const ALIKE: &str = "make the requests alike: pad to a few fixed lengths, or allocate a growing buffer once at its final size";
    const GROW: &str = "expandable_segments:True";
    let conf = match best {
        Some(best) => best.conf(),
        None if facts.snapshot.settings.expandable_segments => String::new(),
        None => GROW.to_owned(),
    };
    match conf.as_str() {
        "" => ALIKE.to_owned(),
        GROW => format!("let segments grow: PYTORCH_CUDA_ALLOC_CONF={GROW}"),
        other => format!("set PYTORCH_CUDA_ALLOC_CONF={other}, or {ALIKE}"),
    }
}

/// What the best setting comes to.
fn replayed(facts: &Facts, best: &BestSetting) -> [Measure; 2] {
    let saved = facts.timeline.peak_reserved.bytes - best.peak_reserved;
    let text = if best.set.is_empty() {
        format!("replayed under {}: none reserves less", count(best.tried, "other setting"))
    } else {
        format!("replayed with {}: {} reserved, {saved} less", best.conf(), best.peak_reserved)
    };
    [
        measure("best-setting", Value::Text(best.conf()), text),
        measure("best-setting-saves", Value::Bytes(saved), String::new()),
    ]
}

/// The buffers that leave holes because they are re-allocated ever larger.
fn outgrown(facts: &Facts) -> Vec<Related> {
    let one = |frame| {
        let message = "a cause: a buffer re-allocated ever larger (growing-reallocation)".to_owned();
        Some(Related { location: place(facts, frame)?, message })
    };
    growing_reallocation::sites(facts).filter_map(one).collect()
}

/// The requests that made the allocator ask the driver although enough lay free, weighed by what they cost.
fn misses(facts: &Facts) -> Vec<Guilty> {
    let one = |miss: &crate::replay::Miss| {
        let stack = facts.seen_stack(miss.event)?;
        Some(Guilty { stack, event: None, weight: miss.segment.min(miss.free).get() })
    };
    facts.replay.misses.iter().filter_map(one).collect()
}

fn evidence(facts: &Facts, pool: PoolPeaks, unused: Bytes) -> Vec<Measure> {
    let PoolPeaks { reserved, active, .. } = pool;
    let misses = facts.replay.misses.len();
    vec![
        measure("reserved-peak", Value::Bytes(reserved), format!("at most {reserved} reserved")),
        measure(
            "in-use-peak",
            Value::Bytes(active),
            format!("at most {active} in use, whole blocks counted"),
        ),
        measure("holes", Value::Bytes(unused), String::new()),
        measure("holes-share", Value::Ratio(unused.share_of(reserved)), String::new()),
        measure(
            "misses",
            Value::Count(misses as u64),
            format!("{} although enough lay free in smaller pieces", count(misses, "driver call")),
        ),
    ]
}
