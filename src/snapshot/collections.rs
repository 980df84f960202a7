//! When Python's garbage collector freed something (`memlint record`): what goes meanwhile was held by a reference cycle.
//!
//! In and out: the text of the key `memlint_collections`, JSON with a version. Always: bounded and validated on reading; a text that is not
//! all as it should be is a key that memlint does not know.

use serde::{Deserialize, Serialize};

use crate::unit::Micros;

/// The version of the text.
const VERSION: u32 = 1;
/// The most collections that are told (`MOST` in `python/memlint/_recorder/garbage.py`).
const MOST: usize = 10_000;
/// The longest text: two numbers and two commas for each, and the words around them.
const LONGEST: usize = MOST * 42 + 100;

/// The collections that freed something, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collections {
    version: u32,
    /// Of each the microseconds since the one before began (of the first since the epoch), and how many it took.
    spans: Vec<u64>,
}

impl Collections {
    /// Reads the text of the key; `None` where anything in it is not as it should be.
    pub(super) fn read(text: &str) -> Option<Collections> {
        if text.len() > LONGEST {
            return None;
        }
        let collections: Collections = serde_json::from_str(text).ok()?;
        let spans = collections.spans.len();
        let is_whole = spans.is_multiple_of(2) && spans <= 2 * MOST;
        (collections.version == VERSION && is_whole).then_some(collections)
    }

    /// The text of the key.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether none was left out: of too many the latest are told.
    pub fn are_all(&self) -> bool {
        self.spans.len() < 2 * MOST
    }

    /// When each began and ended, on the clock of the events.
    pub fn spans(&self) -> impl Iterator<Item = (Micros, Micros)> {
        let micros = |number: u64| Micros(i64::try_from(number).unwrap_or(i64::MAX));
        self.spans.as_chunks::<2>().0.iter().scan(0_u64, move |begun, &[since, took]| {
            *begun = begun.saturating_add(since);
            Some((micros(*begun), micros(begun.saturating_add(took))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let text = r#"{"version":1,"spans":[1000,5,20,3]}"#;
        let collections = Collections::read(text).unwrap();
        assert_eq!(collections.text(), text);
        let spans: Vec<_> = collections.spans().collect();
        assert_eq!(spans, [(Micros(1000), Micros(1005)), (Micros(1020), Micros(1023))]);
        for other in [
            text.replace("\"version\":1", "\"version\":2"),
            text.replace(",3]", "]"),
            text.replace("20", "-20"),
            text.replace('}', ",\"more\":1}"),
            format!(r#"{{"version":1,"spans":[{}0]}}"#, "0,".repeat(2 * MOST + 1)),
        ] {
            assert_eq!(Collections::read(&other), None, "{other}");
        }
        let huge = format!(r#"{{"version":1,"spans":[{},1,1,1]}}"#, u64::MAX);
        let ends: Vec<_> = Collections::read(&huge).unwrap().spans().map(|(_, end)| end).collect();
        assert_eq!(ends, [Micros(i64::MAX); 2]);
    }
}
