//! `memlint config`: the settings in effect, and who set each.

use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Config, PlainFormat};
use super::error::CliError;
use super::print;
use crate::report::{Detail, settings};

pub(super) fn run(config: &Config, matches: &ArgMatches) -> Result<ExitCode, CliError> {
    let in_effect = config.configuring.settings(&config.sources, &config.naming, matches)?;
    match config.output_format {
        PlainFormat::Text => {
            let detail = if config.verbose { Detail::Verbose } else { Detail::Normal };
            print(|out| out.write_all(settings::text(&in_effect, detail).as_bytes()))?;
        }
        PlainFormat::Json => print(|out| settings::json(&in_effect, out))?,
    }
    Ok(ExitCode::SUCCESS)
}
