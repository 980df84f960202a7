//! Memory that goes back to the driver and is got again, over and over.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Cause, Facts, Guilty, Release};
use crate::finding::{Finding, Related, Seek, Severity, Value};
use crate::unit::{Bytes, Confidence, EventIndex, Index, StackId, count, percent};

declare_rule! {
    /// The loop gives cached memory back to the driver and asks for it again.
    AllocatorThrash = "allocator-thrash", Allocator, Warning,
    needs: [History, Segments, Iterations],
    summary: "the loop gives memory back to the driver and asks for it again",
}

/// From so many releases in the loop on they are a habit. The end of an evaluation or of the whole run releases once.
const HABIT: usize = 3;
/// The share of the reserved memory that such a release has to turn over. The recordings with `empty_cache()` in their
/// loop turn over nine tenths and more; what is less is done soon.
const SHARE: f64 = 0.1;

impl AllocatorThrash {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let inside = |at: EventIndex| facts.iteration_of(at).is_some();
        let turnover: Vec<Release> = facts
            .releases()
            .into_iter()
            .filter(|release| inside(release.event) && release.requests.iter().any(|at| inside(*at)))
            .collect();
        let regained: Bytes = turnover.iter().map(|release| release.regained).sum();
        let releases = turnover.len() as u64;
        let each = Bytes(regained.get().checked_div(releases).unwrap_or(0));
        let share = each.share_of(facts.timeline.peak_reserved.bytes);
        if turnover.len() < HABIT || share < SHARE {
            return Vec::new();
        }
        vec![report(facts, &turnover, each, share)]
    }
}

fn report(facts: &Facts, turnover: &[Release], each: Bytes, share: f64) -> Finding {
    let iterations = facts.program.iterations.len();
    let message =
        format!("{each} go back to the driver and are got again, {}", count(turnover.len(), "time"));
    let cause = main_cause(turnover);
    let help = match cause {
        Cause::Retry(_) => {
            "leave room on the device: a smaller batch, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        }
        Cause::Call(_) | Cause::Unknown => {
            "take torch.cuda.empty_cache() out of the loop: the next iteration needs the same memory"
        }
    };
    let mut finding = AllocatorThrash::META.finding(facts, message, help);
    // The last release is not got back, and an evaluation every few iterations may well end with one.
    if turnover.len() * 2 < iterations {
        finding.severity = Severity::Info;
    }
    finding.confidence = if cause == Cause::Unknown { Confidence::Medium } else { Confidence::High };
    let stack = match cause {
        Cause::Call(stack) => {
            "the cache is emptied here".clone_into(&mut finding.label);
            finding.location = facts.site(stack).and_then(|frame| place(facts, frame));
            Some(stack)
        }
        Cause::Retry(_) | Cause::Unknown => {
            "what was given back is asked of the driver again here".clone_into(&mut finding.label);
            blame_requests(facts, turnover, &mut finding)
        }
    };
    if cause == Cause::Unknown {
        finding.seek = Some(Seek { call: "empty_cache", label: "the cache is emptied here" });
    }
    finding.stack = stack.map(|stack| shown(facts, stack)).unwrap_or_default();
    if matches!(cause, Cause::Call(_)) {
        finding.related.extend(got_again(facts, turnover));
    }
    let calls: usize = turnover.iter().map(|release| release.segments + release.requests.len()).sum();
    finding.evidence = vec![
        measure(
            "turned-over",
            Value::Bytes(each),
            format!("{each} each time, {} of what is reserved at most", percent(share)),
        ),
        measure(
            "releases",
            Value::Count(turnover.len() as u64),
            format!("{} in {}", count(turnover.len(), "release"), count(iterations, "iteration")),
        ),
        measure(
            "driver-calls",
            Value::Count(calls as u64),
            format!("{} for it, each of which waits for the device", count(calls, "driver call")),
        ),
    ];
    finding
}

/// The cause of most of the turnover; calls first where they are as many.
fn main_cause(turnover: &[Release]) -> Cause {
    let of = |wanted: fn(&Cause) -> bool| -> Bytes {
        turnover.iter().filter(|release| wanted(&release.cause)).map(|release| release.regained).sum()
    };
    let calls = of(|cause| matches!(cause, Cause::Call(_)));
    let retries = of(|cause| matches!(cause, Cause::Retry(_)));
    let unknown = of(|cause| matches!(cause, Cause::Unknown));
    let wanted = |cause: &Cause| match cause {
        Cause::Call(_) => calls >= retries && calls >= unknown,
        Cause::Retry(_) => retries > calls && retries >= unknown,
        Cause::Unknown => unknown > calls && unknown > retries,
    };
    turnover.iter().map(|release| release.cause).find(wanted).unwrap_or(Cause::Unknown)
}

/// What asked the driver again, weighed by what it got.
fn requests(facts: &Facts, turnover: &[Release]) -> Vec<Guilty> {
    let one = |at: &EventIndex| {
        let size = facts.trace.events.get(at.position())?.size;
        Some(Guilty { stack: facts.seen_stack(*at)?, event: None, weight: size.get() })
    };
    turnover.iter().flat_map(|release| &release.requests).filter_map(one).collect()
}

/// Points a finding at the line that asks again.
fn blame_requests(facts: &Facts, turnover: &[Release], finding: &mut Finding) -> Option<StackId> {
    let guilty = requests(facts, turnover);
    let blamed = facts.blame().narrowest(&guilty).or_else(|| facts.site(guilty.first()?.stack))?;
    finding.location = place(facts, blamed);
    guilty.iter().map(|one| one.stack).find(|stack| facts.code.python(*stack).contains(&blamed))
}

fn got_again(facts: &Facts, turnover: &[Release]) -> Option<Related> {
    let blamed = facts.blame().narrowest(&requests(facts, turnover))?;
    let message = "most of it is asked of the driver again here".to_owned();
    Some(Related { location: place(facts, blamed)?, message })
}
