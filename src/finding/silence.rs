//! Why a rule says nothing of a device although it was asked.
//!
//! A rule's silence has three meanings, and a gate must tell them apart. It *judged* and found nothing; then there is no
//! [`Skipped`]. It is *not applicable*: the program does nothing that the rule is about, and the recording would show it if
//! it did. Or it is *blind*: the recording hides what the rule needs to see, and that nothing was found means nothing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::program::Phase;
use crate::unit::DeviceIndex;

/// A rule that did not judge a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The input, as in [`super::Finding::input`].
    pub input: usize,
    /// The device; `None` where the rule compares recordings.
    pub device: Option<DeviceIndex>,
    /// The rule's name.
    pub rule: Cow<'static, str>,
    /// Why.
    pub silence: Silence,
}

impl Skipped {
    /// What the recording hides from the rule; `None` where nothing is missing.
    pub fn blind(&self) -> Option<Hidden> {
        match self.silence {
            Silence::Blind(hidden) => Some(hidden),
            Silence::NotApplicable(_) => None,
        }
    }
}

/// Why a rule did not judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Silence {
    /// The recording hides what the rule needs to see.
    Blind(Hidden),
    /// The program does nothing that the rule is about; nothing is missing.
    NotApplicable(Absent),
}

impl Silence {
    /// Why, in words for a person: lower-case start, no final stop.
    pub fn reason(self) -> String {
        match self {
            Silence::NotApplicable(absent) => absent.reason(),
            Silence::Blind(hidden) => hidden.reason().to_owned(),
        }
    }
}

/// What a program does not do, as its recording shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Absent {
    /// Training.
    Training,
    /// An optimizer: backward passes are asked for the gradients of something else than parameters.
    Optimizer,
    /// A phase that a budget is for.
    Phase(Phase),
    /// The lines that a budget is for.
    CallSite,
    /// Another rank whose snapshot could be compared.
    Ranks,
}

impl Absent {
    fn reason(self) -> String {
        match self {
            Absent::Training => "the program runs no backward pass and no optimizer".to_owned(),
            Absent::Optimizer => {
                "backward passes are asked for gradients of inputs, and no optimizer steps".to_owned()
            }
            Absent::Phase(phase) => format!("the program was never seen in the phase `{}`", phase.name()),
            Absent::CallSite => "no allocation was made at the call site".to_owned(),
            Absent::Ranks => "there is no other rank to compare with".to_owned(),
        }
    }
}

/// What a recording hides from a rule. Of several the first is the one to mend first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Hidden {
    /// There is no trace of the device.
    Trace,
    /// Events are of kinds that memlint does not know.
    Kinds,
    /// No event is an allocation.
    Allocations,
    /// No allocation is seen from its beginning to its end.
    Lives,
    /// Events in the middle are missing.
    Events,
    /// Allocations have no stacks.
    Stacks,
    /// Stacks have no frame of the user's own code.
    OwnFrames,
    /// No event tells when memory was taken from the driver.
    Segments,
    /// Nothing repeats.
    Iterations,
    /// Enough iterations to see what grows with each.
    Growth,
    /// The beginning was recorded and is lost.
    Beginning,
    /// The recording begins after the first iteration.
    FirstIteration,
    /// The program trains, and no step of an optimizer is seen.
    Steps,
    /// Without a GPU: whether the program steps, for which values are missing.
    Values,
    /// How much memory the device has.
    Capacity,
    /// Whether what grows goes on growing, or fills up to a bound.
    Bound,
}

impl Hidden {
    /// What is not seen: lower-case start, no final stop.
    pub const fn reason(self) -> &'static str {
        match self {
            Hidden::Trace => "the snapshot has no events of this device, only its final segments",
            Hidden::Kinds => "events are of kinds that memlint does not know",
            Hidden::Allocations => "no allocation is among the events",
            Hidden::Lives => "no allocation is seen from its beginning to its end",
            Hidden::Events => "events in the middle of the history are missing",
            Hidden::Stacks => "too few allocations have a Python stack",
            Hidden::OwnFrames => "no stack shows code of your own",
            Hidden::Segments => "no event tells when memory was taken from the driver",
            Hidden::Iterations => "fewer than two iterations were found",
            Hidden::Growth => "two iterations are too few to see growth",
            Hidden::Beginning => "the recording lost its beginning",
            Hidden::FirstIteration => "the recording begins after the first iteration",
            Hidden::Steps => "the program runs backward passes, and no step of an optimizer was recorded",
            Hidden::Values => {
                "without a GPU the program decided by values that nothing computed, and took no step of its optimizer"
            }
            Hidden::Capacity => "the memory of the device is not known",
            Hidden::Bound => "too few iterations to tell growth from something that fills up and stops",
        }
    }

    /// What to do so that it is seen, in few words: imperative, no final stop.
    pub const fn remedy(self) -> &'static str {
        match self {
            Hidden::Trace => "record every device's history",
            Hidden::Kinds => "look for a newer memlint",
            Hidden::Allocations | Hidden::Lives => "record 5 to 10 whole iterations",
            Hidden::Events => "record all actions in one go",
            Hidden::Stacks => "record with context=\"all\"",
            Hidden::OwnFrames => "record your own script",
            Hidden::Segments => "record all actions",
            Hidden::Iterations | Hidden::Growth => "record 5 to 10 iterations",
            Hidden::Beginning => "raise max_entries",
            Hidden::FirstIteration => "record from the first iteration",
            Hidden::Steps => {
                "step with a torch.optim.Optimizer, or find out why a wrapper (accelerate, GradScaler) skips each step"
            }
            Hidden::Values => "have it step without a GPU, too, or record with one",
            Hidden::Capacity => "name it with --device-memory",
            Hidden::Bound => "record more iterations",
        }
    }
}
