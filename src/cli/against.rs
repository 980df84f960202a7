//! The base of `memlint check --against`: read like any snapshot, and held against each of those that are checked.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use super::arguments::Limits;
use super::counterpart::{Identity, counterpart};
use super::error::CliError;
use super::reading::read_all;
use super::required::refuse_what_cannot_be_compared;
use crate::comparison::{Comparison, Doubt, Measured, Moves, RegressionLimits, Side, regressions};
use crate::engine::{self, FromBase, Plan, Report};
use crate::finding::{Finding, Matter, Notice, Severity, Tolerance};
use crate::gate::inherit;
use crate::input::Source;
use crate::report::{Look, diff};
use crate::source::{self, SourceMap};

/// What is left of the base when it was read: its memory, and what the rules say of it.
pub(super) struct Base {
    name: String,
    measured: Vec<Measured>,
    report: Report,
}

impl Base {
    /// Reads the snapshots of the base.
    pub(super) fn read(
        name: String,
        sources: &[Source],
        limits: &Limits,
        jobs: Option<NonZeroUsize>,
        files: &SourceMap,
        plan: &Plan<'_>,
    ) -> Result<Base, CliError> {
        let seen = read_all(sources, limits, jobs, |input| {
            refuse_what_cannot_be_compared(input)?;
            Ok((Measured::of(input), engine::examine(input, plan)))
        })?;
        let (measured, examined): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        let mut report = engine::conclude(examined, Vec::new(), plan);
        let files = files.seen_by(&report.recordings);
        source::settle(&mut report, &files);
        Ok(Base { name, measured, report })
    }

    /// Settles what the base has, too, adds what is worse although no rule says why, and leaves the base's recordings to whoever
    /// shows both.
    pub(super) fn settle<'a>(
        self,
        report: &mut Report,
        heads: impl Iterator<Item = &'a Measured>,
        plan: &Plan<'_>,
    ) -> Result<(), CliError> {
        let heads: Vec<&Measured> = heads.collect();
        let moves = Moves::of(&self.measured, heads.iter().copied());
        inherit(report, &self.report, &moves, &Tolerance::default());
        let mut found: Vec<Finding> = Vec::new();
        let mut doubts: Vec<Doubt> = Vec::new();
        for (position, head) in heads.into_iter().enumerate() {
            let base = self.beside(position, head, report.recordings.len())?;
            let side = |measured, report| Side { measured, report };
            let comparison = Comparison::of(side(base, &self.report), side(head, report));
            let admit = |finding| plan.admitted(finding);
            let worse = regressions(&comparison, report, position, &RegressionLimits::default(), admit);
            found.extend(worse.into_iter().map(|finding| Finding { input: position, ..finding }));
            report.differences.push(FromBase {
                base: comparison.base.clone(),
                peaks: comparison.highest_rise().map(|peak| (peak.base, peak.head)),
                text: diff::render(&comparison, &Look::PLAIN),
            });
            doubts.extend(comparison.beyond());
            doubts.extend(comparison.doubts);
        }
        // What counts first.
        doubts.sort_by(|one, other| (other.counts, one).cmp(&(one.counts, other)));
        doubts.dedup();
        report.notices.extend(doubts.into_iter().map(not_compared));
        report.notices.extend(self.missing_ranks(report));
        report.add(found);
        report.base = self.report.recordings;
        Ok(())
    }

    /// Says which ranks the base has alone: one that wrote nothing is not in order because the others are.
    fn missing_ranks(&self, report: &Report) -> Option<Notice> {
        let here: BTreeSet<u32> = report.recordings.iter().filter_map(|one| one.rank).collect();
        let base: BTreeSet<u32> = self.measured.iter().filter_map(|one| one.rank).collect();
        // A base of one is that of all, and so it tells of no rank.
        let missing: Vec<u32> = base.difference(&here).copied().filter(|_| self.measured.len() > 1).collect();
        let place = format!("here, and one in the base `{}`", self.name);
        (!missing.is_empty()).then(|| engine::without_snapshot(&missing, &place))
    }

    /// The recording of the base that belongs to one of the head.
    fn beside(&self, position: usize, head: &Measured, heads: usize) -> Result<&Measured, CliError> {
        let base: Vec<Identity> = self.measured.iter().map(place).collect();
        let found = counterpart(&base, place(head), position, heads).and_then(|at| self.measured.get(at));
        found.ok_or_else(|| CliError::Unpaired { name: head.name.clone(), base: self.name.clone() })
    }
}

fn place(one: &Measured) -> Identity<'_> {
    Identity { rank: one.rank, moment: &one.moment }
}

/// Says what was not compared; it counts where the base shows something that this recording does not.
fn not_compared(Doubt { counts, text, help }: Doubt) -> Notice {
    Notice {
        kind: Matter::NotCompared,
        severity: if counts { Severity::Warning } else { Severity::Info },
        message: text,
        help: help.to_owned(),
        location: None,
    }
}
