//! A finding: what a rule says, with everything that a report may show of it.
//!
//! Rules make findings; the engine levels, filters and sorts them; reports only read them. Evidence is numbers with
//! names, so that nobody has to parse a message. What counts for the verdict is a finding's [`Standing`]; what a person
//! should know of the judging itself is a [`Notice`].

mod fingerprint;
mod notice;
mod pairing;
mod silence;
mod standing;
mod stood;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use fingerprint::Fingerprint;
pub(crate) use fingerprint::as_written;
pub use notice::{Matter, Notice};
pub use pairing::{Difference, Mark, Pairing, Size, Tolerance, pair};
pub use silence::{Absent, Hidden, Silence, Skipped};
pub use standing::Standing;
pub use stood::{ShareMade, Stood};

use crate::program::Phase;
use crate::snapshot::Snapshot;
use crate::unit::{Bytes, Confidence, DeviceIndex, FrameId};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing; nothing to mend.
    Info,
    /// Costs memory.
    Warning,
    /// A defect: a leak, a crash, a verdict that cannot be trusted.
    Error,
}

/// The family of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Group {
    /// Memory that is never given back.
    Leak,
    /// Memory that is given back, but raises the peak.
    Peak,
    /// What the caching allocator makes of the requests.
    Allocator,
    /// Mixed precision.
    Amp,
    /// What the recording itself lacks.
    Input,
    /// Trades that a program in order may make: asked for, never volunteered.
    Advice,
    /// Limits that the user sets.
    Budget,
}

impl Severity {
    /// `info`, `warning`, `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl Group {
    /// Every group, in the order in which they are listed.
    pub const ALL: [Group; 7] =
        [Group::Leak, Group::Peak, Group::Allocator, Group::Amp, Group::Input, Group::Advice, Group::Budget];

    /// What its rules are about, for lists: one phrase.
    pub const fn about(self) -> &'static str {
        match self {
            Group::Leak => {
                "memory that is never given back, or far too late: the run ends when the device is full"
            }
            Group::Peak => "memory that is given back, but raises the peak",
            Group::Allocator => "what the caching allocator makes of the requests: holes, waiting, failures",
            Group::Amp => "mixed precision",
            Group::Input => "what the recording itself lacks, and what cannot be judged for that reason",
            Group::Advice => "what a program in order could trade for memory; runs only with `--advice`",
            Group::Budget => "limits of your own, from `[budget.NAME]` of the configuration",
        }
    }

    /// Whether its rules run unless somebody asks for less. Advice has to be asked for.
    pub const fn is_default(self) -> bool {
        !matches!(self, Group::Advice)
    }

    /// `leak`, `peak`, `allocator`, `amp`, `input`, `advice`, `budget`.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Leak => "leak",
            Group::Peak => "peak",
            Group::Allocator => "allocator",
            Group::Amp => "amp",
            Group::Input => "input",
            Group::Advice => "advice",
            Group::Budget => "budget",
        }
    }
}

/// One thing that is wrong, at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The input that shows it: a position in the list of inputs; the engine fills it in.
    pub input: usize,
    /// The rule's name, such as `missing-zero-grad`; owned where the user named it.
    pub rule: Cow<'static, str>,
    /// The rule's group.
    pub group: Group,
    /// How bad it is.
    pub severity: Severity,
    /// How sure the rule is.
    pub confidence: Confidence,
    /// One phrase that stands alone: lower-case start, no final stop, fewer than 80 characters.
    pub message: String,
    /// One remedy in the imperative, with the code to write.
    pub help: String,
    /// The device whose trace shows it.
    pub device: Option<DeviceIndex>,
    /// What the program was doing when the guilty memory was allocated.
    pub phase: Phase,
    /// The line that a person would edit or look at first.
    pub location: Option<Location>,
    /// A call to look for in the program's source, where the recording cannot know its line: the location is then a
    /// stand-in until the source is read.
    pub seek: Option<Seek>,
    /// What in the program's source would make this no fault, where the recording cannot show it.
    pub excuse: Option<Excuse>,
    /// What the primary location's label says: "allocated here in iteration 1, added to in place ever since".
    pub label: String,
    /// Other places that explain it, most helpful first.
    pub related: Vec<Related>,
    /// Named measures, in the order in which they are shown.
    pub evidence: Vec<Measure>,
    /// What mending it would save.
    pub impact: Impact,
    /// The recorded stack of the guilty allocation, innermost first.
    pub stack: Vec<StackFrame>,
    /// What makes it the same finding in another run; the engine fills it in.
    pub fingerprint: Fingerprint,
    /// Where else the same was found: other ranks, other devices. This one is the worst of them.
    pub also: Vec<Sighting>,
    /// Whether it counts.
    pub standing: Standing,
}

