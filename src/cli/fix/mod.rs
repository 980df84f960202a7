//! `memlint fix`: the edits that mend what is found.
//!
//! Always: standard output is the difference, and nothing else; no file of the working copy changes without `--write`.

mod copy;
mod lead;
mod verify;
mod write;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, Fix};
use super::check::{analyse, no_verdict};
use super::drawing::Pictures;
use super::error::CliError;
use super::{print, terminal};
use crate::engine::{Report, Why};
use crate::fix::{self, Patch, Patched};
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
        if patch.taken.is_empty() && !patch.held_back.is_empty() {
            say(&patch, &found, &sources);
            return Err(CliError::HeldBack);
        }
        verify::verify(arguments, &mut patch, &found, color)?;
    }
    say(&patch, &found, &sources);
    let changed = patch.files(write::on_disk);
    if arguments.write {
        write::replace_all(&changed)?;
        for file in &changed {
            terminal::say(&format!("{}: written", crate::unit::shown_name(&file.name)));
        }
        if !changed.is_empty() {
            terminal::say(
                "memlint: the recording is of the program as it was: record again, then `memlint diff` the two",
            );
        }
    } else {
        let difference = report::difference(&named_from_here(&changed));
        print(|out| out.write_all(difference.as_bytes()))?;
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

/// A file's real path as seen from the current folder (a real path): what `git apply` and `patch -p1` start from, and where it lies in a
/// copy. `None` where it lies elsewhere, or a link leads out.
fn below(here: &Path, name: &str) -> Option<PathBuf> {
    fs::canonicalize(name).ok()?.strip_prefix(here).ok().map(Path::to_owned)
}

/// The same changes, each file named from the current folder where it lies below that, whatever way led to it, else from the root.
fn named_from_here(changed: &[Patched]) -> Vec<Patched> {
    let here = env::current_dir().and_then(fs::canonicalize).ok();
    let inside = |file: &Patched| below(here.as_deref()?, &file.name)?.to_str().map(str::to_owned);
    let whole = |file: &Patched| {
        terminal::say(&format!(
            "memlint: {} is not below the current folder: `patch -p1 -d /` finds it",
            crate::unit::shown_name(&file.name)
        ));
        fs::canonicalize(&file.name).ok()?.to_str().map(str::to_owned)
    };
    let name = |file: &Patched| inside(file).or_else(|| whole(file)).unwrap_or_else(|| file.name.clone());
    changed.iter().map(|file| Patched { name: name(file), ..file.clone() }).collect()
}
