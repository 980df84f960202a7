//! Requests that failed.

mod remedy;

use std::collections::BTreeMap;

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, Failure, Trial};
use crate::finding::{Finding, Impact, Location, Measure, Quantity, Related, Severity, ShareMade, Stood};
use crate::program::Phase;
use crate::role::Role;
use crate::snapshot::{Action, Event};
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, Index, StackId, count, told_apart};

declare_rule! {
    /// A request for memory failed.
    OutOfMemory = "oom", Allocator, Error,
    needs: [Failures],
    summary: "a request for memory failed",
}

/// How many roles the evidence names.
const ROLES_NAMED: usize = 3;
/// How many are listed with their lines (chosen: a table that somebody reads).
const ROLES_LISTED: usize = 6;

/// The share of the reserved memory that has to lie free for its pieces to be the cause. Below it the next requests would
/// have failed all the same: on a recording of the corpus 1.8 of 10.2 GiB were in pieces, elsewhere 20 MiB of 3.3 GiB.
static IN_PIECES: Threshold<f64> = Threshold::new("rules::out_of_memory::IN_PIECES", 0.05);

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shortage {
    /// The process could not have had so much if nothing else had been in use.
    TooLarge,
    /// Less was free than wanted.
    Capacity,
    /// Enough was free, but in pieces that are too small.
    Pieces,
    /// A piece was large enough, but belongs to another stream or pool.
    Elsewhere,
}

impl Shortage {
    fn of(facts: &Facts, failure: &Failure) -> Shortage {
        if failure.wanted > in_all(facts, failure) {
            Shortage::TooLarge
        } else if failure.largest >= failure.wanted {
            Shortage::Elsewhere
        } else if failure.free >= failure.wanted && failure.free.share_of(failure.reserved) >= IN_PIECES.get()
        {
            Shortage::Pieces
        } else {
            Shortage::Capacity
        }
    }

    fn name(self) -> &'static str {
        match self {
            Shortage::TooLarge => "larger-than-all",
            Shortage::Capacity => "capacity",
            Shortage::Pieces => "fragmentation",
            Shortage::Elsewhere => "other-stream-or-pool",
        }
    }
}

/// The bytes of a role that stood at the moment of the failure, largest first.
type RoleBytes = Vec<(Role, Bytes, Vec<AllocationId>)>;

/// The rule's name: a recording that ends so shows no more than led there.
pub const OUT_OF_MEMORY: &str = OutOfMemory::META.name;

impl OutOfMemory {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let Some(failure) = facts.failure() else { return Vec::new() };
        // A program that goes on has caught the exception; it may have been looking for its batch size.
        let goes_on = facts.goes_on_after(failure.event);
        let most = if goes_on { Severity::Warning } else { Severity::Error };
        let told = move |worth: &Worth| tell(facts, &failure, worth);
        let claim = Claim::new(&Self::META, [], Mending::default(), told);
        vec![claim.sure(Confidence::High).at_most(most)]
    }
}

fn tell(facts: &Facts, failure: &Failure, worth: &Worth) -> Finding {
    let cause = Shortage::of(facts, failure);
    let phase = phase(facts, failure);
    let standing = standing(facts, failure);
    let place = place(facts, failure);
    let fitting = facts.trials().and_then(|trials| trials.fitting(failure.event));
    let mut related = heaviest(facts, &standing);
    related.extend(between(facts, failure, cause, &place));
    let telling = Telling {
        message: message(facts, failure, cause),
        help: remedy::remedy(facts, failure, (cause, phase), &standing, fitting),
        label: label(facts, failure, phase),
        related,
        evidence: evidence(facts, failure, cause, &standing)
            .into_iter()
            .chain(tried(facts, failure, fitting))
            .collect(),
        place,
    };
    // What else stood there is bounded by the device; what was wanted is not.
    let impact = Impact { at_once: Some(failure.wanted), ..Impact::default() };
    Finding { phase, impact, ..telling.told(facts, &OutOfMemory::META, worth) }
}

fn message(facts: &Facts, failure: &Failure, cause: Shortage) -> String {
    let Failure { wanted, in_use, free, largest, .. } = *failure;
    match cause {
        Shortage::TooLarge => {
            let [wanted, all] = told_apart([wanted, in_all(facts, failure)]);
            format!("out of memory: {wanted} wanted, more than the {all} to be had in all")
        }
        Shortage::Capacity if free < wanted => {
            let limit =
                if met_own_limit(facts, failure) { "the process's own limit" } else { "the device is full" };
            format!("out of memory: {wanted} wanted, {in_use} in use, {limit}")
        }
        Shortage::Capacity | Shortage::Pieces => {
            let [wanted, free, largest] = told_apart([wanted, free, largest]);
            format!("out of memory: {wanted} wanted, {free} free in pieces up to {largest}")
        }
        Shortage::Elsewhere => format!("out of memory: {wanted} wanted, {largest} free for another stream"),
    }
}

