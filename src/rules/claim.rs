//! What a rule says: a claim, whose worth others find out.
//!
//! In: facts. Out: a [`Claim`]: the allocations that it is about, the change that would mend it, how sure the rule is, and how
//! to tell it once it is settled. Always: a claim has no severity; what it is worth and whether another claim explains it is the
//! verdict's business (module `verdict`), so that no rule has to ask another.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::facts::{Facts, GuiltyStack};
use crate::finding::{Excuse, Finding, Hidden, Location, Measure, Related, Seek, Severity};
use crate::lives::Changes;
use crate::rules::{Meta, place, shown};
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, Index, StackId};

/// What would mend a claim: nothing that memory shows, unless said.
#[derive(Debug, Clone, Default)]
pub struct Mending {
    /// Other lifetimes: the peak is computed again with them.
    pub lives: Changes,
    /// How many bytes fewer would be held from the driver.
    pub reserved: Option<Bytes>,
    /// An estimate of what it takes off the peak, where no lifetimes can tell.
    pub estimate: Option<Bytes>,
}

impl Mending {
    /// Other lifetimes.
    pub fn lives(lives: Changes) -> Mending {
        Mending { lives, ..Mending::default() }
    }

    /// An estimate of what it takes off the peak.
    pub fn estimate(bytes: Bytes) -> Mending {
        Mending { estimate: Some(bytes), ..Mending::default() }
    }

    /// Fewer bytes held from the driver.
    pub fn reserved(bytes: Bytes) -> Mending {
        Mending { reserved: Some(bytes), ..Mending::default() }
    }
}

/// How to tell a claim, given what was found out about it.
type Tell<'f> = Box<dyn Fn(&Worth) -> Finding + Send + 'f>;

/// Something that a rule holds to be wrong.
pub struct Claim<'f> {
    /// The rule.
    pub rule: &'static Meta,
    /// The allocations that it is about; two claims about the same have one cause.
    pub about: Vec<AllocationId>,
    /// What would mend it.
    pub mending: Mending,
    /// How sure it is.
    pub confidence: Confidence,
    /// Bytes by which every turn of a loop grows.
    pub pace: Option<Bytes>,
    /// Bytes that stand where they need not, at the moment that matters to the rule.
    pub held: Option<Bytes>,
    /// What a share of held or reserved bytes is a share of, where that is not the peak of the kind.
    pub whole: Option<Bytes>,
    /// The most that it may count for, whatever it is worth: a note where no line of the user's can mend it.
    pub at_most: Severity,
    /// What the recording hides that would decide it; `None` where it is decided. What would matter if it held is then not judged.
    pub undecided: Option<Hidden>,
    /// Whether it is a fault whatever else is wrong with its allocations, with a remedy of its own.
    pub by_itself: bool,
    /// Whether it has to count at the peak that was recorded, too: what it would be worth once another fault is mended, the next recording shows.
    pub at_recorded_peak: bool,
    /// Whether any other rule that explains the same allocations has the cause: it says what they are, this one only that they pile up.
    pub gives_way: bool,
    /// Claims of one rule with the same key have one cause and are told together.
    pub together: Option<FrameId>,
    tell: Tell<'f>,
}

/// What is found out about a claim, or about several that are told together.
#[derive(Debug, Clone)]
pub struct Worth {
    /// What is left of its allocations when other claims have taken theirs, ascending.
    pub about: Vec<AllocationId>,
    /// How sure the rules are: of several claims the surest.
    pub confidence: Confidence,
    /// What mending it takes off the recorded peak of requested bytes.
    pub peak: Option<Bytes>,
    /// The share of the peak that mending it saves where nothing else is wrong.
    pub share: f64,
    /// What mending it takes off what is held from the driver.
    pub reserved: Option<Bytes>,
    /// Bytes by which every turn grows, all claims together.
    pub pace: Option<Bytes>,
    /// Bytes that stand where they need not, all claims together.
    pub held: Option<Bytes>,
    /// The turns after the recording in which the device is full at this pace.
    pub turns_left: Option<u64>,
}

