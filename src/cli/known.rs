//! What is known already: the baseline of `memlint check`, or the recording that it is held against.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::arguments::Known;
use super::error::CliError;
use super::reading::sources;
use super::{file, terminal};
use crate::config::{Amount, Settings};
use crate::engine::Report;
use crate::finding::{Matter, Notice, Severity, Tolerance};
use crate::gate::{Baseline, BaselineChanges, Terms};
use crate::input::{Expansion, Source};
use crate::unit::{count, shown_name};

/// The baseline, read before anything else: a bad one costs nobody the time of a check.
pub(super) struct KnownFindings<'a> {
    arguments: &'a Known,
    settings: &'a Settings,
    baseline: Option<(&'a Path, Baseline)>,
}

impl Known {
    /// Reads the baseline, where one is named.
    pub(super) fn read<'a>(&'a self, settings: &'a Settings) -> Result<KnownFindings<'a>, CliError> {
        let flag = match (self.update_baseline, self.prune_baseline) {
            (true, _) => Some("--update-baseline"),
            (_, true) => Some("--prune-baseline"),
            _ => None,
        };
        // The base of `--against` stands in for a baseline that the configuration names.
        let path = settings.baseline.as_ref().map(|path| &path.value).filter(|_| self.against.is_none());
        let Some(path) = path else {
            return match flag {
                Some(flag) => Err(CliError::NoBaseline { flag }),
                None => Ok(KnownFindings { arguments: self, settings, baseline: None }),
            };
        };
        let name = || path.display().to_string();
        let baseline = match fs::read_to_string(path) {
            Ok(text) => Baseline::read(&text).map_err(|error| CliError::Baseline { name: name(), error })?,
            Err(error) if error.kind() == ErrorKind::NotFound && self.update_baseline => Baseline::default(),
            Err(error) => {
                let hint = match error.kind() {
                    ErrorKind::NotFound => "`--update-baseline` makes one",
                    ErrorKind::InvalidData => "it is no text, so no baseline",
                    _ => "is it the right file, and may you read it?",
                };
                return Err(CliError::UnreadableBaseline { name: name(), error, hint });
            }
        };
        Ok(KnownFindings { arguments: self, settings, baseline: Some((path, baseline)) })
    }

    /// The snapshots to hold the checked ones against, where that is asked for, and what messages call them.
    pub(super) fn base(&self, checked: &[Source]) -> Result<Option<(String, Expansion)>, CliError> {
        let Some(path) = &self.against else { return Ok(None) };
        let base = sources(std::slice::from_ref(path))?;
        let both = [checked, &base.sources];
        if both.iter().all(|side| side.contains(&Source::Stdin)) {
            return Err(CliError::StdinTwice);
        }
        Ok(Some((Source::named(path).name(), base)))
    }
}

impl KnownFindings<'_> {
    /// Settles what is known, after the baseline was updated or pruned, where that is asked for.
    pub(super) fn settle(&self, report: &mut Report, quiet: bool) -> Result<(), CliError> {
        let Some((path, baseline)) = &self.baseline else {
            report.notices.extend(self.settings.baseline.as_ref().map(|path| passed_over(&path.value)));
            return Ok(());
        };
        let name = path.display().to_string();
        let selected = |rule: &str| self.settings.selection.runs(rule);
        let terms = Terms { name: &name, tolerance: tolerance(self.settings), selected: &selected };
        let asked = self.arguments.update_baseline || self.arguments.prune_baseline;
        let written = if asked && !report.unread.is_empty() {
            terminal::say(&format!("{}: not written, as not all files could be read", shown_name(&name)));
            None
        } else if self.arguments.update_baseline {
            Some(baseline.updated(report, &terms))
        } else if self.arguments.prune_baseline {
            Some(baseline.pruned(report, &terms))
        } else {
            None
        };
        if let Some(written) = &written {
            file::replace(path, |out| written.write(out))?;
            if !quiet {
                tell(&name, written.changes_since(baseline));
            }
        }
        written.as_ref().unwrap_or(baseline).settle(report, &terms);
        Ok(())
    }
}

/// Says that a baseline is set and not heeded.
fn passed_over(baseline: &Path) -> Notice {
    Notice {
        kind: Matter::BaselineNotHeeded,
        severity: Severity::Info,
        message: format!(
            "the baseline `{}` is not heeded: the base of `--against` stands in for it",
            baseline.display()
        ),
        help: "leave `--against` out to hold the recording against the baseline".to_owned(),
        location: None,
    }
}

/// `memlint-baseline.json: 3 entries (1 new, 2 gone)`.
fn tell(name: &str, changes: BaselineChanges) {
    let parts = [(changes.new, "new"), (changes.changed, "changed"), (changes.gone, "gone")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let parts = if parts.is_empty() { "as before".to_owned() } else { parts.join(", ") };
    terminal::say(&format!("{}: {} ({parts})", shown_name(name), count(changes.entries, "entry")));
}

/// By how much a finding may grow.
fn tolerance(settings: &Settings) -> Tolerance {
    match settings.tolerance.as_ref().map(|amount| amount.value) {
        Some(Amount::Share(share)) => Tolerance { share, ..Tolerance::default() },
        Some(Amount::Bytes(bytes)) => Tolerance::of_bytes(bytes),
        None => Tolerance::default(),
    }
}
