//! Memory that goes back to the driver and is got again, over and over.

use super::claim::{Anchor, Besides, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, GuiltyStack, Release, ReleaseCause};
use crate::finding::{Finding, Quantity, Related, Seek, Severity};
use crate::frames::Owner;
use crate::threshold::Threshold;
use crate::unit::{Bytes, Confidence, EventIndex, Index, StackId, count, percent};

declare_rule! {
    /// The loop gives cached memory back to the driver and asks for it again.
    AllocatorThrash = "allocator-thrash", Allocator, Warning,
    needs: [History, Segments, Iterations],
    summary: "the loop gives memory back to the driver and asks for it again",
}

/// From so many releases in the loop on they are a habit. The end of an evaluation or of the whole run releases once.
static HABIT: Threshold<usize> = Threshold::new("rules::allocator_thrash::HABIT", 3);
impl AllocatorThrash {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let inside = |at: EventIndex| facts.iteration_of(at).is_some();
        // Of a program that died of it, `oom` tells: each request that fails empties the cache first, and so do those before it
        // that get their memory only then.
        let died = facts.failure().is_some_and(|failure| !facts.goes_on_after(failure.event));
        let is_meant = |cause: ReleaseCause| match cause {
            ReleaseCause::Capture => false,
            ReleaseCause::Retry(_) => !died,
            ReleaseCause::Call(_) | ReleaseCause::Unknown => true,
        };
        let turnover: Vec<Release> = facts
            .releases()
            .into_iter()
            .filter(|release| is_meant(release.cause))
            .filter(|release| inside(release.event) && release.requests.iter().any(|at| inside(*at)))
            .collect();
        if turnover.len() < HABIT.get() {
            return Vec::new();
        }
        let regained: Bytes = turnover.iter().map(|release| release.regained).sum();
        let each = Bytes(regained.get() / turnover.len() as u64);
        let cause = main_cause(&turnover);
        // The last release is not got back, and an evaluation every few iterations may well end with one.
        let often = turnover.len() * 2 >= facts.program.iterations.len();
        let told = move |worth: &Worth| tell(facts, &turnover, (each, cause), worth);
        let claim = Claim::new(&Self::META, [], Mending::default(), told).holding(each);
        let sure = if cause == ReleaseCause::Unknown { Confidence::Medium } else { Confidence::High };
        let meant = matches!(cause, ReleaseCause::Call(stack) if is_of_a_library(facts, stack));
        let most = if often && !meant { Severity::Error } else { Severity::Info };
        vec![claim.out_of(facts.timeline.peak_reserved.bytes).sure(sure).at_most(most)]
    }
}

/// Whether a package empties the cache of its own accord: no line of the user's does, and the package has no switch for it.
fn is_of_a_library(facts: &Facts, stack: StackId) -> bool {
    let mut callers = facts
        .frames
        .python(stack)
        .iter()
        .rev()
        .skip_while(|frame| matches!(facts.frames.owner(**frame), Owner::Torch | Owner::Python));
    let by_package = callers.next().is_some_and(|frame| facts.frames.owner(*frame).is_package());
    by_package && facts.frames.knob(facts.snapshot, stack, AllocatorThrash::META.name).is_none()
}

