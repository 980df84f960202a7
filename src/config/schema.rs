//! The JSON Schema of the configuration: for editors, and for whoever writes it by program.
//!
//! It is made of the types that are read, so that it cannot say something else.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;

use super::file::File;

/// The schema as the repository holds it: `schemas/memlint.schema.json`.
pub fn schema() -> Schema {
    // TOML has no null: what is left out is not there.
    let without_null = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
    });
    let settings = SchemaSettings::draft07().with_transform(without_null);
    let mut schema = settings.into_generator().into_root_schema_for::<File>();
    schema.insert("title".to_owned(), "memlint's configuration".into());
    schema
}
