//! The table as memlint brings it: every number that turns a claim into a level, with the reason for it.

use super::{Bound, RuleBounds};
use crate::unit::Bytes;

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
pub(super) static TABLE: &[RuleBounds<'static>] = &[
    RuleBounds {
        rule: "oom",
        note: &[],
        warning: &[Bound::Always],
        error: &[Bound::Always],
        why: "the program stopped; where it caught the exception and went on, a warning at most",
    },
    RuleBounds {
        rule: "delayed-free-cycle",
        note: &[Bound::Held(0.01, MIB)],
        warning: &[Bound::Peak(0.05, NONE)],
        error: &[],
        why: "below a twentieth of the peak nobody looks for a cycle",
    },
    RuleBounds {
        rule: "retained-graph",
        note: &[EVER, Bound::Peak(0.01, MIB)],
        warning: &[SERVICE, Bound::Peak(0.02, MIB)],
        error: &[TRAINING, Bound::Peak(0.1, NONE)],
        why: "a graph that is kept is meant by nobody, so little is enough; where it is kept for good, time tells; with \
              a tenth of the peak one longer loop fills the device",
    },
    RuleBounds {
        rule: "activations-without-backward",
        note: &[Bound::Held(0.1, NONE)],
        warning: &[Bound::Peak(0.02, NONE)],
        error: &[],
        why: "one word mends it, so little is enough",
    },
    RuleBounds {
        rule: "optimizer-state-regrowth",
        note: &[Bound::Held(0.01, NONE)],
        warning: &[Bound::Held(0.01, NONE)],
        error: &[Bound::Held(0.01, NONE)],
        why: "state that is made anew loses its moments, whatever it weighs; a hundredth of the peak tells it from scalars",
    },
    RuleBounds {
        rule: "missing-zero-grad",
        note: &[Bound::Peak(0.0, NONE)],
        warning: &[Bound::Peak(0.01, NONE)],
        error: &[Bound::Held(0.0, NONE)],
        why: "what a step uses and is summed over all iterations is wrong, whatever it weighs; what no step uses counts by what \
              it takes off the peak, and below a hundredth is no news",
    },
    RuleBounds {
        rule: "growing-reallocation",
        note: &[Bound::Held(0.01, MIB)],
        warning: &[Bound::Peak(0.05, NONE), Bound::Reserved(0.2, Bytes(256 << 20))],
        error: &[],
        why: "the copies cost while both are there, or the holes that they leave",
    },
    RuleBounds {
        rule: "growing-residency",
        note: &[EVER, Bound::Peak(0.05, NONE)],
        warning: &[SERVICE, Bound::Held(0.05, NONE), Bound::Peak(0.25, NONE)],
        error: &[TRAINING],
        why: "what grows is measured in time; what a loop collects and holds on to by what it weighs, and what it lets go of in time is a peak like any large temporary",
    },
    RuleBounds {
        rule: "duplicate-weights",
        note: &[Bound::Held(0.01, NONE)],
        warning: &[Bound::Peak(0.05, NONE)],
        error: &[],
        why: "a copy that saves a twentieth of the peak is worth a line; one below a hundredth is no news",
    },
    RuleBounds {
        rule: "late-zero-grad",
        note: &[],
        warning: &[Bound::Peak(0.05, NONE)],
        error: &[],
        why: "moving a line is worth a twentieth of the peak; a healthy framework loses 4 % this way",
    },
    RuleBounds {
        rule: "overlapping-iterations",
        note: &[],
        warning: &[Bound::Peak(0.1, NONE)],
        error: &[],
        why: "of every program a little overlaps: a tenth of the peak is worth a line",
    },
    RuleBounds {
        rule: "cross-stream-pending",
        note: &[Bound::Held(0.1, Bytes(64 << 20))],
        warning: &[Bound::Peak(0.1, Bytes(256 << 20))],
        error: &[],
        why: "some bytes always wait; a tenth of the peak is worth a line",
    },
    RuleBounds {
        rule: "transient-spike",
        note: &[Bound::Peak(0.2, NONE)],
        warning: &[Bound::Peak(0.35, NONE)],
        error: &[],
        why: "the next tensor takes its place: what experts call a fault saves 38 to 98 % (logits in float32, sorts of whole matrices, columns of a convolution), what they leave alone at most 33 %",
    },
    RuleBounds {
        rule: "optimizer-step-peak",
        note: &[Bound::Peak(0.1, NONE)],
        warning: &[Bound::Peak(0.1, Bytes(256 << 20))],
        error: &[],
        why: "a slower step is traded for memory only where there is some to gain",
    },
    RuleBounds {
        rule: "pinned-segment",
        note: &[Bound::Reserved(0.0, Bytes(256 << 20))],
        warning: &[Bound::Reserved(0.1, Bytes(512 << 20))],
        error: &[],
        why: "as fragmentation, but for one line",
    },
    RuleBounds {
        rule: "fragmentation",
        note: &[Bound::Reserved(0.2, Bytes(256 << 20))],
        warning: &[Bound::Reserved(0.2, Bytes(1 << 30))],
        error: &[],
        why: "healthy recordings of small models reach a fifth; rounding of segments makes some 256 MiB",
    },
    RuleBounds {
        rule: "varying-shapes",
        note: &[Bound::Always],
        warning: &[Bound::Reserved(0.15, Bytes(256 << 20))],
        error: &[],
        why: "sizes that vary cost nothing where the holes fit: 22 to 60 % lie idle where nothing is done, 2 % with segments that grow",
    },
    RuleBounds {
        rule: "allocator-thrash",
        note: &[Bound::Held(0.1, NONE)],
        warning: &[Bound::Held(0.1, NONE)],
        error: &[],
        why: "a tenth of what is reserved each time: what is less is done soon",
    },
    RuleBounds {
        rule: "private-pool-waste",
        note: &[Bound::Reserved(0.25, Bytes(64 << 20))],
        warning: &[Bound::Reserved(0.25, Bytes(256 << 20))],
        error: &[],
        why: "sharing a pool has rules of its own: a quarter has to be gained",
    },
    RuleBounds {
        rule: "skipped-optimizer-step",
        note: &[Bound::Always],
        warning: &[Bound::Always],
        error: &[],
        why: "a step that is skipped is no matter of bytes",
    },
    RuleBounds {
        rule: "lazy-optimizer-init",
        note: &[Bound::Held(0.005, NONE)],
        warning: &[],
        error: &[],
        why: "it is no fault; below half a percent it is no news",
    },
    RuleBounds {
        rule: "truncated-history",
        note: &[],
        warning: &[Bound::Always],
        error: &[],
        why: "what was lost cannot be judged",
    },
    RuleBounds {
        rule: "no-stacks",
        note: &[],
        warning: &[Bound::Always],
        error: &[],
        why: "no line can be named",
    },
    RuleBounds {
        rule: "no-iterations",
        note: &[Bound::Always],
        warning: &[],
        error: &[],
        why: "what is compared between iterations cannot be judged",
    },
    RuleBounds {
        rule: "uncheckpointed-activations",
        note: &[Bound::Peak(0.2, NONE)],
        warning: &[],
        error: &[],
        why: "recomputing costs a forward pass",
    },
    RuleBounds {
        rule: "large-optimizer-state",
        note: &[Bound::Peak(0.05, NONE)],
        warning: &[],
        error: &[],
        why: "advice is given where it is worth a line",
    },
    RuleBounds {
        rule: "unchunked-loss",
        note: &[Bound::Peak(0.1, NONE)],
        warning: &[],
        error: &[],
        why: "advice is given where it is worth a line",
    },
    RuleBounds {
        rule: "full-precision-activations",
        note: &[Bound::Peak(0.05, NONE)],
        warning: &[],
        error: &[],
        why: "advice is given where it is worth a line",
    },
];
