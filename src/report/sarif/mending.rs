//! Edits as `fix` objects.

use super::log::{ArtifactChange, Mending, Message, Region, Replacement};
use super::uri;
use crate::engine::Report;
use crate::finding::Finding;
use crate::report::fix;
use crate::report::place::SourceLine;
use crate::source::SourceMap;

/// What mends a finding, where that is certain.
pub(super) fn of(report: &Report, finding: &Finding, sources: &SourceMap) -> Option<Mending> {
    let (fix, file) = fix::certain(report, finding, sources)?;
    let location = uri::of(SourceLine::of(finding.location.as_ref()?, sources).address(sources));
    let replacements = fix.edits.iter().map(|edit| {
        let ((start_line, column), (end_line, end_column)) = fix::region(edit, &file);
        let (start_column, end_column) = (Some(column), Some(end_column));
        Replacement {
            deleted_region: Region { start_line, start_column, end_line: Some(end_line), end_column },
            inserted_content: Message { text: edit.text.clone() },
        }
    });
    Some(Mending {
        description: Message { text: format!("{} ({}: {})", fix.title, fix.applicability.name(), fix.why) },
        artifact_changes: vec![ArtifactChange {
            artifact_location: location,
            replacements: replacements.collect(),
        }],
    })
}
