//! `memlint whatif`: what the recorded program would need under other settings.

use std::process::ExitCode;
use std::slice;

use super::arguments::{Color, PlainFormat, WhatIf};
use super::error::CliError;
use super::pages::Pages;
use super::reading::{read, say_left_out, source_map, sources};
use super::required::refuse_what_cannot_be_compared;
use super::terminal;
use crate::input::{Expansion, Source};
use crate::report::{Detail, json, whatif as report};
use crate::whatif::{self, Answer, Question};

pub(super) fn run(arguments: &WhatIf, color: Color) -> Result<ExitCode, CliError> {
    let question = Question {
        set: arguments.set.iter().flat_map(|set| set.0.iter().cloned()).collect(),
        capacity: arguments.device_memory,
        batch_scale: arguments.batch_scale,
        without: arguments.without.clone(),
    };
    let paths = slice::from_ref(&arguments.path);
    let Expansion { sources, left_out } = sources(paths)?;
    let files = source_map(&[], &[], &sources)?;
    say_left_out(&left_out);
    let mut pages = Pages::of(arguments.output_format, color, &[paths], &[&sources]);
    let detail = if arguments.verbose { Detail::Verbose } else { Detail::Normal };
    let look = terminal::look(color, detail);
    for source in &sources {
        match ask(source, arguments, &question) {
            Ok((name, answers)) => pages.add(|out| match arguments.output_format {
                PlainFormat::Text => {
                    out.write_all(report::render(&name, &question, &answers, &files, &look).as_bytes())
                }
                PlainFormat::Json => json::whatif(&name, &question, &answers, out),
            }),
            Err(error) => pages.fail(error),
        }?;
    }
    pages.end()
}

/// The answers about one snapshot, and what it is called.
fn ask(source: &Source, arguments: &WhatIf, question: &Question) -> Result<(String, Vec<Answer>), CliError> {
    let input = read(source, &arguments.limits)?;
    refuse_what_cannot_be_compared(&input)?;
    let answers = whatif::ask(&input, question);
    let answers = answers.map_err(|error| CliError::WhatIf { name: input.name.clone(), error })?;
    Ok((input.name, answers))
}
