//! `memlint whatif`: what the recorded program would need under other settings.

use std::process::ExitCode;

use super::arguments::{Color, PlainFormat, WhatIf};
use super::error::CliError;
use super::reading::{read, source_map};
use super::required::refuse_what_cannot_be_compared;
use super::{print, terminal};
use crate::input::Source;
use crate::report::{Detail, json, whatif as report};
use crate::whatif::{self, Question};

pub(super) fn run(arguments: &WhatIf, color: Color) -> Result<ExitCode, CliError> {
    let question = Question {
        set: arguments.set.iter().flat_map(|set| set.0.iter().cloned()).collect(),
        capacity: arguments.device_memory,
        batch_scale: arguments.batch_scale,
        without: arguments.without.clone(),
    };
    let source = Source::named(&arguments.path);
    let input = read(&source, &arguments.limits)?;
    refuse_what_cannot_be_compared(&input)?;
    let answers = whatif::ask(&input, &question)
        .map_err(|error| CliError::WhatIf { name: input.name.clone(), error })?;
    match arguments.output_format {
        PlainFormat::Text => {
            let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
            let look = terminal::look(color, detail);
            let files = source_map(&[], &[], &[source])?;
            let text = report::render(&input.name, &question, &answers, &files, &look);
            print(|out| out.write_all(text.as_bytes()))?;
        }
        PlainFormat::Json => print(|out| json::whatif(&input.name, &question, &answers, out))?,
    }
    Ok(ExitCode::SUCCESS)
}
