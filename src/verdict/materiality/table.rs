//! The one table of materiality: from which worth on a claim is a note, a warning, an error.
//!
//! Every number that turns a claim into a level stands here, with the reason for it; the configuration may replace any
//! (`[materiality.RULE]`), `memlint config` shows them, and `memlint explain RULE` quotes the rule's row.

use crate::finding::Severity;
use crate::rules::Worth;
use crate::unit::{Bytes, percent};

/// What a claim has to be worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Nothing: that it is so is enough.
    Always,
    /// Off the peak of requested bytes: at least this share of it, and as many bytes.
    Peak(f64, Bytes),
    /// Standing where it need not: at least this share of the peak, and as many bytes.
    Held(f64, Bytes),
    /// Off what is held from the driver: at least this share of its peak, and as many bytes.
    Reserved(f64, Bytes),
    /// The device is full within so many turns.
    Full(u64),
}

/// The scale on which shares are taken.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// What held bytes are a share of.
    pub held: Bytes,
    /// What reserved bytes are a share of.
    pub reserved: Bytes,
}

impl Bound {
    /// Whether a worth reaches it.
    pub fn is_met(&self, worth: &Worth, scale: &Scale) -> bool {
        let reaches = |bytes: Option<Bytes>, whole: Bytes, share: f64, least: Bytes| {
            bytes.is_some_and(|bytes| bytes >= least && bytes > Bytes::ZERO && bytes.share_of(whole) >= share)
        };
        match *self {
            Bound::Always => true,
            Bound::Peak(share, least) => {
                worth.share >= share && worth.share > 0.0 && worth.peak.is_some_and(|saved| saved >= least)
            }
            Bound::Held(share, least) => reaches(worth.held, scale.held, share, least),
            Bound::Reserved(share, least) => reaches(worth.reserved, scale.reserved, share, least),
            Bound::Full(turns) => worth.turns_left.is_some_and(|left| left <= turns),
        }
    }

    /// In words: `5 % of the peak saved`.
    pub fn words(&self) -> String {
        let both = |share: f64, bytes: Bytes, of: &str| match (share > 0.0, bytes > Bytes::ZERO) {
            (true, true) => format!("{} and {bytes} {of}", percent(share)),
            (true, false) => format!("{} {of}", percent(share)),
            (false, true) => format!("{bytes} {of}"),
            (false, false) => format!("any bytes {of}"),
        };
        match *self {
            Bound::Always => "always".to_owned(),
            Bound::Peak(share, bytes) => both(share, bytes, "of the peak saved"),
            Bound::Held(share, bytes) => both(share, bytes, "of the peak held"),
            Bound::Reserved(share, bytes) => both(share, bytes, "of reserved memory saved"),
            Bound::Full(turns) => format!("the device full within {turns} iterations"),
        }
    }
}

/// The bounds of one rule: any of a list is enough.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The rule's name.
    pub rule: &'static str,
    /// For a note.
    pub note: &'static [Bound],
    /// For a warning.
    pub warning: &'static [Bound],
    /// For an error.
    pub error: &'static [Bound],
    /// Why these.
    pub why: &'static str,
}

const MIB: Bytes = Bytes::MIB;
const NONE: Bytes = Bytes::ZERO;

/// How soon a device is full that concerns somebody: a long training has 10^5 steps; a service answers 10^7 requests in weeks;
/// beyond ten times that nobody waits for it.
const TRAINING: Bound = Bound::Full(100_000);
const SERVICE: Bound = Bound::Full(10_000_000);
const EVER: Bound = Bound::Full(100_000_000);

