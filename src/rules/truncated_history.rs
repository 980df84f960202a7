//! A recording that has lost its beginning.

use super::claim::{Besides, Claim, Mending, Place, Telling, Worth};
use super::{declare_rule, measure};
use crate::facts::Facts;
use crate::finding::{Finding, Seek, Severity, Value};
use crate::frames::Method;
use crate::snapshot::Action;
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
        // Allocations that are missing between events, and not before them, were left out on purpose (`skip_actions`).
        let allocates = facts.trace.events.iter().any(|event| event.action == Action::Alloc);
        let skipped = !allocates && facts.timeline.agreement.lost_allocations > 0;
        if lost == 0 || skipped {
            return Vec::new();
        }
        let why = Why::of(facts, blocks_evicted);
        let (sure, most) = match why {
            Why::OneEvent | Why::Full => (Confidence::High, Severity::Error),
            Why::Earlier | Why::Slice => (Confidence::Low, Severity::Info),
        };
        let told = move |worth: &Worth| tell(facts, why, lost, worth);
        vec![Claim::new(&Self::META, [], Mending::default(), told).sure(sure).at_most(most)]
    }
}

/// Why blocks have a stack and no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// `_record_memory_history(True)`, the call of before 2.1, keeps one event; so does `"state"`.
    OneEvent,
    /// There are as many events as a person sets as a limit.
    Full,
    /// There are not: history may have been switched off and on again.
    Earlier,
    /// The file says that it is a slice, and nothing in it proves that.
    Slice,
}

impl Why {
    fn of(facts: &Facts, blocks_evicted: usize) -> Why {
        match facts.trace.events.len() {
            _ if blocks_evicted == 0 => Why::Slice,
            1 => Why::OneEvent,
            events if is_a_buffer_size(facts, events) => Why::Full,
            _ => Why::Earlier,
        }
    }

    fn message(self, events: usize) -> String {
        match self {
            Why::OneEvent => "the recording holds one event: its history was not kept".to_owned(),
            Why::Full => {
                format!("the recording lost its beginning: only the last {} are left", count(events, "event"))
            }
            Why::Earlier => "some blocks are older than the recording, and yet recorded once".to_owned(),
            Why::Slice => {
                "the beginning is missing: the file says that it is a slice of a recording".to_owned()
            }
        }
    }

    fn help(self) -> &'static str {
        match self {
            Why::OneEvent => {
                "record the history: torch.cuda.memory._record_memory_history(max_entries=1_000_000); called with True or \
                 \"state\" it keeps one event"
            }
            Why::Full => {
                "record with a larger buffer: torch.cuda.memory._record_memory_history(max_entries=1_000_000)"
            }
            Why::Earlier => {
                "if history was switched off and on again, this is right; if not, record with a larger buffer: max_entries=1_000_000"
            }
            Why::Slice => "look at the recording that it was cut out of, if what came before matters",
        }
    }

    /// What to look for in the source.
    fn seek(self) -> Option<Seek> {
        let label = match self {
            Why::OneEvent => "this call keeps one event",
            Why::Full => "this buffer was too small for the program",
            Why::Earlier | Why::Slice => return None,
        };
        Some(Seek { call: "_record_memory_history", label })
    }
}

fn tell(facts: &Facts, why: Why, lost: usize, worth: &Worth) -> Finding {
    let events = facts.trace.events.len();
    let telling = Telling {
        message: why.message(events),
        help: why.help().to_owned(),
        place: outermost(facts),
        label: "what this call allocated is in use, and its events are lost".to_owned(),
        related: Vec::new(),
        evidence: vec![
            measure(
                "blocks-without-allocation",
                Value::Count(lost as u64),
                format!("{} in use with a stack, but without an allocation event", count(lost, "block")),
            ),
            measure(
                "events",
                Value::Count(events as u64),
                format!("{} in the trace", count(events, "event")),
            ),
        ],
    };
    telling.told(facts, &TruncatedHistory::META, worth).seeking(why.seek())
}

/// The outermost call whose allocations are in use.
fn outermost(facts: &Facts) -> Place {
    let older = facts.timeline.allocations.iter().filter(|one| one.alloc.is_none());
    let Some(stack) = older.filter_map(|one| one.stack).find(|stack| facts.site(*stack).is_some()) else {
        return Place::Nowhere;
    };
    let outermost = facts.frames.user(stack).filter(|frame| !is_module(facts, *frame)).last();
    let frame = outermost.or_else(|| facts.site(stack));
    frame.map_or(Place::Nowhere, |frame| Place::At(frame, None, None))
}

/// Whether the number of events is one that a person sets as a limit, round or a power of two (of other numbers one in a
/// hundred is), or the same on several devices.
fn is_a_buffer_size(facts: &Facts, events: usize) -> bool {
    let full = facts.snapshot.devices.iter().filter(|trace| trace.events.len() == events).count();
    events.is_multiple_of(100) || events.is_power_of_two() || full > 1
}

fn is_module(facts: &Facts, frame: crate::unit::FrameId) -> bool {
    facts.frames.method(frame) == Method::Module
}
