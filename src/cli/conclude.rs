//! `memlint conclude`: what `memlint examine` wrote, put together to the report of `memlint check` on all the snapshots.
//!
//! Always: byte for byte the same report for the same names, settings and sources; and no report at all where the parts do not
//! belong together.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;

use super::arguments::{Color, Conclude};
use super::check::{SettlingTerms, settle, tell, write};
use super::error::CliError;
use super::outputs::{self, NamedInputs};
use super::reading::source_map;
use super::{NO_VERDICT, terminal};
use crate::engine::{self, Examination, Plan, Report};
use crate::finding::Matter;
use crate::input::{self, Expansion, InputError, Origin, Source};
use crate::part::Part;
use crate::unit::natural;

/// What the files of a folder are called that hold parts.
const ENDING: &str = "memlint";

pub(super) fn run(arguments: &Conclude, matches: &ArgMatches, color: Color) -> Result<ExitCode, CliError> {
    let Conclude { paths, ranks, known, configuring, sources, max_bytes, reporting } = arguments;
    let found = files(paths);
    let read = NamedInputs { paths, known, configuring };
    outputs::permit(&read, &reporting.written(), found.as_ref().ok())?;
    if known.against.is_some() {
        return Err(CliError::AgainstParts);
    }
    let settings = configuring.settings(sources, &known.naming, matches)?;
    outputs::permit_beside(&reporting.written(), &settings)?;
    let known = known.read(&settings)?;
    let plan = Plan::of(&settings).of_ranks(*ranks);
    let parts = parts(&found?.sources, max_bytes.get(), &plan)?;
    if reporting.draws() {
        permit_page(&parts)?;
    }
    let examinations = placed(parts);
    let snapshots: Vec<Source> = examinations.iter().map(|one| source(&one.recording.name)).collect();
    let map = source_map(&settings.source_roots, &settings.path_map, &snapshots)?;
    let mut report = engine::conclude(examinations, Vec::new(), &plan);
    let terms = SettlingTerms { settings: &settings, known: &known, quiet: reporting.quiet };
    let map = settle(&mut report, &map, &terms, |_| Ok(()))?;
    let Some(error) = missing(&report) else { return tell(reporting, &report, &map, color) };
    // As with `check --strict`: no format may say that a job passed of which a rank was not seen.
    report.verdict.left_out = report.verdict.left_out.max(1);
    write(reporting, &report, &map, color)?;
    terminal::show_error(&error, color);
    Ok(ExitCode::from(NO_VERDICT))
}

/// The files that are named; of a folder those that are called like parts. What lies elsewhere is refused before it is asked for.
fn files(paths: &[PathBuf]) -> Result<Expansion, CliError> {
    let mut all = Expansion::default();
    let mut known = BTreeSet::new();
    for path in paths {
        if let Source::Remote(address) = Source::named(path) {
            return Err(CliError::PartElsewhere { name: address.shown() });
        }
        let found = if path.is_dir() { in_folder(path)? } else { Source::named(path).expand()?.sources };
        all.sources.extend(found.into_iter().filter(|source| known.insert(source.clone())));
    }
    Ok(all)
}

fn in_folder(folder: &Path) -> Result<Vec<Source>, InputError> {
    let name = folder.display().to_string();
    let unreadable = |source| InputError::Unreadable { name: name.clone(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) {
            found.push(Source::File(path));
        }
    }
    if found.is_empty() {
        return Err(InputError::NoMatch { name: format!("{name}/*.{ENDING}") });
    }
    found.sort();
    Ok(found)
}

/// Reads the parts, in the order of the snapshots' names; refuses those that do not belong together.
fn parts(files: &[Source], limit: u64, plan: &Plan) -> Result<Vec<Part>, CliError> {
    let mut parts: Vec<(String, Part)> = Vec::new();
    let asked = plan.mark();
    for file in files {
        let Source::File(path) = file else { return Err(CliError::PartFromPipe) };
        let name = file.name();
        let opened = File::open(path);
        let opened = opened.map_err(|source| InputError::Unreadable { name: name.clone(), source })?;
        let read = Part::read(BufReader::new(opened), limit);
        let part = read.map_err(|error| CliError::Part { name: name.clone(), error })?;
        if part.asked != asked {
            return Err(CliError::PartOfOthers { name });
        }
        parts.push((name, part));
    }
    let snapshot = |part: &Part| part.examination.recording.name.clone();
    parts.sort_by(|(_, one), (_, other)| natural(&snapshot(one), &snapshot(other)));
    for pair in parts.windows(2) {
        if let [(name, one), (other, two)] = pair
            && snapshot(one) == snapshot(two)
        {
            let (name, other) = (name.clone(), other.clone());
            return Err(CliError::PartTwice { name, other, snapshot: snapshot(one) });
        }
    }
    Ok(parts.into_iter().map(|(_, part)| part).collect())
}

/// Refuses to make a page of what was not drawn for it.
fn permit_page(parts: &[Part]) -> Result<(), CliError> {
    match parts.iter().find(|part| part.page != Some(parts.len())) {
        Some(part) => {
            let name = part.examination.recording.name.clone();
            Err(CliError::PartNotDrawn { name, parts: parts.len() })
        }
        None => Ok(()),
    }
}

/// The examinations, each where it belongs: the names of all tell of which job and rank each is.
fn placed(parts: Vec<Part>) -> Vec<Examination> {
    let sources: Vec<Source> = parts.iter().map(|part| source(&part.examination.recording.name)).collect();
    let placed = parts.into_iter().zip(input::origins(&sources)).map(|(part, origin)| {
        let mut examination = part.examination;
        let Origin { job, rank, moment } = origin;
        let recording = &mut examination.recording;
        (recording.job, recording.rank, recording.moment) = (job, rank, moment);
        examination
    });
    placed.collect()
}

fn source(name: &str) -> Source {
    match name {
        "<stdin>" => Source::Stdin,
        name => Source::File(PathBuf::from(name)),
    }
}

/// That a rank has no part: it may be the one that leaks.
fn missing(report: &Report) -> Option<CliError> {
    let notice = report.notices.iter().find(|notice| notice.kind == Matter::MissingRank)?;
    Some(CliError::PartMissing { what: notice.message.clone() })
}
