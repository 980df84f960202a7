//! What the source says of findings that need it, and what a person should know of the sources themselves.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Changed, SourceMap};
use crate::engine::Report;
use crate::finding::{Excuse, Finding, Location, Matter, Measure, Notice, Quantity, Severity};
use crate::unit::{Confidence, count, shown_name};

/// Files that a notice lists.
const MOST_LISTED: usize = 5;

/// Reads the source for findings that need it: moves those that seek a call to its line, and takes back the level of
/// those that the source excuses. Without the source they stay as they are. Says which sources have changed since the
/// recording, and which were not opened.
pub fn settle(report: &mut Report, sources: &SourceMap) {
    for finding in &mut report.findings {
        move_to_call(finding, sources);
        weigh_excuse(finding, sources);
        tell_change(finding, sources);
    }
    // Stable: what the engine put in order stays so among equals.
    report.findings.sort_by_key(|finding| Reverse(finding.severity));
    report.notices.extend(not_opened(sources));
}

fn move_to_call(finding: &mut Finding, sources: &SourceMap) {
    let Some(seek) = &finding.seek else { return };
    let Some(location) = &mut finding.location else {
        if let Some((file, line)) = sources.sole_caller(seek) {
            finding.location = Some(Location { file, line, function: String::new() });
            seek.label.as_ref().clone_into(&mut finding.label);
        }
        return;
    };
    let Some(line) = sources.line_of_call(&location.file, seek) else { return };
    location.line = line;
    location.function.clear();
    seek.label.as_ref().clone_into(&mut finding.label);
    finding.stack.clear();
}

fn weigh_excuse(finding: &mut Finding, sources: &SourceMap) {
    let (Some(excuse), Some(location)) = (finding.excuse, &finding.location) else { return };
    let Some(source) = sources.find(location) else { return };
    let (is_so, name, text) = match excuse {
        Excuse::ZeroesInPlace => (
            source.file.zeroes_gradients_around(source.line),
            "zeroes-in-place",
            "this loop's source fills gradients with zeros in place, which no recording shows",
        ),
        Excuse::StateAlone => (
            source.file.records_state_alone(source.line),
            "state-alone",
            "the source asks for the state alone, and so for no history",
        ),
    };
    if is_so {
        finding.severity = Severity::Info;
        finding.confidence = Confidence::Low;
        finding.evidence.push(Measure {
            name: name.into(),
            value: Quantity::Text("source".to_owned()),
            text: text.to_owned(),
        });
    }
}

/// Says of a finding that its file has changed, and what that means for its places.
fn tell_change(finding: &mut Finding, sources: &SourceMap) {
    let Some(location) = &finding.location else { return };
    let Some(changed) = sources.changed(&location.file) else { return };
    let words = changed.words(&location.file);
    let (name, places) = match sources.find(location) {
        Some(_) => ("found-again", "its line is found again by what it calls"),
        None => ("as-recorded", "its places are named as recorded"),
    };
    finding.evidence.push(Measure {
        name: "changed-source".into(),
        value: Quantity::Text(name.to_owned()),
        text: format!("{words}; {places}"),
    });
}

impl Changed {
    /// For a person: "train.py has changed since the recording: line 17 is in `main`, not in `train`".
    pub fn words(&self, recorded: &str) -> String {
        let (name, misfit) = (shown_name(self.file.name()), &self.misfit);
        let what = if self.sure && self.by_name {
            format!("{name} has changed since the recording, or is another file of that name")
        } else if self.sure {
            format!("{name} has changed since the recording")
        } else {
            format!("{name} is not the recorded {}, or has changed since", shown_name(recorded))
        };
        format!("{what}: line {} {}", misfit.line, misfit.why)
    }
}

/// Sources that are there and were not opened.
fn not_opened(sources: &SourceMap) -> Option<Notice> {
    let outside = sources.outside();
    let folders: BTreeSet<String> = outside
        .iter()
        .filter_map(|path| path.parent())
        .map(
            |folder| {
                if folder.as_os_str().is_empty() { ".".to_owned() } else { folder.display().to_string() }
            },
        )
        .collect();
    if outside.is_empty() {
        return None;
    }
    let mut named: Vec<String> =
        outside.iter().take(MOST_LISTED).map(|path| shown_name(&path.display().to_string())).collect();
    if outside.len() > named.len() {
        named.push(format!("{} more", outside.len() - named.len()));
    }
    let roots: Vec<String> = folders
        .iter()
        .take(MOST_LISTED)
        .map(|folder| format!("--source-root {}", shown_name(folder)))
        .collect();
    Some(Notice {
        kind: Matter::SourceOutside,
        severity: Severity::Info,
        message: format!(
            "{} outside of the working copy or the named folders not opened: {}",
            count(outside.len(), "source file"),
            named.join(", ")
        ),
        help: format!("if the program lies there, name it: {}", roots.join(" ")),
        location: None,
    })
}
