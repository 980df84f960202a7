//! `memlint rules`: what there is to find.

use std::process::ExitCode;

use super::arguments::{Color, PlainFormat, Rules};
use super::error::CliError;
use super::{print, terminal};
use crate::report::{Detail, json, rules};

pub(super) fn run(arguments: &Rules, color: Color) -> Result<ExitCode, CliError> {
    match arguments.output_format {
        PlainFormat::Text => {
            let look = terminal::look(color, Detail::Normal);
            print(|out| out.write_all(rules::render(&look).as_bytes()))?;
        }
        PlainFormat::Json => print(json::rules)?,
    }
    Ok(ExitCode::SUCCESS)
}
