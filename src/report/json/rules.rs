//! `memlint rules --output-format json`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SCHEMA, TOOL, Tool};
use crate::finding::Group;
use crate::rules::metas;

/// What memlint looks for.
#[derive(Serialize, JsonSchema)]
pub(super) struct RuleList {
    /// The version of this format: `memlint/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    tool: Tool,
    groups: Vec<GroupEntry>,
    rules: Vec<RuleEntry>,
}

/// A family of rules.
#[derive(Serialize, JsonSchema)]
struct GroupEntry {
    name: &'static str,
    summary: &'static str,
    /// Whether its rules run where nobody says so.
    by_default: bool,
}

/// A rule.
#[derive(Serialize, JsonSchema)]
struct RuleEntry {
    name: &'static str,
    group: &'static str,
    /// The level of its findings, unless they or the configuration say otherwise.
    level: &'static str,
    summary: &'static str,
}

impl RuleList {
    pub(super) fn all() -> RuleList {
        let group = |group: Group| GroupEntry {
            name: group.name(),
            summary: group.about(),
            by_default: group.is_default(),
        };
        let rules = metas().map(|meta| RuleEntry {
            name: meta.name,
            group: meta.group.name(),
            level: meta.level.name(),
            summary: meta.summary,
        });
        RuleList { schema: SCHEMA, tool: TOOL, groups: Group::ALL.map(group).into(), rules: rules.collect() }
    }
}