impl<'f> Claim<'f> {
    /// A claim about some allocations; of medium confidence, an error at most.
    pub fn new(
        rule: &'static Meta,
        about: impl IntoIterator<Item = AllocationId>,
        mending: Mending,
        tell: impl Fn(&Worth) -> Finding + Send + 'f,
    ) -> Claim<'f> {
        let mut about: Vec<AllocationId> = about.into_iter().collect();
        about.sort_unstable();
        about.dedup();
        Claim {
            rule,
            about,
            mending,
            confidence: Confidence::Medium,
            pace: None,
            held: None,
            whole: None,
            at_most: Severity::Error,
            undecided: None,
            by_itself: false,
            at_recorded_peak: false,
            gives_way: false,
            together: None,
            tell: Box::new(tell),
        }
    }

    /// As sure as this.
    #[must_use]
    pub fn sure(self, confidence: Confidence) -> Claim<'f> {
        Claim { confidence, ..self }
    }

    /// With so many bytes standing where they need not.
    #[must_use]
    pub fn holding(self, bytes: Bytes) -> Claim<'f> {
        Claim { held: Some(bytes), ..self }
    }

    /// Held or reserved bytes are a share of these.
    #[must_use]
    pub fn out_of(self, whole: Bytes) -> Claim<'f> {
        Claim { whole: Some(whole), ..self }
    }

    /// A fault whatever else is wrong with its allocations.
    #[must_use]
    pub fn by_itself(self) -> Claim<'f> {
        Claim { by_itself: true, ..self }
    }

    /// Of no more worth than at the peak that was recorded.
    #[must_use]
    pub fn at_recorded_peak(self) -> Claim<'f> {
        Claim { at_recorded_peak: true, ..self }
    }

    /// Never more than this, whatever it is worth.
    #[must_use]
    pub fn at_most(self, severity: Severity) -> Claim<'f> {
        Claim { at_most: severity, ..self }
    }

    /// The finding, told with what was found out.
    pub fn tell(&self, worth: &Worth) -> Finding {
        (self.tell)(worth)
    }
}

impl std::fmt::Debug for Claim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("rule", &self.rule.name).field("about", &self.about.len()).finish()
    }
}

/// Where a finding points.
#[derive(Debug, Clone, Default)]
pub(super) enum Anchor {
    /// At no line: the recording shows none.
    #[default]
    Nowhere,
    /// At a frame, with a stack that goes through it and the event that it belongs to.
    At(FrameId, Option<StackId>, Option<EventIndex>),
}

impl Anchor {
    /// The line that stands for a stack.
    pub(super) fn of_stack(facts: &Facts, stack: Option<StackId>) -> Anchor {
        let site = stack.and_then(|stack| Some((facts.site(stack)?, stack)));
        site.map_or(Anchor::Nowhere, |(frame, stack)| Anchor::At(frame, Some(stack), None))
    }

    /// The line responsible for some allocations: the narrowest that carries most of them, or past every forward that only
    /// hands them out; where no line below the loop carries most, the heaviest.
    pub(super) fn responsible(facts: &Facts, about: &[AllocationId], hands_out: bool) -> Anchor {
        Anchor::of_guilty(facts, &facts.guilty(about.iter().copied()), hands_out)
    }

    /// The line responsible for some stacks, as for allocations.
    pub(super) fn of_guilty(facts: &Facts, guilty: &[GuiltyStack], hands_out: bool) -> Anchor {
        let Some(frame) = facts.blame().responsible(guilty, hands_out) else { return Anchor::Nowhere };
        let through = guilty.iter().find(|one| facts.frames.python(one.stack).contains(&frame));
        let event = guilty.iter().filter_map(|one| one.event).min();
        Anchor::At(frame, through.map(|one| one.stack), event)
    }

    /// The frame.
    pub(super) fn frame(&self) -> Option<FrameId> {
        match self {
            Anchor::Nowhere => None,
            Anchor::At(frame, ..) => Some(*frame),
        }
    }
}

/// A finding in the making: everything that a rule has to say of it, nothing left out.
#[derive(Debug)]
pub(super) struct Telling {
    /// One phrase that stands alone.
    pub(super) message: String,
    /// One remedy in the imperative, with the code to write.
    pub(super) help: String,
    /// Where.
    pub(super) place: Anchor,
    /// What is to be seen there.
    pub(super) label: String,
    /// Other places that explain it.
    pub(super) related: Vec<Related>,
    /// Named measures.
    pub(super) evidence: Vec<Measure>,
}

