//! The configuration as it is written: keys and types. What values mean is looked at in `read`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

use super::amount::Amount;
use super::bound::WrittenBounds;
use super::budget::{BudgetScope, MetricName};
use super::fields;
use super::word::{FailOn, Level};
use crate::role::Role;
use crate::unit::Confidence;

/// A word or text with its place.
pub(super) type Text = Spanned<String>;

/// A whole `memlint.toml`, or the table `[tool.memlint]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct File {
    /// Which rules run, and what closes the gate.
    pub(super) lint: Lint,
    /// Rules by name.
    #[schemars(schema_with = "fields::by_rule::<Rule>")]
    pub(super) rules: BTreeMap<Text, Rule>,
    /// From which worth on a rule's findings count, by rule.
    #[schemars(schema_with = "fields::by_row::<Levels>")]
    pub(super) materiality: BTreeMap<Text, Levels>,
    /// Budgets by name.
    #[schemars(schema_with = "fields::by_budget::<Budget>")]
    pub(super) budget: BTreeMap<Text, Budget>,
    /// Where the program's source is.
    pub(super) source: Source,
    /// Findings that were there before.
    pub(super) baseline: Baseline,
    /// The device that the program is to run on.
    pub(super) device: Device,
}

/// `[lint]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Lint {
    /// Rules and groups that run, and no others; `all` is every rule.
    #[schemars(schema_with = "fields::names")]
    pub(super) select: Option<Spanned<Vec<Text>>>,
    /// Rules and groups that run as well.
    #[schemars(schema_with = "fields::names")]
    pub(super) extend_select: Vec<Text>,
    /// Rules and groups that do not run.
    #[schemars(schema_with = "fields::names")]
    pub(super) ignore: Vec<Text>,
    /// Rules and groups whose errors are warnings.
    #[schemars(schema_with = "fields::names")]
    pub(super) warn: Vec<Text>,
    /// Rules and groups whose warnings are errors.
    #[schemars(schema_with = "fields::names")]
    pub(super) deny: Vec<Text>,
    /// The least severity that makes the exit status 1.
    #[schemars(schema_with = "fields::words::<FailOn>")]
    pub(super) fail_on: Option<Text>,
    /// Findings that are less sure are left out, and counted.
    #[schemars(schema_with = "fields::words::<Confidence>")]
    pub(super) min_confidence: Option<Text>,
    /// Whether a recording that some rule cannot judge makes the exit status 2.
    #[schemars(with = "bool")]
    pub(super) strict: Option<Spanned<bool>>,
}

/// `[rules.<name>]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Rule {
    /// What its findings count as.
    #[schemars(schema_with = "fields::words::<Level>")]
    pub(super) level: Option<Text>,
    /// Findings to put up with.
    #[schemars(with = "Vec<Ignore>")]
    pub(super) ignore: Vec<Spanned<Ignore>>,
}

/// `[materiality.<rule>]`: what a finding has to be worth for each level. A level that is left out is as memlint brings it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Levels {
    /// For a note.
    #[schemars(schema_with = "fields::bounds")]
    pub(super) note: Option<Spanned<WrittenBounds>>,
    /// For a warning.
    #[schemars(schema_with = "fields::bounds")]
    pub(super) warning: Option<Spanned<WrittenBounds>>,
    /// For an error.
    #[schemars(schema_with = "fields::bounds")]
    pub(super) error: Option<Spanned<WrittenBounds>>,
}

/// An entry of `ignore`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["reason"]))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Ignore {
    /// A pattern for the file, such as `src/legacy/**/*.py`.
    #[schemars(with = "String")]
    pub(super) path: Option<Text>,
    /// The function's bare name.
    #[schemars(with = "String")]
    pub(super) function: Option<String>,
    /// Why.
    #[schemars(with = "String")]
    pub(super) reason: Option<Text>,
    /// The last day on which it holds: `2027-01-31`.
    #[serde(deserialize_with = "day")]
    #[schemars(schema_with = "fields::day")]
    pub(super) until: Option<Text>,
}

/// `[budget.<name>]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Budget {
    /// What is measured.
    #[schemars(schema_with = "fields::words::<MetricName>")]
    pub(super) metric: Text,
    /// The role whose bytes are measured.
    #[serde(default)]
    #[schemars(schema_with = "fields::words::<Role>")]
    pub(super) role: Option<Text>,
    /// A regular expression for the frames whose bytes are measured, each written as `path/file.py:line:function`.
    #[serde(default)]
    #[schemars(with = "String")]
    pub(super) call_site: Option<Text>,
    /// Where it is measured: `run`, `iteration` (after the warm-up) or a phase.
    #[serde(default)]
    #[schemars(schema_with = "fields::words::<BudgetScope>")]
    pub(super) scope: Option<Text>,
    /// What it must not pass.
    #[schemars(schema_with = "fields::amount")]
    pub(super) limit: Spanned<Amount>,
    /// What passing it counts as.
    #[serde(default)]
    #[schemars(schema_with = "fields::words::<Level>")]
    pub(super) level: Option<Text>,
}

/// `[source]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Source {
    /// Folders that hold the program's source.
    #[schemars(with = "Vec<String>")]
    pub(super) roots: Vec<Text>,
    /// Prefixes of recorded paths, and what stands for each here.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) path_map: BTreeMap<Text, String>,
}

/// `[baseline]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Baseline {
    /// The file.
    #[schemars(with = "String")]
    pub(super) file: Option<Text>,
    /// How much a known finding may grow.
    #[schemars(schema_with = "fields::amount")]
    pub(super) tolerance: Option<Spanned<Amount>>,
}

/// `[device]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Device {
    /// Its memory: `80GiB`.
    #[schemars(schema_with = "fields::size")]
    pub(super) memory: Option<Text>,
}

/// A `pyproject.toml`, as far as memlint reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shared {
    /// The table of all tools.
    pub(super) tool: Tools,
}

/// `[tool]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tools {
    /// The table of this one.
    pub(super) memlint: Option<File>,
}

/// A day as a text, or as TOML writes days.
fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text>, D::Error> {
    let day = Spanned::<toml::Value>::deserialize(deserializer)?;
    let text = match day.get_ref() {
        toml::Value::String(text) => text.clone(),
        toml::Value::Datetime(day) => day.to_string(),
        _ => return Err(de::Error::custom("a day such as \"2027-01-31\" is wanted")),
    };
    Ok(Some(Spanned::new(day.span(), text)))
}
