//! What holds in the end: defaults, the configuration, and the command line over both.

use std::path::PathBuf;

use super::amount::Amount;
use super::budget::Budget;
use super::catalogue::{Catalogue, Choice};
use super::error::ConfigError;
use super::ignore::Ignore;
use super::materiality::MaterialityTable;
use super::selection::{Layer, Selection};
use super::setting::{SetBy, Setting};
use super::word::FailOn;
use super::{Configuration, PathMapping};
use crate::finding::Severity;
use crate::unit::{Bytes, Confidence};

/// What the command line and the environment say.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--select`.
    pub select: Option<Vec<String>>,
    /// `--extend-select`.
    pub extend_select: Vec<String>,
    /// `--ignore`.
    pub ignore: Vec<String>,
    /// `--warn`.
    pub warn: Vec<String>,
    /// `--deny`.
    pub deny: Vec<String>,
    /// `--fail-on`.
    pub fail_on: Option<Setting<FailOn>>,
    /// `--min-confidence`.
    pub min_confidence: Option<Setting<Confidence>>,
    /// `--strict`.
    pub strict: Option<Setting<bool>>,
    /// `--source-root`; any replaces those of the file.
    pub source_roots: Vec<Setting<PathBuf>>,
    /// `--path-map`; any replaces those of the file.
    pub path_map: Vec<Setting<PathMapping>>,
    /// `--baseline`.
    pub baseline: Option<Setting<PathBuf>>,
    /// `--baseline-tolerance`.
    pub tolerance: Option<Setting<Amount>>,
    /// `--device-memory`.
    pub device_memory: Option<Setting<Bytes>>,
}

/// Everything that a check is told, each value with who set it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The configuration file as messages name it.
    pub file: Option<String>,
    /// Files beside it that are not read.
    pub passed_over: Vec<PathBuf>,
    /// Which rules run, at which level.
    pub selection: Selection,
    /// The least severity that closes the gate.
    pub fail_on: Setting<FailOn>,
    /// Less sure findings are left out.
    pub min_confidence: Setting<Confidence>,
    /// Whether a recording that a rule cannot judge is no verdict.
    pub strict: Setting<bool>,
    /// What the configuration puts up with.
    pub ignores: Vec<Ignore>,
    /// Limits that are rules, by name.
    pub budgets: Vec<Budget>,
    /// From which worth on findings count.
    pub materiality: MaterialityTable,
    /// Folders that hold the program's source; empty for the usual ones.
    pub source_roots: Vec<Setting<PathBuf>>,
    /// What stands for prefixes of recorded paths.
    pub path_map: Vec<Setting<PathMapping>>,
    /// Findings that were there before.
    pub baseline: Option<Setting<PathBuf>>,
    /// How much they may grow.
    pub tolerance: Option<Setting<Amount>>,
    /// The memory of the device that the program is to run on.
    pub device_memory: Option<Setting<Bytes>>,
}

impl Settings {
    /// Merges a configuration with what goes before it.
    pub fn of(configuration: Configuration, overrides: Overrides) -> Result<Settings, ConfigError> {
        let device_memory = overrides.device_memory.clone().or(configuration.device_memory.clone());
        if device_memory.is_none() {
            let unknown = configuration.budgets.iter().position(Budget::is_of_device);
            if let Some(error) = unknown.and_then(|budget| configuration.no_device_memory(budget)) {
                return Err(error);
            }
        }
        let catalogue = Catalogue::with(&configuration.budgets);
        let flags = layer(&catalogue, &overrides)?;
        let file = configuration.name().map(str::to_owned);
        let selection = Selection::of(&catalogue, &[configuration.layer, flags])?;
        Ok(Settings {
            file,
            passed_over: configuration.passed_over,
            selection,
            fail_on: or_default(overrides.fail_on, configuration.fail_on),
            min_confidence: or_default(overrides.min_confidence, configuration.min_confidence),
            strict: or_default(overrides.strict, configuration.strict),
            ignores: configuration.ignores,
            budgets: configuration.budgets,
            materiality: configuration.materiality,
            source_roots: given_or(overrides.source_roots, configuration.source_roots),
            path_map: given_or(overrides.path_map, configuration.path_map),
            baseline: overrides.baseline.or(configuration.baseline),
            tolerance: overrides.tolerance.or(configuration.tolerance),
            device_memory,
        })
    }
}

/// Lists are not merged: one on the command line replaces that of the file.
fn given_or<T>(given: Vec<T>, written: Vec<T>) -> Vec<T> {
    if given.is_empty() { written } else { given }
}

fn or_default<T: Default>(flag: Option<Setting<T>>, file: Option<Setting<T>>) -> Setting<T> {
    flag.or(file).unwrap_or_else(|| Setting::default(T::default()))
}

/// What the command line says of rules.
fn layer(catalogue: &Catalogue, overrides: &Overrides) -> Result<Layer, ConfigError> {
    let choices = |flag: &'static str, names: &[String]| -> Result<Vec<Setting<Choice>>, ConfigError> {
        let choice = |name: &String| match catalogue.choice(name) {
            Ok(choice) => Ok(Setting::flag(flag, choice)),
            Err(fault) => Err(ConfigError::InFlag { flag, fault }),
        };
        names.iter().map(choice).collect()
    };
    let mut layer = Layer {
        select: match &overrides.select {
            Some(names) => Some(Setting::flag("--select", choices("--select", names)?)),
            None => None,
        },
        extend_select: choices("--extend-select", &overrides.extend_select)?,
        ignore: choices("--ignore", &overrides.ignore)?,
        levels: Vec::new(),
    };
    let levels =
        [("--warn", &overrides.warn, Severity::Warning), ("--deny", &overrides.deny, Severity::Error)];
    for (flag, names, severity) in levels {
        layer.levels.extend(choices(flag, names)?.into_iter().map(|choice| (choice, severity)));
    }
    match layer.contradiction() {
        Some((Setting { origin: SetBy::Flag(flag), .. }, fault)) => Err(ConfigError::InFlag { flag, fault }),
        _ => Ok(layer),
    }
}
