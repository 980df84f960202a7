//! What is known already: the baseline of `memlint check`, or the recording that it is held against.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::CliError;
use super::file;
use super::reading::sources;
use crate::engine::Report;
use crate::finding::Tolerance;
use crate::gate::{Baseline, Changes, Terms};
use crate::input::Source;
use crate::unit::{count, shown_name};

/// Findings that do not count because they are known.
#[derive(Debug, Args)]
#[command(next_help_heading = "Known findings")]
pub(super) struct Known {
    /// Findings that this file knows do not count, unless they have grown; entries that match nothing are reported.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,

    /// Write what is found now to the baseline; reasons stay. Notes and ignored findings are left out.
    #[arg(long, conflicts_with = "prune_baseline")]
    pub(super) update_baseline: bool,

    /// Take entries that match nothing out of the baseline; nothing is added.
    #[arg(long)]
    pub(super) prune_baseline: bool,

    /// Fail on what is worse than in this snapshot (or folder, one for each rank): findings that it does not have, or
    /// smaller, a higher peak, faster growth. What it has, too, does not count.
    #[arg(long, value_name = "BASE", conflicts_with_all = ["baseline", "update_baseline", "prune_baseline"])]
    pub(super) against: Option<PathBuf>,

    /// By how much a finding of the baseline may grow, such as 5%; 1 MiB (64 KiB an iteration) is always allowed.
    #[arg(long, value_name = "PERCENT", value_parser = tolerance, default_value = "10%")]
    pub(super) baseline_tolerance: Tolerance,
}

/// The baseline, read before anything else: a bad one costs nobody the time of a check.
pub(super) struct KnownFindings<'a> {
    arguments: &'a Known,
    baseline: Option<Baseline>,
}

impl Known {
    /// Reads the baseline, where one is named.
    pub(super) fn read(&self) -> Result<KnownFindings<'_>, CliError> {
        let flag = match (self.update_baseline, self.prune_baseline) {
            (true, _) => Some("--update-baseline"),
            (_, true) => Some("--prune-baseline"),
            _ => None,
        };
        let Some(path) = &self.baseline else {
            return match flag {
                Some(flag) => Err(CliError::NoBaseline { flag }),
                None => Ok(KnownFindings { arguments: self, baseline: None }),
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
        Ok(KnownFindings { arguments: self, baseline: Some(baseline) })
    }
}

impl Known {
    /// The files that are named, whatever for.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.baseline.iter().chain(&self.against).map(PathBuf::as_path)
    }

    /// The snapshots to hold the checked ones against, where that is asked for, and what messages call them.
    pub(super) fn base(&self, checked: &[Source]) -> Result<Option<(String, Vec<Source>)>, CliError> {
        let Some(path) = &self.against else { return Ok(None) };
        let base = sources(std::slice::from_ref(path))?;
        let both = [checked, &base];
        if both.iter().all(|side| side.contains(&Source::Stdin)) {
            return Err(CliError::StdinTwice);
        }
        Ok(Some((path.display().to_string(), base)))
    }
}

impl KnownFindings<'_> {
    /// Settles what is known, after the baseline was updated or pruned, where that is asked for.
    pub(super) fn settle(&self, report: &mut Report, quiet: bool) -> Result<(), CliError> {
        let (Some(baseline), Some(path)) = (&self.baseline, &self.arguments.baseline) else { return Ok(()) };
        let name = path.display().to_string();
        let terms = Terms { name: &name, tolerance: self.arguments.baseline_tolerance, selected: &|_| true };
        let written = if self.arguments.update_baseline {
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

/// `memlint-baseline.json: 3 entries (1 new, 2 gone)`.
fn tell(name: &str, changes: Changes) {
    let parts = [(changes.new, "new"), (changes.changed, "changed"), (changes.gone, "gone")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let parts = if parts.is_empty() { "as before".to_owned() } else { parts.join(", ") };
    let line = format!("{}: {} ({parts})", shown_name(name), count(changes.entries, "entry"));
    // Where even standard error is gone, there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A share in per cent.
fn tolerance(text: &str) -> Result<Tolerance, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match number.parse::<f64>() {
        Ok(percent) if plain && percent.is_finite() => {
            Ok(Tolerance { share: percent / 100.0, ..Tolerance::default() })
        }
        _ => Err("write a percentage, such as 5%".to_owned()),
    }
}
