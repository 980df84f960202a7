//! `memlint schema`: what a program may expect of memlint's documents.

use std::process::ExitCode;

use super::arguments::{Schema, SchemaOf};
use super::error::CliError;
use super::print;
use crate::config;
use crate::report::json;

pub(super) fn run(schema: &Schema) -> Result<ExitCode, CliError> {
    let schema = match schema.of {
        SchemaOf::Output => json::schema(),
        SchemaOf::Config => config::schema(),
    };
    print(|out| {
        serde_json::to_writer_pretty(&mut *out, &schema)?;
        out.write_all(b"\n")
    })?;
    Ok(ExitCode::SUCCESS)
}
