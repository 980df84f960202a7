//! The base of `memlint check --against`: read like any snapshot, and held against each of those that are checked.

use std::path::Path;

use super::arguments::Reading;
use super::check::refuse_what_cannot_be_judged;
use super::error::CliError;
use super::reading::read;
use crate::comparison::{Comparison, Measured, Side, Threshold, regressions};
use crate::engine::{self, Report};
use crate::finding::{Finding, Notice, Severity, Tolerance};
use crate::gate::inherit;
use crate::input::Source;
use crate::rules;
use crate::source::{self, SourceMap};

/// What is left of the base when it was read: its memory, and what the rules say of it.
pub(super) struct Base {
    name: String,
    measured: Vec<Measured>,
    report: Report,
}

impl Base {
    /// Reads a snapshot, or those of a folder.
    pub(super) fn read(path: &Path, reading: &Reading, files: &SourceMap) -> Result<Base, CliError> {
        let (mut measured, mut examined) = (Vec::new(), Vec::new());
        for source in Source::named(path).expand()? {
            let input = read(&source, reading)?;
            refuse_what_cannot_be_judged(&input)?;
            measured.push(Measured::of(&input));
            examined.push(engine::examine(&input, &rules::by_default()));
        }
        let mut report = Report::of(examined);
        source::settle(&mut report.findings, files);
        Ok(Base { name: path.display().to_string(), measured, report })
    }

    /// Settles what the base has, too, and adds what is worse although no rule says why.
    pub(super) fn settle(&self, report: &mut Report, heads: &[Measured]) -> Result<(), CliError> {
        inherit(report, &self.report, &Tolerance::default());
        let mut found: Vec<Finding> = Vec::new();
        let mut doubts: Vec<String> = Vec::new();
        for (position, head) in heads.iter().enumerate() {
            let base = self.beside(position, head, heads.len())?;
            let side = |measured, report| Side { measured, report };
            let comparison = Comparison::of(side(base, &self.report), side(head, report));
            let worse = regressions(&comparison, report, position, &Threshold::default());
            found.extend(worse.into_iter().map(|finding| Finding { input: position, ..finding }));
            doubts.extend(comparison.doubts);
        }
        doubts.sort();
        doubts.dedup();
        report.notices.extend(doubts.into_iter().map(not_compared));
        report.add(found);
        Ok(())
    }

    /// The recording of the base that belongs to one of the head: of the same rank, or at the same place.
    fn beside(&self, position: usize, head: &Measured, heads: usize) -> Result<&Measured, CliError> {
        let of_rank = |one: &&Measured| one.rank.is_some() && one.rank == head.rank;
        let found = match self.measured.as_slice() {
            [one] => Some(one),
            several => several
                .iter()
                .find(of_rank)
                .or_else(|| several.get(position).filter(|one| several.len() == heads && one.rank.is_none())),
        };
        found.ok_or_else(|| CliError::Unpaired { name: head.name.clone(), base: self.name.clone() })
    }
}

fn not_compared(doubt: String) -> Notice {
    Notice {
        kind: "not-compared",
        severity: Severity::Warning,
        message: doubt,
        help: "record both in the same way, then compare again".to_owned(),
        location: None,
    }
}
