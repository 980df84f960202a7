//! `memlint fix`: the edits that mend what is found.
//!
//! Always: standard output is the difference, and nothing else; no file of the working copy changes without `--write`.

mod copy;
mod lead;
mod verify;
mod write;

use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, Fix};
use super::check::{analyse, no_verdict};
use super::drawing::Pictures;
use super::error::CliError;
use super::{print, terminal};
use crate::engine::{Report, Why};
use crate::fix::{self, Patch};
use crate::report::fix as report;
use crate::rules::metas;
use crate::source::SourceMap;

pub(super) fn run(arguments: &Fix, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    for name in &arguments.only {
        if !fix::RULES.contains(&name.as_str()) {
            let hint = format!("there may be edits for {}", fix::RULES.join(", "));
            let name = name.clone();
            let is_rule = metas().any(|meta| meta.name == name);
            return Err(if is_rule {
                CliError::NoEdits { name, hint }
            } else {
                CliError::UnknownRule { name, hint }
            });
        }
    }
    let (found, sources) = analyse(&arguments.judged, (&[], Pictures::None, true), matches)?;
    let mut proposals = fix::propose(&found, &sources);
    let asked = |rule: &str| arguments.only.is_empty() || arguments.only.iter().any(|name| name == rule);
    proposals.retain(|one| found.findings.get(one.finding).is_some_and(|finding| asked(&finding.rule)));
    let mut patch = Patch::of(proposals, arguments.unsafe_too);
    if arguments.verify {
        verify::verify(arguments, &mut patch, &found, color)?;
    }
    say(&patch, &found, &sources);
    let changed = patch.files(write::on_disk);
    if arguments.write {
        write::replace_all(&changed)?;
        for file in &changed {
            terminal::say(&format!("{}: written", crate::unit::shown_name(&file.name)));
        }
    } else {
        print(|out| out.write_all(report::difference(&changed).as_bytes()))?;
    }
    unread(&found)
}

/// What cannot be read is no snapshot without an edit.
fn unread(found: &Report) -> Result<ExitCode, CliError> {
    for one in &found.unread {
        terminal::say(&format!("memlint: {}", crate::unit::shown_line(&one.message)));
    }
    if found.unread.is_empty() { Ok(ExitCode::SUCCESS) } else { Err(no_verdict(found, Why::Unread)) }
}

/// Says what each edit does, and why there is none for other findings.
fn say(patch: &Patch, found: &Report, sources: &SourceMap) {
    for line in report::words(patch, found, sources) {
        terminal::say(&line);
    }
}

/// A path of the working copy, as seen from a copy of the current folder.
fn below(name: &str) -> Option<&Path> {
    let path = Path::new(name);
    let plain = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    plain.then_some(path)
}
