//! The JSON Schema of everything that `memlint/1` writes, from the types that are written.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::check::{Check, Line, NoVerdict};
use super::diff::Diff;
use super::profiler::Profiled;
use super::rules::RuleList;
use super::stats::Stats;
use super::whatif::WhatIf;

/// A document, or a line of one.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "memlint/1")]
#[expect(dead_code, reason = "only its schema is asked for; the variants are written one by one")]
enum Output {
    /// `memlint check --output-format json`.
    Report(Check),
    /// A file given with `--output-file json=PATH`, where there is no verdict.
    NoVerdict(NoVerdict),
    /// A line of `memlint check --output-format jsonl`.
    Line(Line),
    /// `memlint stats --output-format json`.
    Stats(Stats),
    /// The same of a memory timeline of PyTorch's profiler.
    Profiled(Profiled),
    /// `memlint whatif --output-format json`.
    WhatIf(WhatIf),
    /// `memlint diff --output-format json`.
    Diff(Diff),
    /// `memlint rules --output-format json`.
    RuleList(RuleList),
}

/// The schema, draft 2020-12. `$defs` names the documents: `Report`, `NoVerdict`, `Line`, `Stats`, `Profiled`, `WhatIf`, `Diff` and
/// `RuleList`.
pub fn schema() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Output>()
}
