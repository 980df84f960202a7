//! Programs that did not come to their own end.
//!
//! In: recordings. Out: a notice for each way in which programs ended before their end, with the recordings that tell of it. Always: what such
//! a recording lacks is not taken for mended.

use std::collections::BTreeMap;

use super::Recording;
use crate::finding::{Matter, Notice, Severity};
use crate::unit::{count, shown_name};

/// Says which programs ended with an exception that nobody caught, or earlier than was asked for.
pub(super) fn early(recordings: &[&Recording]) -> Vec<Notice> {
    let mut ends: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for recording in recordings {
        if let Some(ended) = &recording.ended {
            ends.entry(ended.to_string()).or_default().push(&recording.name);
        }
    }
    ends.iter().map(|(end, names)| notice(end, names, recordings.len())).collect()
}

fn notice(end: &str, names: &[&str], all: usize) -> Notice {
    let place = match names {
        _ if all == 1 => String::new(),
        [name] => format!(" in {}", shown_name(name)),
        _ => format!(" in {}", count(names.len(), "recording")),
    };
    Notice {
        kind: Matter::EndedEarly,
        severity: Severity::Warning,
        message: format!("{end}{place}: what it would have done after that is not judged"),
        help: "mend the program first, or ask for fewer iterations, and record again".to_owned(),
        location: None,
    }
}
