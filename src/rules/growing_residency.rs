//! Lines whose tensors pile up from iteration to iteration, or from turn to turn of another loop.

mod collected;
mod earlier;

use std::collections::BTreeSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth, made_at, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, Growing};
use crate::finding::{Finding, Hidden, Measure, Quantity, Related, Severity};
use crate::lives::Changes;
use crate::unit::{AllocationId, Bytes, Confidence, FrameId, count};
use earlier::{OlderByStack, PiledUpBefore};

declare_rule! {
    /// Memory allocated at one line grows from iteration to iteration.
    GrowingResidency = "growing-residency", Leak, Error,
    needs: [History, Stacks, Growth],
    in_part: [History, Stacks, Iterations],
    summary: "memory allocated at one line grows from iteration to iteration",
}

/// The evidence that an object holds the tensors that nobody knows the name of: recordings show none.
pub const UNKNOWN_HOLDER: &str = "held by an object of the program (a list, a dict, an attribute, a closure): the recording does not name it";

/// What the help says of the holder's size, as long as nobody knows what kind of holder it is.
pub const HOLDER_LIMIT: &str =
    "give what holds them a limit: deque(maxlen=n) for a list, no more than n entries for a dict";

/// The evidence that sets of tensors replace one another and each has more members.
pub const SURPLUS: &str = "surplus";

impl GrowingResidency {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let older = OlderByStack::of(facts);
        // What waits for the collector is garbage, as `delayed-free-cycle` says.
        let garbage: BTreeSet<usize> = facts.stranded().iter().map(|line| line.growing).collect();
        let kept = facts.growing().iter().enumerate().filter(|(at, _)| !garbage.contains(at));
        let piles = kept.map(|(_, growing)| claim(facts, growing, older.piled_up(facts, growing)));
        piles.chain(collected::claims(facts)).collect()
    }
}

fn claim<'f>(facts: &'f Facts<'f>, growing: &'f Growing, earlier: PiledUpBefore) -> Claim<'f> {
    let mut mended = Changes::removing(growing.surplus.iter().copied());
    if growing.surplus.is_empty() {
        facts.free_with_their_iteration(&mut mended, &growing.stays);
    }
    let about = growing.stays.iter().chain(&growing.surplus).copied();
    let mut claim = Claim::new(&GrowingResidency::META, about, Mending::lives(mended), move |worth| {
        tell(facts, (growing, earlier), worth)
    });
    // What one tensor takes up after the loop is no leak, and fills no device: it counts by what it weighs.
    let lasts = !facts.are_gathered(&growing.stays);
    claim.pace = Some(slope(growing)).filter(|_| lasts);
    claim.held = Some(Bytes::rounded(growing.growth.steadily()));
    claim.together = Some(statement(facts, growing)).filter(|_| lasts);
    let growth = growing.growth.with_earlier(earlier.iterations);
    let sure = growth.confidence(facts.evidence.first_iteration().is_ok());
    claim.undecided = (sure == Confidence::Low).then_some(Hidden::Bound);
    let sure = sure.min(facts.program.confidence);
    let sure = if waits_for_a_burst(facts, growing) { Confidence::Low } else { sure };
    // A few rises may be the first of a cache, and a loop that may be none the layers of one pass.
    claim.at_most = if sure == Confidence::Low { Severity::Info } else { Severity::Error };
    claim.sure(sure)
}

/// The bytes by which a line grows in every iteration.
fn slope(growing: &Growing) -> Bytes {
    Bytes::rounded(growing.growth.slope)
}

/// Whether all that stays was made since a burst took what the line had left before: the next one may take it, too.
fn waits_for_a_burst(facts: &Facts, growing: &Growing) -> bool {
    // They stand by line, then by time.
    let bursts = facts.bursts();
    let last = bursts.partition_point(|burst| burst.site <= growing.site).checked_sub(1);
    let last = last.and_then(|last| bursts.get(last)).filter(|burst| burst.site == growing.site);
    let made = growing.stays.iter().filter_map(|id| facts.born_in(facts.timeline.allocation(*id)?));
    last.zip(made.min()).is_some_and(|(last, oldest)| oldest >= last.iteration)
}

/// The statement of the loop's body under which a line allocates: what hangs under one statement is one finding.
fn statement(facts: &Facts, growing: &Growing) -> FrameId {
    let first = growing.stays.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let stack = first.and_then(|event| facts.seen_stack(event));
    let body = facts.program.main_loop.and_then(|main| facts.frames.function(main.frame));
    // A library's loop runs all that is the user's under one statement.
    let in_body = |frame: &&FrameId| {
        body.is_some() && facts.frames.is_own(**frame) && facts.frames.function(**frame) == body
    };
    let found = stack.and_then(|stack| facts.frames.python(stack).iter().find(in_body).copied());
    found.unwrap_or(growing.site)
}

