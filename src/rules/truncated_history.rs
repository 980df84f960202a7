//! A recording that has lost its beginning.

use super::claim::{Anchor, Besides, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::{Facts, Lost};
use crate::finding::{Excuse, Finding, Quantity, Seek, Severity};
use crate::frames::Method;
use crate::timeline::Agreement;
use crate::unit::{Confidence, count};

declare_rule! {
    /// The recording has lost its beginning.
    TruncatedHistory = "truncated-history", Input, Warning,
    needs: [Events],
    summary: "the recording has lost its beginning",
}

impl TruncatedHistory {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let Agreement { blocks_evicted, blocks_cut, .. } = facts.timeline.agreement;
        let lost = blocks_evicted + blocks_cut;
        let Some(why) = facts.evidence.lost else { return Vec::new() };
        let (sure, most) = match why {
            Lost::OneEvent | Lost::Full => (Confidence::High, Severity::Error),
            Lost::Earlier | Lost::Slice => (Confidence::Low, Severity::Info),
        };
        let told = move |worth: &Worth| tell(facts, why, lost, worth);
        vec![Claim::new(&Self::META, [], Mending::default(), told).sure(sure).at_most(most)]
    }
}

fn message(why: Lost, events: usize) -> String {
    match why {
        Lost::OneEvent => "the recording holds one event: its history was not kept".to_owned(),
        Lost::Full => {
            format!("the recording lost its beginning: only the last {} are left", count(events, "event"))
        }
        Lost::Earlier => "some blocks are older than the recording, and yet recorded once".to_owned(),
        Lost::Slice => "the beginning is missing: the file says that it is a slice of a recording".to_owned(),
    }
}

fn help(why: Lost) -> &'static str {
    match why {
        Lost::OneEvent => {
            "record the history: torch.cuda.memory._record_memory_history(max_entries=1_000_000); called with True or \
                 \"state\" it keeps one event"
        }
        Lost::Full => {
            "record with a larger buffer: torch.cuda.memory._record_memory_history(max_entries=1_000_000)"
        }
        Lost::Earlier => {
            "if history was switched off and on again, this is right; if not, record with a larger buffer: max_entries=1_000_000"
        }
        Lost::Slice => "look at the recording that it was cut out of, if what came before matters",
    }
}

/// What to look for in the source.
fn seek(why: Lost) -> Option<Seek> {
    let (label, arguments) = match why {
        // What the old interface of PyTorch 2.0 does where nobody says how many.
        Lost::OneEvent => ("this call keeps one event", &[][..]),
        // Without it nothing is ever lost.
        Lost::Full => {
            ("this buffer was too small for the program", &["max_entries", "trace_alloc_max_entries"][..])
        }
        Lost::Earlier | Lost::Slice => return None,
    };
    let arguments = arguments.iter().map(|name| ((*name).into(), "".into())).collect();
    Some(Seek { call: "_record_memory_history".into(), arguments, label: label.into() })
}

fn tell(facts: &Facts, why: Lost, lost: usize, worth: &Worth) -> Finding {
    let events = facts.trace.events.len();
    let telling = Telling {
        message: message(why, events),
        help: help(why).to_owned(),
        place: if lost == 0 { first_left(facts) } else { outermost(facts) },
        label: match lost {
            0 => "the first line that is left of the recording",
            _ => "what this call allocated is in use, and its events are lost",
        }
        .to_owned(),
        related: Vec::new(),
        evidence: vec![
            measure("blocks-without-allocation", Quantity::Count(lost as u64), proof(lost)),
            measure(
                "events",
                Quantity::Count(events as u64),
                format!("{} in the trace", count(events, "event")),
            ),
        ],
    };
    let excuse = (why == Lost::OneEvent).then_some(Excuse::StateAlone);
    telling.told(facts, &TruncatedHistory::META, worth).seeking(seek(why)).excused_by(excuse)
}

/// How it shows that something was lost.
fn proof(lost: usize) -> String {
    match lost {
        0 => "the first event is in the middle of a backward pass".to_owned(),
        _ => format!("{} in use with a stack, but without an allocation event", count(lost, "block")),
    }
}

/// The outermost call whose allocations are in use.
fn outermost(facts: &Facts) -> Anchor {
    let older = facts.timeline.allocations.iter().filter(|one| one.alloc.is_none());
    let Some(stack) = older.filter_map(|one| one.stack).find(|stack| facts.site(*stack).is_some()) else {
        return Anchor::Nowhere;
    };
    let outermost = facts.frames.user(stack).filter(|frame| !is_module(facts, *frame)).last();
    let frame = outermost.or_else(|| facts.site(stack));
    frame.map_or(Anchor::Nowhere, |frame| Anchor::At(frame, None, None))
}

/// The line of the user's of the first event that shows one.
fn first_left(facts: &Facts) -> Anchor {
    let mut stacks = facts.trace.events.iter().filter_map(|event| event.stack);
    let first = stacks.find_map(|stack| facts.site(stack));
    first.map_or(Anchor::Nowhere, |frame| Anchor::At(frame, None, None))
}

fn is_module(facts: &Facts, frame: crate::unit::FrameId) -> bool {
    facts.frames.method(frame) == Method::Module
}
