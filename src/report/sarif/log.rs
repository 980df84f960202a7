//! The part of SARIF 2.1.0 that memlint writes, in the standard's own names.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

/// Leaves out what is not known: SARIF has no nulls.
macro_rules! objects {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        pub(super) struct $name {
            $($(#[$of_field])* pub(super) $field: $type,)*
        }
    )*};
}

objects! {
    Log {
        #[serde(rename = "$schema")]
        schema: &'static str,
        version: &'static str,
        runs: Vec<Run>,
    }
    Run {
        tool: Tool,
        automation_details: AutomationDetails,
        invocations: Vec<Invocation>,
        original_uri_base_ids: BTreeMap<&'static str, BaseId>,
        column_kind: &'static str,
        results: Vec<SarifResult>,
    }
    Tool { driver: Driver, }
    Driver {
        name: &'static str,
        version: &'static str,
        semantic_version: &'static str,
        information_uri: &'static str,
        rules: Vec<Rule>,
    }
    /// A `reportingDescriptor`.
    Rule {
        id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        short_description: Option<Message>,
        #[serde(skip_serializing_if = "Option::is_none")]
        full_description: Option<Message>,
        #[serde(skip_serializing_if = "Option::is_none")]
        help: Option<Help>,
        help_uri: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        default_configuration: Option<Configuration>,
        properties: Tags,
    }
    /// A `multiformatMessageString`.
    Help { text: String, markdown: String, }
    Configuration { level: &'static str, }
    Tags {
        tags: Vec<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        precision: Option<&'static str>,
    }
    AutomationDetails { id: &'static str, }
    /// An `artifactLocation` without a place: the reader knows it.
    BaseId { description: Message, }
    Message { text: String, }
    Invocation {
        execution_successful: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_execution_notifications: Vec<Notification>,
    }
    Notification {
        descriptor: Reference,
        #[serde(skip_serializing_if = "Option::is_none")]
        associated_rule: Option<Reference>,
        level: &'static str,
        message: Message,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        locations: Vec<Spot>,
    }
    Reference { id: String, }
    /// A `result`; the name is Rust's.
    SarifResult {
        rule_id: String,
        rule_index: usize,
        level: &'static str,
        message: Message,
        locations: Vec<Spot>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        related_locations: Vec<Spot>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        code_flows: Vec<CodeFlow>,
        partial_fingerprints: BTreeMap<&'static str, String>,
        /// Present on all results or on none.
        suppressions: Vec<Suppression>,
        /// Present on all results or on none.
        #[serde(skip_serializing_if = "Option::is_none")]
        baseline_state: Option<&'static str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        fixes: Vec<Mending>,
        properties: Properties,
    }
    /// A `fix`.
    Mending { description: Message, artifact_changes: Vec<ArtifactChange>, }
    ArtifactChange { artifact_location: ArtifactLocation, replacements: Vec<Replacement>, }
    Replacement { deleted_region: Region, inserted_content: Message, }
    /// A `location`.
    Spot {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<usize>,
        physical_location: PhysicalLocation,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        logical_locations: Vec<LogicalLocation>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
    }
    LogicalLocation { name: String, kind: &'static str, }
    PhysicalLocation { artifact_location: ArtifactLocation, region: Region, }
    ArtifactLocation {
        uri: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri_base_id: Option<&'static str>,
    }
    Region {
        start_line: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        start_column: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end_line: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end_column: Option<u32>,
    }
    CodeFlow { thread_flows: Vec<ThreadFlow>, }
    ThreadFlow { locations: Vec<FlowLocation>, }
    FlowLocation { location: Spot, importance: &'static str, }
    Suppression { kind: &'static str, status: &'static str, justification: String, }
    /// What SARIF has no word for, in ours.
    Properties {
        confidence: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        snapshot: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        device: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seen_on: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        peak_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reserved_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        resident_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes_per_iteration: Option<u64>,
        evidence: serde_json::Map<String, Json>,
    }
}
