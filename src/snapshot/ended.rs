//! What a recording says of how its program ended (`memlint record`): by an exception that nobody caught, or after fewer steps than were asked for.
//!
//! In and out: the text of the key `memlint_end`, JSON with a version. Always: bounded and validated on reading; a text that is not all as it
//! should be is a key that memlint does not know.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::unit::count;

/// The version of the text.
const VERSION: u32 = 1;
/// Longer names of exceptions are not read.
const LONGEST_NAME: usize = 200;
/// The longest text: a name, two numbers and the words around them.
const LONGEST: usize = 2 * LONGEST_NAME;

/// The end of a program that did not come to its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    version: u32,
    /// The class of the exception; empty where it is not told.
    exception: String,
    /// How many steps the optimizers had made.
    steps: u64,
    /// How many were to be recorded, where it came to its end before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<u64>,
}

impl Ended {
    /// Reads the text of the key; `None` where anything in it is not as it should be.
    pub(super) fn read(text: &str) -> Option<Ended> {
        if text.len() > LONGEST {
            return None;
        }
        let ended: Ended = serde_json::from_str(text).ok()?;
        let is_name = ended.exception.len() <= LONGEST_NAME
            && ended.exception.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        (ended.version == VERSION && is_name).then_some(ended)
    }

    /// The text of the key.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The same without the exception's name, which may be the user's own word.
    #[must_use]
    pub fn unnamed(self) -> Ended {
        Ended { exception: String::new(), ..self }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = count(usize::try_from(self.steps).unwrap_or(usize::MAX), "optimizer step");
        match (self.asked, self.exception.as_str()) {
            (Some(asked), _) => write!(out, "the program ended after {steps}, and {asked} were asked for"),
            (None, "") => write!(out, "the program ended with an exception after {steps}"),
            (None, name) => write!(out, "the program ended with {name} after {steps}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let text = r#"{"version":1,"exception":"TypeError","steps":5}"#;
        let ended = Ended::read(text).unwrap();
        assert_eq!(ended.text(), text);
        assert_eq!(ended.to_string(), "the program ended with TypeError after 5 optimizer steps");
        assert_eq!(
            ended.unnamed().to_string(),
            "the program ended with an exception after 5 optimizer steps"
        );
        let fewer = r#"{"version":1,"exception":"","steps":8,"asked":10}"#;
        let ended = Ended::read(fewer).unwrap();
        assert_eq!(ended.text(), fewer);
        assert_eq!(ended.to_string(), "the program ended after 8 optimizer steps, and 10 were asked for");
        for other in [
            text.replace("\"version\":1", "\"version\":2"),
            text.replace("TypeError", "Type\\u001bError"),
            text.replace("TypeError", &"E".repeat(LONGEST_NAME + 1)),
            text.replace('}', ",\"more\":1}"),
            text.replace('5', "-5"),
        ] {
            assert_eq!(Ended::read(&other), None, "{other}");
        }
    }
}