fn tell(facts: &Facts, (growing, earlier): (&Growing, PiledUpBefore), worth: &Worth) -> Finding {
    let is_gathered = worth.pace.is_none();
    let (slope, net) = (worth.pace.unwrap_or(slope(growing)), worth.held.unwrap_or_default());
    let place = Anchor::responsible(facts, &worth.about, true);
    let message = if !growing.surplus.is_empty() {
        format!("each iteration makes more tensors here: {slope} more, {net} in all")
    } else if growing.lines > 1 {
        format!("memory grows by {slope} an iteration at {} lines together, {net} in all", growing.lines)
    } else {
        format!("memory grows by {slope} an iteration, {net} in all")
    };
    let mut beside: Vec<Related> = made_at(facts, &worth.about, &place);
    let emptied = facts.go_at(&worth.about);
    beside.extend(match emptied {
        Some(line) => {
            related(facts, Some(line), &place, "most of it is freed here, after the last iteration")
        }
        None => related(
            facts,
            facts.siblings_go(&worth.about),
            &place,
            "others made at the same place are freed here",
        ),
    });
    let tensors = count(worth.about.len(), "tensor");
    // Whether or not the recording shows where.
    let gone = worth
        .about
        .iter()
        .filter(|id| facts.timeline.allocation(**id).is_some_and(|one| one.given_back().is_some()));
    let label = if gone.count() * 2 > worth.about.len() {
        let held = worth.about.iter().filter_map(|id| facts.timeline.allocation(*id));
        let last = held.map(|one| facts.turns().held(one).end).max().unwrap_or_default();
        format!("{tensors} made here are still held when iteration {last} ends")
    } else {
        format!("{tensors} made here are still alive at the end")
    };
    let telling = Telling {
        message,
        help: match growing.surplus.is_empty() {
            true if is_gathered => GATHER.to_owned(),
            true => help(facts, &worth.about),
            false => TAKE_AWAY.to_owned(),
        },
        label,
        related: beside,
        evidence: evidence(facts, (growing, earlier), worth, (slope, net)),
        place,
    };
    telling.told(facts, &GrowingResidency::META, worth)
}

/// What helps where sets replace one another and each has more members: it is not the tensors that pile up, but what makes them.
const TAKE_AWAY: &str = "every iteration adds something that makes one more tensor in each later one, usually a hook: add it once, before the loop, or \
                         remove it again: handle.remove()";

/// What helps where all of it goes into one tensor after the loop.
const GATHER: &str = "what is collected goes into one tensor after the loop, and both are there at once: write each into its place in a tensor that is made before \
                      the loop, or collect in host memory (.cpu())";

/// The largest tensor of one number: 128 bits, complex. What is larger has no `.item()`.
const NUMBER: Bytes = Bytes(16);

/// What helps tensors of their size and their holder.
fn help(facts: &Facts, alive: &[AllocationId]) -> String {
    let are_numbers =
        alive.iter().all(|id| facts.timeline.allocation(*id).is_none_or(|one| one.bytes <= NUMBER));
    if are_numbers {
        "keep numbers instead of tensors: .item()".to_owned()
    } else if facts.savers(alive).is_empty() {
        format!(
            "{HOLDER_LIMIT}, or keep only the part of them that is needed; in host memory (.cpu()) they would go on growing, with more room"
        )
    } else {
        format!(
            "{HOLDER_LIMIT}; keep without its graph (.detach()) what is kept for its value; in host memory (.detach().cpu()) they would go \
             on growing, with more room"
        )
    }
}

fn evidence(
    facts: &Facts,
    (growing, earlier): (&Growing, PiledUpBefore),
    worth: &Worth,
    (slope, net): (Bytes, Bytes),
) -> Vec<Measure> {
    let growth = &growing.growth;
    let (low, high) = (Bytes::rounded(growth.bounds.0), Bytes::rounded(growth.bounds.1));
    // The bounds are those of one line: of several that hang together they say nothing.
    let is_one = slope == Bytes::rounded(growth.slope);
    let is_steady = !is_one || [low, high].iter().all(|bound| bound.to_string() == slope.to_string());
    let range = if is_steady { String::new() } else { format!(" ({low} to {high})") };
    let mut told = vec![
        measure(
            "growth",
            Quantity::Bytes(net),
            format!(
                "{net} stay, from {} of {}",
                count(growth.rises, "rise"),
                count(growth.turns, "iteration")
            ),
        ),
        measure("slope", Quantity::Bytes(slope), format!("{slope} an iteration{range}")),
        measure("rises", Quantity::Count(growth.rises as u64), String::new()),
        measure("tensors-alive", Quantity::Count(worth.about.len() as u64), String::new()),
        measure("resident", Quantity::Series(growing.series.clone()), String::new()),
        holder(facts, &worth.about),
    ];
    if earlier.iterations > 0 {
        told.push(measure(
            "of-before",
            Quantity::Bytes(earlier.bytes),
            format!("{} of before the recording were made the same way, and none of it goes", earlier.bytes),
        ));
    }
    // What makes edits asks for it: a copy in host memory mends no tensor too many.
    if !growing.surplus.is_empty() {
        let many = growing.surplus.len();
        told.push(measure(
            SURPLUS,
            Quantity::Count(many as u64),
            format!("{} too many", count(many, "tensor")),
        ));
    }
    told
}

/// What may hold them: the nodes of the graph that save their like, or else an object of the program's.
fn holder(facts: &Facts, alive: &[AllocationId]) -> Measure {
    let nodes = facts.savers(alive);
    let text = if nodes.is_empty() {
        UNKNOWN_HOLDER.to_owned()
    } else {
        format!(
            "perhaps held by the autograd graph: elsewhere a node of it ({}) frees tensors like them",
            nodes.join(", ")
        )
    };
    measure("held-by", Quantity::Text(text.clone()), text)
}
