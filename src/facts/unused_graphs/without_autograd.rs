//! When what a call of a module made would end without autograd.
//!
//! In: a call and one of its tensors. Out: the event that ends it. Python holds what a module is called with until that call returns, and
//! the code in between has no other reason to hold it than to read it next: so a tensor ends with the call that the next operation stands in,
//! and where that is none with the next operation itself. Names that hold it for longer no recording shows: what is left is rather more.

use crate::facts::{Facts, ModuleCall};
use crate::frames::PhaseSign;
use crate::unit::{EventIndex, FrameId, Index};

/// The event with which the tensor at some place of what a call made would end.
pub(super) fn end(facts: &Facts, call: &ModuleCall, place: usize) -> Option<EventIndex> {
    let stack = |place: usize| {
        let made = facts.timeline.allocation(*call.made.get(place)?)?;
        Some(facts.frames.python(made.stack?))
    };
    let reads =
        stack(place).zip(stack(place + 1)).and_then(|(made, reads)| ReadingCall::begun(facts, made, reads));
    let behind = match reads {
        Some(mut reader) => (place + 2..call.made.len())
            .find(|at| !stack(*at).is_some_and(|next| reader.goes_on(facts, next))),
        None => Some(place + 2),
    };
    let behind = behind.and_then(|at| facts.timeline.allocation(*call.made.get(at)?)?.alloc);
    behind.or_else(|| EventIndex::at(call.end))
}

/// A call of a module within another one, followed along the operations that stand in it.
struct ReadingCall<'f> {
    /// The frames around it, and those of PyTorch's that make the call.
    around: &'f [FrameId],
    /// Where its first operation stands.
    first: &'f [FrameId],
    /// Where the last one that was looked at stands.
    last: &'f [FrameId],
}

impl<'f> ReadingCall<'f> {
    /// The outermost call that begins between two operations and has the second in it.
    fn begun(facts: &Facts, before: &[FrameId], stack: &'f [FrameId]) -> Option<ReadingCall<'f>> {
        let calls = |frame: &FrameId| facts.frames.phase(*frame) == PhaseSign::ModuleCall;
        let shared = before.iter().zip(stack).take_while(|(one, other)| one == other).count();
        let diverge = before.get(shared).zip(stack.get(shared));
        // Other code, or the same code from an earlier line on, is another call: by the frames right around it.
        let from = match diverge {
            Some((one, other)) if moves_on(facts, *one, *other) => shared + 1,
            _ => shared - stack.iter().take(shared).rev().take_while(|frame| calls(frame)).count(),
        };
        let call = stack.iter().skip(from).position(calls)? + from;
        let code = stack.iter().skip(call).position(|frame| !calls(frame))? + call;
        Some(ReadingCall { around: stack.get(..code)?, first: stack, last: stack })
    }

    /// Whether the next operation still stands in the call: not where its code goes back, or begins as the call began.
    fn goes_on(&mut self, facts: &Facts, stack: &'f [FrameId]) -> bool {
        let code = |stack: &'f [FrameId]| stack.strip_prefix(self.around)?.first().copied();
        let stays = code(self.last)
            .zip(code(stack))
            .is_some_and(|(last, next)| last == next || moves_on(facts, last, next));
        let begins_anew = stack == self.first && self.last != self.first;
        self.last = stack;
        stays && !begins_anew
    }
}

/// Whether a run of a function goes from one of its lines to another: forwards. (Where it goes back, it has rather been called again.)
fn moves_on(facts: &Facts, from: FrameId, to: FrameId) -> bool {
    facts.frames.function(from) == facts.frames.function(to)
        && facts.frames.line(from) < facts.frames.line(to)
}