impl Finding {
    /// A finding of which nothing is known yet but what kind it is: medium confidence, no place, no evidence.
    pub fn of(rule: impl Into<Cow<'static, str>>, group: Group, severity: Severity) -> Finding {
        Finding {
            input: 0,
            rule: rule.into(),
            group,
            severity,
            confidence: Confidence::Medium,
            message: String::new(),
            help: String::new(),
            device: None,
            phase: Phase::Other,
            location: None,
            seek: None,
            excuse: None,
            label: String::new(),
            related: Vec::new(),
            evidence: Vec::new(),
            impact: Impact::default(),
            stack: Vec::new(),
            fingerprint: Fingerprint::default(),
            also: Vec::new(),
            standing: Standing::Open,
        }
    }

    /// Where it is, in few words that are the same in every checkout: `src/model.py:31 in forward`.
    pub fn whereabouts(&self) -> String {
        fingerprint::whereabouts(self)
    }

    /// The lines that its fingerprint is made of, innermost first.
    pub(crate) fn known_by(&self) -> Vec<&Location> {
        fingerprint::known_by(self)
    }

    /// Whether it counts for the verdict.
    pub fn is_open(&self) -> bool {
        self.standing == Standing::Open
    }
}

/// A place where a finding was made, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The input, as in [`Finding::input`].
    pub input: usize,
    /// The device.
    pub device: Option<DeviceIndex>,
    /// What mending it would save there.
    pub impact: Impact,
}

/// A call to look for in the source of the file that a finding's location names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seek {
    /// The function's or method's bare name.
    pub call: Cow<'static, str>,
    /// Arguments of which it sets one, where only such a call can be the one, each with the text that leaves it as it is without;
    /// empty where any call may be.
    pub arguments: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// What the finding's label says there.
    pub label: Cow<'static, str>,
}

/// A Python frame of a recorded stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// Where.
    pub location: Location,
    /// Whether it is the user's own code: no library, no generated file.
    pub user: bool,
}

/// Something in the source that makes a finding a matter of taste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Excuse {
    /// The program fills gradients with zeros in place; that leaves no event.
    ZeroesInPlace,
    /// The call that records asks for the state alone: nothing that was wanted is lost.
    StateAlone,
}

/// A line of a recorded file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location {
    /// The file as recorded.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// The function's bare name; empty where it is not known.
    pub function: String,
}

impl Location {
    /// The place of a frame, as recorded.
    pub fn of(snapshot: &Snapshot, frame: FrameId) -> Option<Location> {
        let frame = snapshot.stacks.frame(frame)?;
        let text = |id| snapshot.text(id).to_owned();
        Some(Location { file: text(frame.file), line: frame.line, function: text(frame.name) })
    }
}

/// A place that helps to understand a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Related {
    /// Where.
    pub location: Location,
    /// What is to be seen there: "the healthy ones are freed here".
    pub message: String,
    /// What was made there, where the place is one row of a list of what stood at some moment.
    pub stood: Option<Stood>,
}

/// A named number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// kebab-case, the key in JSON: `alive-at-boundaries`.
    pub name: Cow<'static, str>,
    /// The number.
    pub value: Quantity,
    /// The clause that shows it to a person: "alive at 4 of 4 iteration boundaries". Empty where only machines want it.
    pub text: String,
}

/// The number of a [`Measure`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Quantity {
    /// Bytes.
    Bytes(Bytes),
    /// A count.
    Count(u64),
    /// A share or a statistic without unit.
    Ratio(#[serde(with = "exact")] f64),
    /// A name.
    Text(String),
    /// Bytes at each iteration.
    Series(Vec<Bytes>),
}

/// Numbers that are read as they were written, to the last bit.
mod exact {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
    pub(super) fn serialize<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(number.to_bits())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        u64::deserialize(from).map(f64::from_bits)
    }
}

/// What mending a finding would save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impact {
    /// Bytes off the peak of requested bytes, by computing it again without the guilty lifetimes.
    pub peak: Option<Bytes>,
    /// Bytes off the peak of reserved bytes, where the program needs none less; for `fragmentation` all the holes at that
    /// peak: an upper bound.
    pub reserved: Option<Bytes>,
    /// Bytes off what stays resident at the end of an iteration, where most of it goes; nothing where none goes.
    pub resident: Option<Bytes>,
    /// Bytes by which every iteration grows.
    pub per_iteration: Option<Bytes>,
    /// The most that stands at any one moment because of it. Unlike what mending it saves, that does not hang on what else stands beside: two
    /// recordings are compared by it. Of a budget all that was measured; of a request that failed what it wanted.
    pub at_once: Option<Bytes>,
}

impl Impact {
    /// Bytes off a peak, be it of what the program asks for or of what the allocator holds for it.
    pub fn off_a_peak(&self) -> Option<Bytes> {
        self.peak.max(self.reserved)
    }
}