/// What was free on the device: the event of a failure holds it where others hold an address.
fn left(facts: &Facts, failure: &Failure) -> Bytes {
    facts.trace.event(failure.event).map_or(Bytes::ZERO, |event| Bytes(event.address))
}

/// All that the process could have had then: what it held, and what was left on the device. What other processes had it could not.
fn in_all(facts: &Facts, failure: &Failure) -> Bytes {
    failure.reserved + left(facts, failure)
}

/// Whether the device had the memory: then it was a limit of the process that kept it back (`set_per_process_memory_fraction`).
fn met_own_limit(facts: &Facts, failure: &Failure) -> bool {
    left(facts, failure) >= failure.wanted
}

/// Whether another setting would have got the memory, and if none, why; nothing where the replay cannot tell.
fn tried(facts: &Facts, failure: &Failure, fitting: Option<&Trial>) -> Option<Measure> {
    let (trials, capacity) = (facts.trials()?, facts.replay.failure?.capacity);
    let needed = failure.in_use + failure.wanted;
    let text = match fitting {
        Some(fitting) => {
            let [peak, capacity] = told_apart([fitting.forecast.peak_reserved.bytes, capacity]);
            format!(
                "replayed with {} the request fits: {peak} of {capacity} reserved at most",
                fitting.conf()
            )
        }
        None if needed > capacity => {
            let [needed, had] = told_apart([needed, capacity]);
            // What a limit of the process is, no recording tells: only that so much was had below it.
            if met_own_limit(facts, failure) {
                format!(
                    "no setting is known to help: {needed} in use and wanted are more than the {had} that the process is known to have had"
                )
            } else {
                format!(
                    "no setting helps: {needed} in use and wanted are more than the {had} that there were"
                )
            }
        }
        None => {
            format!(
                "replayed under {}: the request fits with none of them",
                count(trials.count(), "other setting")
            )
        }
    };
    Some(measure("fitting-setting", Quantity::Text(fitting.map(Trial::conf).unwrap_or_default()), text))
}

/// The line that made most of what keeps segments that are free for the most part.
fn between(facts: &Facts, failure: &Failure, cause: Shortage, place: &Anchor) -> Option<Related> {
    let pins = Some(&failure.pins).filter(|pins| cause == Shortage::Pieces && !pins.is_empty())?;
    let line = facts.blame().narrowest(&facts.guilty(pins.iter().copied()))?;
    let (bytes, blocks) = (facts.bytes(pins), count(pins.len(), "block"));
    let aside = ShareMade::of(made_under(facts, line, pins), bytes).aside();
    let message = format!("{blocks} of {bytes} hold segments that are free for the most part{aside}");
    related(facts, Some(line), place, message)
}

/// The phase of the failure; the allocation before it helps where the event itself shows none.
fn phase(facts: &Facts, failure: &Failure) -> Phase {
    match facts.phase(failure.event) {
        Phase::Other => last_allocation(facts, failure).map_or(Phase::Other, |event| facts.phase(event)),
        known => known,
    }
}

/// The line of the request that failed, with its stack. Where it has none, the line of the last allocation says how far the program was; that
/// one's stack is another request's, and left out.
fn place(facts: &Facts, failure: &Failure) -> Anchor {
    if let Some(stack) = facts.seen_stack(failure.event) {
        return Anchor::of_stack(facts, Some(stack));
    }
    let before = last_allocation(facts, failure).and_then(|event| facts.seen_stack(event));
    let frame = before.and_then(|stack| facts.site(stack));
    frame.map_or(Anchor::Nowhere, |frame| Anchor::At(frame, None, None))
}

/// What is to be said of that line. What fails on the autograd engine's thread has no line but that of the backward pass.
fn label(facts: &Facts, failure: &Failure, phase: Phase) -> String {
    let iteration = facts.iteration_of(failure.event);
    let iteration = iteration.map(|one| format!(" in iteration {}", one.position() + 1));
    let then = iteration.clone().unwrap_or_default();
    let here = iteration.unwrap_or_else(|| " here".to_owned());
    let during = match phase {
        Phase::Other => String::new(),
        _ => format!(" ({})", phase.name().replace('-', " ")),
    };
    let own = facts.trace.event(failure.event).and_then(|event| event.stack);
    match facts.seen_stack(failure.event) {
        None => format!("the last stack before the request that failed{then}"),
        seen if seen == own => format!("failed{here}{during}"),
        Some(_) => format!("failed{here}, in the backward pass that this line runs"),
    }
}

fn last_allocation(facts: &Facts, failure: &Failure) -> Option<crate::unit::EventIndex> {
    let before = facts.trace.events.get(..failure.event.position())?;
    before.iter().rposition(|event| event.action == Action::Alloc).and_then(|position| facts.event(position))
}

