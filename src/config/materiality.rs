//! `[materiality.<rule>]`: bounds that stand for those of the table, and who set them.

use super::bound;
use super::catalogue::unknown_rule;
use super::document::Document;
use super::error::{ConfigError, Fault};
use super::file::{File, Levels};

use super::setting::{SetBy, Setting};
use crate::finding::Severity;
use crate::rules::metas;
use crate::unit::suggestion;
use crate::verdict::{Materiality, Replacement, RuleBounds};

/// The table of materiality in effect, with who set what.
#[derive(Debug, Clone, Default)]
pub struct MaterialityTable {
    table: Materiality,
    origins: Vec<Setting<(&'static str, Severity)>>,
}

/// One cell of the table.
#[derive(Debug, Clone)]
pub struct Cell<'t> {
    /// The rule's name.
    pub rule: &'static str,
    /// The level: `note`, `warning`, `error`.
    pub level: &'static str,
    /// Its bounds as the configuration writes them: `{ saved = "5%" }`.
    pub bounds: String,
    /// Who set them.
    pub origin: &'t SetBy,
}

impl MaterialityTable {
    /// The bounds alone.
    pub const fn table(&self) -> &Materiality {
        &self.table
    }

    /// Every cell, rule by rule in the order of precedence, from note to error.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.table.rows().flat_map(move |row| {
            RuleBounds::LEVELS.into_iter().rev().map(move |(level, name)| Cell {
                rule: row.rule,
                level: name,
                bounds: bound::written(row.bounds(level)),
                origin: self.origin(row.rule, level),
            })
        })
    }

    /// Who set the bounds of a level.
    pub fn origin(&self, rule: &str, level: Severity) -> &SetBy {
        let set = self.origins.iter().find(|one| one.value.0 == rule && one.value.1 == level);
        set.map_or(&SetBy::Default, |one| &one.origin)
    }
}

/// What a file says.
pub(super) fn read(document: &Document, file: &File) -> Result<MaterialityTable, ConfigError> {
    let (mut replacements, mut origins) = (Vec::new(), Vec::new());
    for (name, levels) in &file.materiality {
        let rule = document.made(name, |name| with_row(name))?.value;
        let Levels { note, warning, error } = levels;
        let written = [(Severity::Info, note), (Severity::Warning, warning), (Severity::Error, error)];
        for (level, written) in written {
            let Some(written) = written else { continue };
            replacements.push(Replacement { rule, level, bounds: bound::read(document, written)? });
            origins.push(document.setting(written, (rule, level)));
        }
    }
    Ok(MaterialityTable { table: Materiality::with(replacements), origins })
}

/// The rules that have a row.
fn rules() -> Vec<&'static str> {
    Materiality::default().rows().map(|row| row.rule).collect()
}

/// A rule that has a row.
fn with_row(name: &str) -> Result<&'static str, Fault> {
    let rules = rules();
    if let Some(rule) = rules.iter().find(|rule| **rule == name) {
        return Ok(rule);
    }
    if metas().any(|meta| meta.name == name) {
        return Err(Fault::NoRow(name.to_owned()));
    }
    match unknown_rule(name) {
        Fault::UnknownRule { name, .. } => {
            let hint = suggestion(&name, "rules", rules.iter().copied());
            Err(Fault::UnknownRule { name, hint })
        }
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use super::*;
    use crate::config::Configuration;

    #[test]
    fn what_is_shown_may_be_written() {
        let usual = MaterialityTable::default();
        let mut file = String::new();
        for rule in rules() {
            let _ = writeln!(file, "[materiality.{rule}]");
            for cell in usual.cells().filter(|cell| cell.rule == rule) {
                let _ = writeln!(file, "{} = {}", cell.level, cell.bounds);
            }
        }
        let read = Configuration::of(Path::new("memlint.toml"), file.clone()).unwrap().unwrap();
        let table = read.materiality();
        assert!(table.table().rows().eq(usual.table().rows()), "{file}");
        assert!(table.cells().all(|cell| *cell.origin != SetBy::Default));
    }
}
