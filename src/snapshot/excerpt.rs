//! What a slice says of the recording that it was cut out of: which part it is, and what was found in the whole.
//!
//! In and out: the text of the key `memlint_slice`, JSON with a version. Always: bounded and validated on reading; a text
//! that is not all as it should be is no mark of a slice. Nothing in it excuses anything: what was found in the whole only adds to
//! what the events of the slice show.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version of the text.
const VERSION: u32 = 1;
/// Longer texts are not read: [`MOST_FINDINGS`] with stacks of tens of lines are shorter.
const LONGEST: usize = 1 << 20;
/// At most so many findings are carried; the recordings of the corpus have nine at most (chosen, not measured).
pub const MOST_FINDINGS: usize = 200;
/// No rule has a longer name; the longest is `activations-without-backward`.
const LONGEST_RULE: usize = 40;
/// At most so many lines of a stack are carried (chosen, not measured).
pub const DEEPEST: usize = 100;
/// No system opens longer paths (`PATH_MAX` of Linux).
const LONGEST_NAME: usize = 4096;

/// What a slice says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excerpt {
    version: u32,
    /// The first iteration that it holds, counted from 1.
    pub first: usize,
    /// The last.
    pub last: usize,
    /// How many the recording held that it was cut out of.
    pub of: usize,
    /// Whether that recording had lost its beginning: what the slice lacks is then not missing on purpose.
    pub lost: bool,
    /// What was found in the whole recording.
    pub findings: Vec<Inherited>,
}

/// Something that was found in the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inherited {
    /// The rule's name.
    pub rule: String,
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// `low`, `medium` or `high`.
    pub confidence: String,
    /// The ordinal of the device.
    pub device: Option<u32>,
    /// Where.
    pub place: Option<InheritedPlace>,
    /// The user's lines of the recorded stack, innermost first: by them it is the same finding in another run.
    pub stack: Vec<InheritedPlace>,
    /// Whether filling gradients with zeros in place would excuse it.
    pub zeroes_in_place: bool,
}

/// A recorded line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InheritedPlace {
    /// The file as recorded.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// The function's bare name.
    pub function: String,
}

impl Excerpt {
    /// Some iterations, counted from 1 and both ends included, of so many.
    pub fn of(first: usize, last: usize, of: usize) -> Excerpt {
        Excerpt { version: VERSION, first, last, of, lost: false, findings: Vec::new() }
    }

    /// How many iterations it holds.
    pub fn iterations(&self) -> usize {
        (self.last + 1).saturating_sub(self.first)
    }

    /// Reads the text of the key; `None` where anything in it is not as it should be.
    pub(super) fn read(text: &str) -> Option<Excerpt> {
        if text.len() > LONGEST {
            return None;
        }
        let excerpt: Excerpt = serde_json::from_str(text).ok()?;
        excerpt.is_valid().then_some(excerpt)
    }

    /// The text of the key: as many findings, from the first, as may be read again.
    pub(super) fn text(&self) -> String {
        let mut excerpt = self.clone();
        excerpt.findings.retain(Inherited::is_valid);
        loop {
            let text = serde_json::to_string(&excerpt).unwrap_or_default();
            if text.len() <= LONGEST || excerpt.findings.pop().is_none() {
                return text;
            }
        }
    }

    fn is_valid(&self) -> bool {
        let Excerpt { version, first, last, of, findings, .. } = self;
        *version == VERSION
            && (1..=*last).contains(first)
            && last <= of
            && *of < usize::MAX
            && findings.len() <= MOST_FINDINGS
            && findings.iter().all(Inherited::is_valid)
    }
}

impl Inherited {
    fn is_valid(&self) -> bool {
        let short = |name: &String| name.len() <= LONGEST_NAME;
        let mut places = self.place.iter().chain(&self.stack);
        self.stack.len() <= DEEPEST
            && is_rule(&self.rule)
            && ["info", "warning", "error"].contains(&self.severity.as_str())
            && ["low", "medium", "high"].contains(&self.confidence.as_str())
            && places.all(|place| short(&place.file) && short(&place.function))
    }
}

/// Whether a word is written as names of rules are.
fn is_rule(name: &str) -> bool {
    name.len() <= LONGEST_RULE && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iterations {}..{} of {}", self.first, self.last, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_and_a_wrong_one_is_none() {
        let place = InheritedPlace { file: "/job/train.py".to_owned(), line: 7, function: "main".to_owned() };
        let finding = Inherited {
            rule: "retained-graph".to_owned(),
            severity: "error".to_owned(),
            confidence: "high".to_owned(),
            place: Some(place),
            ..Inherited::default()
        };
        let excerpt = Excerpt { findings: vec![finding.clone()], ..Excerpt::of(3, 5, 20) };
        assert_eq!(Excerpt::read(&excerpt.text()), Some(excerpt.clone()));
        assert_eq!((excerpt.to_string().as_str(), excerpt.iterations()), ("iterations 3..5 of 20", 3));
        let long = Inherited { rule: "x".repeat(LONGEST_RULE + 1), ..finding.clone() };
        let levelless = Inherited { severity: "fatal".to_owned(), ..finding.clone() };
        for wrong in [
            Excerpt { version: 2, ..excerpt.clone() },
            Excerpt { first: 0, ..excerpt.clone() },
            Excerpt { first: 6, ..excerpt.clone() },
            Excerpt { last: 21, ..excerpt.clone() },
            Excerpt { findings: vec![finding; MOST_FINDINGS + 1], ..excerpt.clone() },
            Excerpt { findings: vec![long], ..excerpt.clone() },
            Excerpt { findings: vec![levelless], ..excerpt.clone() },
        ] {
            assert_eq!(Excerpt::read(&serde_json::to_string(&wrong).unwrap()), None, "{wrong:?}");
        }
        let much = Inherited { rule: "B".to_owned(), ..excerpt.findings[0].clone() };
        let mixed = Excerpt { findings: vec![much, excerpt.findings[0].clone()], ..excerpt.clone() };
        assert_eq!(
            Excerpt::read(&mixed.text()),
            Some(excerpt.clone()),
            "what could not be read is not written"
        );
        assert_eq!(Excerpt::read("iterations 3..5 of 20"), None);
        assert_eq!(Excerpt::read(&excerpt.text().replace("\"lost\"", "\"found\"")), None);
        assert_eq!(Excerpt::read(&format!("{}{}", excerpt.text(), " ".repeat(LONGEST))), None);
    }
}