fn standing(facts: &Facts, failure: &Failure) -> RoleBytes {
    let mut roles: BTreeMap<Role, (Bytes, Vec<AllocationId>)> = BTreeMap::new();
    for (id, allocation) in facts.timeline.iter().filter(|(_, one)| one.alive_after(failure.event)) {
        let (bytes, ids) = roles.entry(facts.role(id)).or_default();
        *bytes += allocation.bytes;
        ids.push(id);
    }
    let mut standing: RoleBytes = roles.into_iter().map(|(role, (bytes, ids))| (role, bytes, ids)).collect();
    standing.sort_by_key(|(role, bytes, _)| (std::cmp::Reverse(*bytes), *role));
    standing
}

/// What stood then, with the lines that made most of it; one may be that of the failure itself.
fn heaviest(facts: &Facts, standing: &RoleBytes) -> Vec<Related> {
    let one = |(role, bytes, ids): &(Role, Bytes, Vec<AllocationId>)| {
        let frame = facts.blame().narrowest(&facts.guilty(ids.iter().copied()))?;
        let stood = Stood { bytes: *bytes, here: made_under(facts, frame, ids), what: role.plural().into() };
        let message = format!("{bytes} of {} stood at that moment{}", stood.what, stood.share().aside());
        Some(Related { location: Location::of(facts.snapshot, frame)?, message, stood: Some(stood) })
    };
    standing.iter().take(ROLES_LISTED).filter_map(one).collect()
}

/// How much of some allocations was made under a frame.
fn made_under(facts: &Facts, frame: FrameId, ids: &[AllocationId]) -> Bytes {
    let guilty = facts.guilty(ids.iter().copied()).into_iter();
    let through = guilty.filter(|one| facts.frames.python(one.stack).contains(&frame));
    through.map(|one| Bytes(one.weight)).sum()
}

/// The most that the request's stack had asked for until then; where no stack is its own, as on the autograd engine's thread, the most that was
/// asked for without one in the same phase. With the words for it.
fn wanted_before(facts: &Facts, failure: &Failure) -> (Bytes, &'static str) {
    let python = |stack: Option<StackId>| stack.is_some_and(|stack| !facts.frames.python(stack).is_empty());
    let own =
        facts.trace.event(failure.event).and_then(|event| event.stack).filter(|stack| python(Some(*stack)));
    let phase = facts.phase(failure.event);
    let before = facts.trace.events.iter().enumerate().take(failure.event.position());
    let alike = |(at, event): &(usize, &Event)| match own {
        Some(own) => event.stack == Some(own),
        None => !python(event.stack) && facts.event(*at).is_some_and(|at| facts.phase(at) == phase),
    };
    let requests = before.filter(|(_, event)| event.action == Action::Alloc).filter(alike);
    let most = requests.map(|(_, event)| event.size).max().unwrap_or_default();
    (
        most,
        if own.is_some() {
            "the same call asked"
        } else {
            "requests like it, without a stack of their own, were"
        },
    )
}

fn evidence(facts: &Facts, failure: &Failure, cause: Shortage, standing: &RoleBytes) -> Vec<Measure> {
    let Failure { wanted, reserved, in_use, free, largest, pieces, .. } = *failure;
    let held: Vec<String> = standing
        .iter()
        .take(ROLES_NAMED)
        .map(|(role, bytes, _)| format!("{bytes} {}", role.plural()))
        .collect();
    let left = left(facts, failure);
    let outside = if cause == Shortage::TooLarge {
        format!("{left} left on the device: with nothing else in use the request would have failed, too")
    } else if met_own_limit(facts, failure) {
        format!("{left} were free on the device: a limit of the process was reached")
    } else {
        format!("{left} left on the device")
    };
    let failures = facts.trace.events.iter().filter(|event| event.action == Action::OutOfMemory).count();
    let (before, asked) = wanted_before(facts, failure);
    let caught = facts.goes_on_after(failure.event);
    let text = |is: bool, text: String| if is { text } else { String::new() };
    vec![
        measure("cause", Quantity::Text(cause.name().to_owned()), String::new()),
        measure("wanted", Quantity::Bytes(wanted), String::new()),
        measure(
            "wanted-before",
            Quantity::Bytes(before),
            text(Bytes::ZERO < before && before < wanted, format!("{asked} for {before} at most before")),
        ),
        measure("reserved", Quantity::Bytes(reserved), format!("{reserved} reserved")),
        measure(
            "free",
            Quantity::Bytes(free),
            match pieces {
                0 => "none of that free for requests of this size".to_owned(),
                _ => format!("{free} of that free for requests of this size, in {}", count(pieces, "piece")),
            },
        ),
        measure(
            "largest-piece",
            Quantity::Bytes(largest),
            text(pieces > 0, format!("the largest {largest}")),
        ),
        measure(
            "in-use",
            Quantity::Bytes(in_use),
            text(!held.is_empty(), format!("in use: {}", held.join(", "))),
        ),
        measure("left-on-device", Quantity::Bytes(left), outside),
        measure(
            "failures",
            Quantity::Count(failures as u64),
            text(failures > 1, format!("{} in all", count(failures, "failure"))),
        ),
        measure(
            "caught",
            Quantity::Count(caught.into()),
            text(caught, "the program caught the exception and went on".to_owned()),
        ),
    ]
}