impl Telling {
    /// The finding. Its severity and impact are the verdict's.
    pub(super) fn told(self, facts: &Facts, rule: &Meta, worth: &Worth) -> Finding {
        let Telling { message, help, place: at, label, related, evidence } = self;
        let (frame, stack, event) = match at {
            Anchor::Nowhere => (None, None, None),
            Anchor::At(frame, stack, event) => (Some(frame), stack, event),
        };
        let help = knob(facts, rule, &worth.about, stack).map_or(help, str::to_owned);
        let oldest = || {
            let born = |id: &AllocationId| facts.timeline.allocation(*id)?.alloc;
            worth.about.iter().filter_map(born).min_by_key(|event| event.position())
        };
        Finding {
            message,
            help,
            device: Some(facts.device),
            confidence: worth.confidence,
            phase: event.or_else(oldest).map(|event| facts.phase(event)).unwrap_or_default(),
            location: frame.and_then(|frame| place(facts, frame)),
            label,
            related,
            evidence,
            stack: stack.map(|stack| shown(facts, stack)).unwrap_or_default(),
            ..Finding::of(rule.name, rule.group, rule.level)
        }
    }
}

/// The library's own remedy: of those under whose functions most of the bytes were made, or else of the finding's own stack.
fn knob(facts: &Facts, rule: &Meta, about: &[AllocationId], stack: Option<StackId>) -> Option<&'static str> {
    let mut stacks: BTreeMap<StackId, u64> = BTreeMap::new();
    for one in facts.guilty(about.iter().copied()) {
        let bytes = stacks.entry(one.stack).or_default();
        *bytes = bytes.saturating_add(one.weight);
    }
    let of_stack = |stack: StackId| facts.frames.knob(facts.snapshot, stack, rule.name);
    let mut texts: BTreeMap<Option<&'static str>, u64> = BTreeMap::new();
    for (stack, bytes) in stacks {
        let sum = texts.entry(of_stack(stack)).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let most = texts.into_iter().max_by_key(|(_, bytes)| *bytes);
    most.and_then(|(text, _)| text).or_else(|| of_stack(stack?))
}

/// A frame that helps to understand a finding; none where the recording has no text for it, or it is the finding's own.
pub(super) fn related(
    facts: &Facts,
    frame: Option<FrameId>,
    own: &Anchor,
    message: impl Into<String>,
) -> Option<Related> {
    let frame = frame.filter(|frame| Some(*frame) != own.frame())?;
    let location: Location = place(facts, frame)?;
    Some(Related { location, message: message.into(), stood: None })
}

/// How many lines that make what a finding is about are named beside the blamed one.
const NAMED: usize = 4;

/// Of the heaviest line's bytes, the share from which on another line is worth a look.
const WORTH_A_LOOK: f64 = 0.1;

/// The other lines that make what a finding is about, those with most first, and how much that is.
pub(super) fn made_at(facts: &Facts, about: &[AllocationId], place: &Anchor) -> Vec<Related> {
    let mut lines: BTreeMap<FrameId, Bytes> = BTreeMap::new();
    for one in facts.guilty(about.iter().copied()) {
        if let Some(frame) = facts.site(one.stack) {
            *lines.entry(frame).or_default() += Bytes(one.weight);
        }
    }
    let mut lines: Vec<(FrameId, Bytes)> = lines.into_iter().collect();
    lines.sort_by_key(|(frame, bytes)| (Reverse(*bytes), *frame));
    let one = |(frame, bytes): (FrameId, Bytes)| {
        related(facts, Some(frame), place, format!("{bytes} of it is made here"))
    };
    let most = lines.first().map(|(_, bytes)| *bytes).unwrap_or_default();
    lines.retain(|(_, bytes)| bytes.share_of(most) >= WORTH_A_LOOK);
    lines.into_iter().filter_map(one).take(NAMED).collect()
}

/// What else a finding may say, that most do not.
pub(super) trait Besides {
    /// A call to look for in the source, since the recording cannot know its line.
    fn seeking(self, seek: Option<Seek>) -> Self;
    /// What in the source would make it no fault.
    fn excused_by(self, excuse: Option<Excuse>) -> Self;
}

impl Besides for Finding {
    fn seeking(self, seek: Option<Seek>) -> Finding {
        Finding { seek, ..self }
    }

    fn excused_by(self, excuse: Option<Excuse>) -> Finding {
        Finding { excuse, ..self }
    }
}
