//! Which findings came, went, grew and shrank.

use super::Moves;
use crate::engine::Report;
use crate::finding::{Difference, Finding, Mark, Severity, Tolerance, pair};

/// What became of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// The base has none like it.
    New,
    /// It has grown, or is worse by kind.
    Worse,
    /// It has shrunk, or is less bad by kind.
    Better,
    /// The head has none like it.
    Gone,
}

impl Fate {
    /// `new`, `worse`, `better`, `gone`.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::New => "new",
            Fate::Worse => "worse",
            Fate::Better => "better",
            Fate::Gone => "gone",
        }
    }
}

/// A finding that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingChange {
    /// What became of it.
    pub turn: Fate,
    /// As the head has it, or, where it has gone, as the base had it.
    pub finding: Finding,
    /// As it was in the base, where both have it.
    pub before: Option<Mark>,
    /// What makes it worse or better.
    pub difference: Option<Difference>,
}

/// The findings that differ, in the order of their turns, and how many are the same. Notes count only where they were
/// more, or have become more.
pub(super) fn changes(
    base: &Report,
    head: &Report,
    moves: &Moves,
    tolerance: &Tolerance,
) -> (Vec<FindingChange>, usize) {
    let marks = |report: &Report| report.findings.iter().map(Mark::of).collect::<Vec<Mark>>();
    let (known, found) = (marks(base), marks(head));
    let mut pairing = pair(&known, &found, tolerance);
    let moved = moves.take(&mut pairing, &base.findings, &head.findings, tolerance);
    pairing.same.extend(moved);
    let counts = |finding: &&Finding| finding.severity > Severity::Info;
    let whole = |turn, finding: &Finding| FindingChange {
        turn,
        finding: finding.clone(),
        before: None,
        difference: None,
    };
    let new = pairing.new.iter().filter_map(|&at| head.findings.get(at)).filter(counts);
    let gone = pairing.gone.iter().filter_map(|&at| base.findings.get(at)).filter(counts);
    let mut changes: Vec<FindingChange> = new.map(|finding| whole(Fate::New, finding)).collect();
    changes.extend(gone.map(|finding| whole(Fate::Gone, finding)));
    let mut same = 0;
    for &(old, now) in &pairing.same {
        let (Some(before), Some(mark), Some(finding)) =
            (known.get(old), found.get(now), head.findings.get(now))
        else {
            continue;
        };
        if before.severity.max(mark.severity) == Severity::Info {
            continue;
        }
        let worse = mark.worse_than(before, tolerance).map(|difference| (Fate::Worse, difference));
        let turned = worse.or_else(|| Some((Fate::Better, mark.better_than(before, tolerance)?)));
        match turned {
            Some((turn, difference)) => changes.push(FindingChange {
                turn,
                finding: finding.clone(),
                before: Some(*before),
                difference: Some(difference),
            }),
            None => same += 1,
        }
    }
    // Stable: within a turn the worst stays first.
    changes.sort_by_key(|change| change.turn);
    (changes, same)
}
