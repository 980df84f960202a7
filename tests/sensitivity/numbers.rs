//! The numbers that decide verdicts: thresholds, found in the sources, and the bounds of the table of materiality.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter, Result};
use std::fs;
use std::path::Path;

use memlint::finding::Severity;
use memlint::threshold;
use memlint::unit::Bytes;
use memlint::verdict::{Bound, Materiality, Replacement, RuleBounds};

use crate::shipped::{code, sources};

/// A number that decides verdicts.
pub(crate) enum Number {
    /// Beside its judge, by name.
    Threshold(String),
    /// In the table: of which rule and level, which of its bounds.
    Bound(&'static str, Severity, usize),
}

/// A number that was varied, until this is dropped.
pub(crate) enum Varied {
    Threshold(threshold::Varied),
    Bound(Materiality),
}

impl Number {
    /// Multiplies the number alone.
    pub(crate) fn varied(&self, factor: f64) -> Varied {
        match self {
            Number::Threshold(name) => Varied::Threshold(threshold::vary(name, factor)),
            Number::Bound(rule, level, at) => {
                let usual = Materiality::default();
                let mut bounds = usual.row(rule).unwrap().1.bounds(*level).to_vec();
                let bound = bounds.get_mut(*at).unwrap();
                *bound = times(*bound, factor);
                Varied::Bound(Materiality::with(vec![Replacement { rule, level: *level, bounds }]))
            }
        }
    }

    /// Whether it is asked before any rule is: when roles are inferred, and what a recording can show.
    pub(crate) fn decides_what_rules_ask(&self) -> bool {
        matches!(self, Number::Threshold(name) if name.starts_with("role::") || name.starts_with("facts::evidence::"))
    }
}

impl Display for Number {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Number::Threshold(name) => write!(out, "{name}"),
            Number::Bound(rule, level, at) => {
                write!(out, "materiality of {rule}, {} {}", level.name(), at + 1)
            }
        }
    }
}

/// A bound, a little farther away or nearer; one of nothing stays.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "bounds are below 2^53"
)]
fn times(bound: Bound, factor: f64) -> Bound {
    let bytes = |bytes: Bytes| Bytes((bytes.get() as f64 * factor) as u64);
    match bound {
        Bound::Always => Bound::Always,
        Bound::Peak(share, least) => Bound::Peak(share * factor, bytes(least)),
        Bound::Held(share, least) => Bound::Held(share * factor, bytes(least)),
        Bound::Reserved(share, least) => Bound::Reserved(share * factor, bytes(least)),
        Bound::Full(turns) => Bound::Full((turns as f64 * factor) as u64),
    }
}

/// A table in which every claim reaches every level.
pub(crate) fn anything_counts() -> Materiality {
    let usual = Materiality::default();
    let levels = |row: RuleBounds<'_>| {
        let rule = row.rule;
        RuleBounds::LEVELS.map(|(level, _)| Replacement { rule, level, bounds: vec![Bound::Always] })
    };
    Materiality::with(usual.rows().flat_map(levels).collect())
}

/// Every one of them, in the order of the sources and of the table.
pub(crate) fn numbers() -> Vec<Number> {
    let usual = Materiality::default();
    let bounds = usual.rows().flat_map(|row| {
        let rule = row.rule;
        let of = |(level, _): (Severity, &str)| {
            let varies = row.bounds(level).iter().enumerate().filter(|(_, one)| times(**one, 2.0) != **one);
            varies.map(|(at, _)| Number::Bound(rule, level, at)).collect::<Vec<_>>()
        };
        RuleBounds::LEVELS.into_iter().flat_map(of).collect::<Vec<_>>()
    });
    thresholds().into_iter().map(Number::Threshold).chain(bounds).collect()
}

/// The names of all thresholds, as the sources write them.
fn thresholds() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("= Threshold::new(") {
            let name = text[at..].split('"').nth(1).unwrap().to_owned();
            assert!(names.insert(name), "{}: a name that is taken", file.display());
        }
    }
    names
}

/// A number with a fraction in one of the judges is a threshold: it has a name, and this list knows it. What is left are
/// shares of nothing and halves.
#[test]
fn no_judge_has_a_number_of_its_own() {
    let judges = ["facts", "rules", "lives", "verdict/mod.rs", "verdict/worlds.rs"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let of_judges =
        sources().into_iter().filter(|file| judges.iter().any(|one| file.starts_with(root.join(one))));
    let mut own = Vec::new();
    let mut files = 0;
    for file in of_judges {
        files += 1;
        let code = code(&file);
        for line in code
            .lines()
            .map(str::trim_start)
            .filter(|line| line.contains(": f64 = ") && line.contains("const "))
        {
            own.push(format!("{}: {line}", file.strip_prefix(&root).unwrap().display()));
        }
    }
    assert!(files > 50, "{files} files");
    assert_eq!(own, LEFT);
}

/// What is none: a share that is a rounding error, the constant of a robust z-score, and which lines a message names.
const LEFT: [&str; 4] = [
    "lives/growth.rs: const NOTHING: f64 = 1e-9;",
    "rules/claim.rs: const WORTH_A_LOOK: f64 = 0.1;",
    "rules/rank_imbalance.rs: const NORMAL_DEVIATION: f64 = 0.6745;",
    "rules/rank_imbalance.rs: const NAMED: f64 = 0.1;",
];
