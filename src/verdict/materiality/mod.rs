//! The one table of materiality: from which worth on a claim is a note, a warning, an error.
//!
//! Every number that turns a claim into a level stands in the table, with the reason for it; the configuration may replace any
//! (`[materiality.RULE]`), `memlint config` shows them, and `memlint explain RULE` quotes the rule's row.

mod bound;
mod table;

pub use bound::{Bound, Scale};

use crate::finding::Severity;
use crate::rules::Worth;
use table::TABLE;

/// The bounds of one rule: any of a list is enough, and none of an empty one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RuleBounds<'t> {
    /// The rule's name.
    pub rule: &'static str,
    /// For a note.
    pub note: &'t [Bound],
    /// For a warning.
    pub warning: &'t [Bound],
    /// For an error.
    pub error: &'t [Bound],
    /// Why these, as memlint brings them.
    pub why: &'static str,
}

/// Bounds that stand for those of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// The rule's name.
    pub rule: &'static str,
    /// The level that they are bounds of.
    pub level: Severity,
    /// The bounds; none for a level that is never reached.
    pub bounds: Vec<Bound>,
}

/// The table in effect.
#[derive(Debug, Clone, Default)]
pub struct Materiality {
    replacements: Vec<Replacement>,
}

impl RuleBounds<'_> {
    /// The levels in the order in which they are told, each with how this table calls it.
    pub const LEVELS: [(Severity, &'static str); 3] =
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "note")];

    /// The bounds of a level.
    pub fn bounds(&self, level: Severity) -> &[Bound] {
        match level {
            Severity::Info => self.note,
            Severity::Warning => self.warning,
            Severity::Error => self.error,
        }
    }

    /// The highest level that a worth reaches; `None` where it is not even a note.
    pub(super) fn level(&self, worth: &Worth, scale: &Scale) -> Option<Severity> {
        let met = |level: Severity| self.bounds(level).iter().any(|bound| bound.is_met(worth, scale));
        RuleBounds::LEVELS.into_iter().map(|(level, _)| level).find(|level| met(*level))
    }
}

impl Materiality {
    /// The table with some bounds replaced; of two for the same the later holds.
    pub fn with(replacements: Vec<Replacement>) -> Materiality {
        Materiality { replacements }
    }

    /// The rows in the order of precedence: of two claims about the same allocations the one that stands first is the cause.
    pub fn rows(&self) -> impl Iterator<Item = RuleBounds<'_>> {
        TABLE.iter().map(|row| self.effective(row))
    }

    /// The row of a rule, and its place in the order of precedence. None for rules that compare recordings or ranks, which
    /// have no claims.
    pub fn row(&self, rule: &str) -> Option<(usize, RuleBounds<'_>)> {
        self.rows().enumerate().find(|(_, row)| row.rule == rule)
    }

    fn effective(&self, row: &RuleBounds<'static>) -> RuleBounds<'_> {
        let mut effective: RuleBounds<'_> = *row;
        for replacement in self.replacements.iter().filter(|one| one.rule == row.rule) {
            match replacement.level {
                Severity::Info => effective.note = &replacement.bounds,
                Severity::Warning => effective.warning = &replacement.bounds,
                Severity::Error => effective.error = &replacement.bounds,
            }
        }
        effective
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    #[test]
    fn every_row_is_a_rules_and_gives_its_reason() {
        for row in Materiality::default().rows() {
            assert!(RULES.iter().any(|rule| rule.meta().name == row.rule), "{}", row.rule);
            assert!(!row.why.is_empty(), "{}", row.rule);
        }
    }

    #[test]
    fn what_is_replaced_is_one_level_of_one_rule() {
        let table = Materiality::with(vec![Replacement {
            rule: "fragmentation",
            level: Severity::Warning,
            bounds: vec![Bound::Always],
        }]);
        let (usual, own) = (Materiality::default(), table);
        for (usual, own) in usual.rows().zip(own.rows()) {
            assert_eq!((usual.note, usual.error), (own.note, own.error), "{}", own.rule);
            assert_eq!(usual.warning == own.warning, own.rule != "fragmentation", "{}", own.rule);
        }
        assert_eq!(own.row("fragmentation").unwrap().1.warning, [Bound::Always]);
        assert!(own.row("rank-imbalance").is_none());
    }
}
