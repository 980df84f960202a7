//! The values of the configuration, for its JSON Schema: what may stand at a key, where the type that is read does not say it.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::bound::{ALWAYS, NEVER};
use super::budget::Budget;
use super::catalogue::Catalogue;
use super::word::Word;
use crate::rules::metas;
use crate::verdict::Materiality;

/// One of a closed set of words.
pub(super) fn words<T: Word>(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = T::ALL.iter().map(|one| one.word()).collect();
    json_schema!({ "type": "string", "enum": words })
}

/// A rule, a group, a budget or `all`.
fn name() -> Schema {
    let catalogue = Catalogue::with(&[]);
    let names: Vec<&str> = catalogue.names().collect();
    json_schema!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": format!("^{}", Budget::PREFIX.replace('.', "\\.")) }] })
}

/// Rules, groups, budgets.
pub(super) fn names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": name() })
}

/// A table with one entry a rule.
pub(super) fn by_rule<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = metas().map(|meta| meta.name).collect();
    let rule = generator.subschema_for::<T>();
    json_schema!({ "type": "object", "propertyNames": { "enum": names }, "additionalProperties": rule })
}

/// A table with one entry a rule that has a row in the table of materiality.
pub(super) fn by_row<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let levels = generator.subschema_for::<T>();
    let rules: Vec<&str> = Materiality::default().rows().map(|row| row.rule).collect();
    json_schema!({
        "type": "object",
        "propertyNames": { "enum": rules },
        "additionalProperties": levels,
    })
}

/// Bounds of materiality: one, or several of which any is enough.
pub(super) fn bounds(generator: &mut SchemaGenerator) -> Schema {
    let amount = amount(generator);
    let measured = |key: &str| {
        let size = json_schema!({ "anyOf": [{ "type": "string", "pattern": SIZE }, { "type": "integer", "minimum": 0 }] });
        json_schema!({
            "type": "object",
            "properties": { key: amount, "bytes": size },
            "required": [key],
            "additionalProperties": false,
        })
    };
    let turns = json_schema!({
        "type": "object",
        "properties": { "full-within": { "type": "integer", "minimum": 0 } },
        "required": ["full-within"],
        "additionalProperties": false,
    });
    let one = [
        json_schema!({ "enum": [ALWAYS] }),
        measured("saved"),
        measured("held"),
        measured("reserved"),
        turns,
    ];
    json_schema!({ "anyOf": [{ "enum": [NEVER] }, { "anyOf": one }, { "type": "array", "items": { "anyOf": one } }] })
}

/// A table with one entry a budget.
pub(super) fn by_budget<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let budget = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "propertyNames": { "pattern": "^[a-z0-9-]+$" },
        "additionalProperties": budget,
    })
}

/// A size: `70GiB`.
pub(super) fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": SIZE })
}

/// A size, a share, or a number of bytes.
pub(super) fn amount(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "string", "pattern": SIZE },
            { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *%$" },
            { "type": "integer", "minimum": 0 },
        ],
    })
}

/// A day.
pub(super) fn day(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date" })
}

/// How a size is written.
const SIZE: &str = "^0+$|^[0-9]+ *B$|^[0-9]+(\\.[0-9]+)? *[KMGT]iB$";