fn tell(facts: &Facts, turnover: &[Release], (each, cause): (Bytes, ReleaseCause), worth: &Worth) -> Finding {
    let help = match cause {
        ReleaseCause::Retry(_) => leave_room(facts),
        ReleaseCause::Call(_) | ReleaseCause::Capture | ReleaseCause::Unknown => {
            "take torch.cuda.empty_cache() out of the loop: the next iteration needs the same memory"
                .to_owned()
        }
    };
    let (place, label) = match cause {
        ReleaseCause::Call(stack) => (Anchor::of_stack(facts, Some(stack)), "the cache is emptied here"),
        ReleaseCause::Retry(_) | ReleaseCause::Capture | ReleaseCause::Unknown => (
            Anchor::of_guilty(facts, &requests(facts, turnover), false),
            "what was given back is asked of the driver again here",
        ),
    };
    let again = matches!(cause, ReleaseCause::Call(_)).then(|| got_again(facts, turnover, &place)).flatten();
    let share = percent(each.share_of(facts.timeline.peak_reserved.bytes));
    let (releases, iterations) = (turnover.len(), facts.program.iterations.len());
    let calls: usize = turnover.iter().map(|release| release.segments + release.requests.len()).sum();
    let telling = Telling {
        message: format!("{each} go back to the driver and are got again, {}", count(releases, "time")),
        help,
        label: label.to_owned(),
        related: again.into_iter().collect(),
        evidence: vec![
            measure(
                "turned-over",
                Quantity::Bytes(each),
                format!("{each} each time, {share} of what is reserved at most"),
            ),
            measure(
                "releases",
                Quantity::Count(releases as u64),
                format!("{} in {}", count(releases, "release"), count(iterations, "iteration")),
            ),
            measure(
                "driver-calls",
                Quantity::Count(calls as u64),
                format!("{} for it, each of which waits for the device", count(calls, "driver call")),
            ),
        ],
        place,
    };
    let (call, label) = ("empty_cache".into(), "the cache is emptied here".into());
    let seek = Seek { call, arguments: Vec::new(), label };
    telling
        .told(facts, &AllocatorThrash::META, worth)
        .seeking((cause == ReleaseCause::Unknown).then_some(seek))
}

/// What leaves room; a setting only where the replay shows that the program runs with it in what memory it had, and calls the
/// driver less.
fn leave_room(facts: &Facts) -> String {
    let room = "leave room on the device: a smaller batch";
    // The driver refused more than that, so that at least nothing beyond it is taken for granted.
    let trials = facts.trials_within(facts.timeline.peak_reserved.bytes);
    match trials.as_ref().and_then(|trials| trials.best(|forecast| forecast.driver_calls as u64)) {
        None => room.to_owned(),
        Some((best, _)) => format!("{room}, or PYTORCH_CUDA_ALLOC_CONF={}", best.conf()),
    }
}

/// The cause of most of the turnover; calls first where they are as many.
fn main_cause(turnover: &[Release]) -> ReleaseCause {
    let of = |wanted: fn(&ReleaseCause) -> bool| -> Bytes {
        turnover.iter().filter(|release| wanted(&release.cause)).map(|release| release.regained).sum()
    };
    let calls = of(|cause| matches!(cause, ReleaseCause::Call(_)));
    let retries = of(|cause| matches!(cause, ReleaseCause::Retry(_)));
    let unknown = of(|cause| matches!(cause, ReleaseCause::Unknown));
    let wanted = |cause: &ReleaseCause| match cause {
        ReleaseCause::Call(_) => calls >= retries && calls >= unknown,
        ReleaseCause::Retry(_) => retries > calls && retries >= unknown,
        ReleaseCause::Capture => false,
        ReleaseCause::Unknown => unknown > calls && unknown > retries,
    };
    turnover.iter().map(|release| release.cause).find(wanted).unwrap_or(ReleaseCause::Unknown)
}

/// What asked the driver again, weighed by what it got.
fn requests(facts: &Facts, turnover: &[Release]) -> Vec<GuiltyStack> {
    let one = |at: &EventIndex| {
        let size = facts.trace.events.get(at.position())?.size;
        Some(GuiltyStack { stack: facts.seen_stack(*at)?, event: None, weight: size.get() })
    };
    turnover.iter().flat_map(|release| &release.requests).filter_map(one).collect()
}

fn got_again(facts: &Facts, turnover: &[Release], place: &Anchor) -> Option<Related> {
    let blamed = facts.blame().narrowest(&requests(facts, turnover));
    related(facts, blamed, place, "most of it is asked of the driver again here")
}