/// The table, in the order of precedence: of two claims about the same allocations the one that stands first is the cause. A
/// cycle holds graphs until the collector comes; a graph that is kept keeps whatever grows with it, and is worse than one
/// that is recorded for nothing; state and gradients that pile up are no list of the program's; what piles up is no second
/// copy; what is kept for nothing overlaps, too; and any of these may make a moment's peak.
pub static TABLE: &[Row] = &[
    Row {
        rule: "oom",
        note: &[],
        warning: &[],
        error: &[Bound::Always],
        why: "the program stopped, or had to try again",
    },
    Row {
        rule: "delayed-free-cycle",
        note: &[Bound::Held(0.01, MIB)],
        warning: &[Bound::Peak(0.05, NONE)],
        error: &[],
        why: "below a twentieth of the peak nobody looks for a cycle",
    },
    Row {
        rule: "retained-graph",
        note: &[EVER, Bound::Peak(0.01, MIB)],
        warning: &[SERVICE, Bound::Peak(0.02, MIB)],
        error: &[TRAINING, Bound::Peak(0.1, NONE)],
        why: "a graph that is kept is meant by nobody, so little is enough; where it is kept for good, time tells; with \
              a tenth of the peak one longer loop fills the device",
    },
    Row {
        rule: "activations-without-backward",
        note: &[Bound::Held(0.1, NONE)],
        warning: &[Bound::Peak(0.02, NONE)],
        error: &[],
        why: "one word mends it, so little is enough",
    },
    Row {
        rule: "optimizer-state-regrowth",
        note: &[Bound::Held(0.01, NONE)],
        warning: &[Bound::Held(0.01, NONE)],
        error: &[Bound::Held(0.01, NONE)],
        why: "state that is made anew loses its moments, whatever it weighs; a hundredth of the peak tells it from scalars",
    },
    Row {
        rule: "missing-zero-grad",
        note: &[],
        warning: &[],
        error: &[Bound::Held(0.0, NONE)],
        why: "gradients that are summed over all iterations are wrong, whatever they weigh",
    },
    Row {
        rule: "growing-reallocation",
        note: &[Bound::Held(0.01, MIB)],
        warning: &[Bound::Peak(0.05, NONE), Bound::Reserved(0.2, Bytes(256 << 20))],
        error: &[],
        why: "the copies cost while both are there, or the holes that they leave",
    },
    Row {
        rule: "growing-residency",
        note: &[EVER, Bound::Peak(0.05, NONE)],
        warning: &[SERVICE, Bound::Held(0.05, NONE), Bound::Peak(0.25, NONE)],
        error: &[TRAINING],
        why: "what grows is measured in time; what a loop collects and holds on to by what it weighs, and what it lets go of in time is a peak like any large temporary",
    },
    Row {
        rule: "duplicate-weights",
        note: &[Bound::Held(0.0, NONE)],
        warning: &[Bound::Peak(0.05, NONE)],
        error: &[],
        why: "a copy that saves a twentieth of the peak is worth a line",
    },
    Row {
        rule: "late-zero-grad",
        note: &[],
        warning: &[Bound::Peak(0.05, NONE)],
        error: &[],
        why: "moving a line is worth a twentieth of the peak; a healthy framework loses 4 % this way",
    },
    Row {
        rule: "overlapping-iterations",
        note: &[],
        warning: &[Bound::Peak(0.1, NONE)],
        error: &[],
        why: "of every program a little overlaps: a tenth of the peak is worth a line",
    },
    Row {
        rule: "cross-stream-pending",
        note: &[Bound::Held(0.1, Bytes(64 << 20))],
        warning: &[Bound::Peak(0.1, Bytes(256 << 20))],
        error: &[],
        why: "some bytes always wait; a tenth of the peak is worth a line",
    },
    Row {
        rule: "transient-spike",
        note: &[Bound::Peak(0.2, NONE)],
        warning: &[Bound::Peak(0.5, NONE)],
        error: &[],
        why: "the next tensor takes its place: logits in float32 and sorts of whole matrices save 55 to 95 %, what an expert leaves alone mostly less than 10 %",
    },
    Row {
        rule: "optimizer-step-peak",
        note: &[Bound::Peak(0.1, NONE)],
        warning: &[Bound::Peak(0.1, Bytes(256 << 20))],
        error: &[],
        why: "a slower step is traded for memory only where there is some to gain",
    },
    Row {
        rule: "pinned-segment",
        note: &[Bound::Reserved(0.0, Bytes(256 << 20))],
        warning: &[Bound::Reserved(0.1, Bytes(512 << 20))],
        error: &[],
        why: "as fragmentation, but for one line",
    },
    Row {
        rule: "fragmentation",
        note: &[Bound::Reserved(0.2, Bytes(256 << 20))],
        warning: &[Bound::Reserved(0.2, Bytes(1 << 30))],
        error: &[],
        why: "healthy recordings of small models reach a fifth; rounding of segments makes some 256 MiB",
    },
    Row {
        rule: "varying-shapes",
        note: &[Bound::Always],
        warning: &[Bound::Reserved(0.15, Bytes(256 << 20))],
        error: &[],
        why: "sizes that vary cost nothing where the holes fit: 22 to 60 % lie idle where nothing is done, 2 % with segments that grow",
    },
    Row {
        rule: "allocator-thrash",
        note: &[Bound::Held(0.1, NONE)],
        warning: &[Bound::Held(0.1, NONE)],
        error: &[],
        why: "a tenth of what is reserved each time: what is less is done soon",
    },
    Row {
        rule: "private-pool-waste",
        note: &[Bound::Reserved(0.25, Bytes(64 << 20))],
        warning: &[Bound::Reserved(0.25, Bytes(256 << 20))],
        error: &[],
        why: "sharing a pool has rules of its own: a quarter has to be gained",
    },
    Row {
        rule: "skipped-optimizer-step",
        note: &[Bound::Always],
        warning: &[Bound::Always],
        error: &[],
        why: "a step that is skipped is no matter of bytes",
    },
    Row {
        rule: "lazy-optimizer-init",
        note: &[Bound::Held(0.005, NONE)],
        warning: &[],
        error: &[],
        why: "it is no fault; below half a percent it is no news",
    },
    Row {
        rule: "truncated-history",
        note: &[],
        warning: &[Bound::Always],
        error: &[],
        why: "what was lost cannot be judged",
    },
    Row { rule: "no-stacks", note: &[], warning: &[Bound::Always], error: &[], why: "no line can be named" },
    Row {
        rule: "no-iterations",
        note: &[Bound::Always],
        warning: &[],
        error: &[],
        why: "what is compared between iterations cannot be judged",
    },
    Row {
        rule: "uncheckpointed-activations",
        note: &[Bound::Peak(0.2, NONE)],
        warning: &[],
        error: &[],
        why: "recomputing costs a forward pass",
    },
    Row {
        rule: "large-optimizer-state",
        note: &[Bound::Peak(0.05, NONE)],
        warning: &[],
        error: &[],
        why: "advice is given where it is worth a line",
    },
    Row {
        rule: "unchunked-loss",
        note: &[Bound::Peak(0.1, NONE)],
        warning: &[],
        error: &[],
        why: "advice is given where it is worth a line",
    },
    Row {
        rule: "full-precision-activations",
        note: &[Bound::Peak(0.05, NONE)],
        warning: &[],
        error: &[],
        why: "advice is given where it is worth a line",
    },
];

/// The row of a rule, and its place in the order of precedence.
pub fn row(rule: &str) -> Option<(usize, &'static Row)> {
    TABLE.iter().enumerate().find(|(_, row)| row.rule == rule)
}

/// The highest level that a worth reaches in a row; `None` where it is not even a note.
pub(super) fn level(row: &Row, worth: &Worth, scale: &Scale) -> Option<Severity> {
    let met = |bounds: &[Bound]| bounds.iter().any(|bound| bound.is_met(worth, scale));
    [(row.error, Severity::Error), (row.warning, Severity::Warning), (row.note, Severity::Info)]
        .into_iter()
        .find(|(bounds, _)| met(bounds))
        .map(|(_, severity)| severity)
}
