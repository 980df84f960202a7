//! Edits, proved: the program runs as it is and with them, recorded both times.
//!
//! Always: both runs happen in copies; what does not help, breaks the program or adds a fault is left out.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::lead::Lead;
use super::{below, copy, write};
use crate::cli::arguments::{Color, Fix};
use crate::cli::error::CliError;
use crate::cli::reading::read;
use crate::cli::terminal;
use crate::engine::{self, Input, Plan, Report};
use crate::finding::{Finding, Group, Severity};
use crate::fix::{Patch, Patched};
use crate::input::Source;
use crate::record::{self, Destination, DeviceModel, Elsewhere, StackFrames, When, Wish};
use crate::rules;
use crate::unit::{Bytes, count, shown_name};

/// By how much a peak may rise from run to run: allocations follow data and threads.
const SAME: f64 = 0.01;

/// What tells a finding in two versions of a program: lines move.
type Kind = (String, String, String);

/// What came of a run.
struct RunResult {
    peak: Bytes,
    /// Findings that are more than notes, with how often each is there.
    findings: BTreeMap<Kind, usize>,
    /// Those that no lower peak brings about.
    faults: BTreeMap<Kind, usize>,
}

/// Leaves out of a patch what does not prove itself.
pub(super) fn verify(
    arguments: &Fix,
    patch: &mut Patch,
    found: &Report,
    color: Color,
) -> Result<(), CliError> {
    if patch.taken.is_empty() {
        return Ok(());
    }
    let trial = Rerun::of(arguments, color)?;
    terminal::say("memlint: running the program as it is");
    let before = trial
        .run(&[])?
        .map_err(|why| CliError::Unverified { why: format!("the program itself does not run: {why}") })?;
    let Err(why) = whole(&trial, patch, found, &before)? else { return Ok(()) };
    if patch.taken.len() == 1 {
        patch.withdraw(0, &format!("withdrawn: {why}"));
        return Ok(());
    }
    // One by one, the last first: positions before stay.
    for position in (0..patch.taken.len()).rev() {
        let alone = Patch { taken: vec![patch.taken[position].clone()], ..Patch::default() };
        if let Err(why) = whole(&trial, &alone, found, &before)? {
            patch.withdraw(position, &format!("withdrawn: {why}"));
        }
    }
    if patch.taken.len() > 1
        && let Err(why) = whole(&trial, patch, found, &before)?
    {
        while !patch.taken.is_empty() {
            patch.withdraw(0, &format!("withdrawn, together with the others: {why}"));
        }
    }
    Ok(())
}

/// Runs the program with a patch, and says whether that is better.
fn whole(
    trial: &Rerun<'_>,
    patch: &Patch,
    found: &Report,
    before: &RunResult,
) -> Result<Result<(), String>, CliError> {
    let titles: Vec<&str> = patch.taken.iter().map(|(fix, _)| fix.title.as_str()).collect();
    terminal::say(&format!(
        "memlint: running a copy with {}: {}",
        count(titles.len(), "edit"),
        titles.join("; ")
    ));
    let after = match trial.run(&patch.files(write::on_disk))? {
        Err(why) => return Ok(Err(why)),
        Ok(after) => after,
    };
    let mended =
        patch.taken.iter().flat_map(|(_, findings)| findings).filter_map(|at| found.findings.get(*at));
    let mended: Vec<&Finding> = mended.collect();
    Ok(judge(before, &after, &mended).inspect(|()| {
        let predicted: u64 =
            mended.iter().filter_map(|one| one.impact.peak).map(Bytes::get).max().unwrap_or(0);
        let saved = before.peak.get().saturating_sub(after.peak.get());
        terminal::say(&format!(
            "memlint: proved: what was found is gone; peak {} before, {} after: {} less ({} predicted)",
            before.peak,
            after.peak,
            Bytes(saved),
            Bytes(predicted),
        ));
    }))
}

/// Whether a run is better than the one before, or why not.
fn judge(before: &RunResult, after: &RunResult, mended: &[&Finding]) -> Result<(), String> {
    let times = |of: &BTreeMap<Kind, usize>, kind: &Kind| of.get(kind).copied().unwrap_or(0);
    for finding in mended {
        let kind = kind(finding);
        let had = times(&before.findings, &kind);
        if had == 0 {
            return Err(format!("{} does not show when this command runs", finding.rule));
        }
        if times(&after.findings, &kind) >= had {
            return Err(format!("{} is still there", finding.rule));
        }
    }
    if let Some((kind, _)) =
        after.faults.iter().find(|(kind, number)| **number > times(&before.findings, kind))
    {
        return Err(format!("it adds {} in {}", kind.0, shown_name(&kind.2)));
    }
    // A rule about what is made again, or is held from the driver, promises nothing of the peak.
    let promised = mended.iter().any(|finding| finding.impact.peak.is_some_and(|saved| saved.get() > 0));
    if promised && after.peak.get() as f64 > before.peak.get() as f64 * (1.0 + SAME) {
        return Err(format!("the peak rises from {} to {}", before.peak, after.peak));
    }
    Ok(())
}

fn kind(finding: &Finding) -> Kind {
    let place = finding.location.as_ref();
    let file = place.and_then(|place| place.file.rsplit(['/', '\\']).next()).unwrap_or_default();
    let function = place.map_or("", |place| place.function.as_str());
    (finding.rule.to_string(), file.to_owned(), function.to_owned())
}

/// How the program is run.
struct Rerun<'a> {
    arguments: &'a Fix,
    color: Color,
    /// The current folder, and a place for copies and recordings.
    here: PathBuf,
    place: TempDir,
}

impl Rerun<'_> {
    fn of(arguments: &Fix, color: Color) -> Result<Rerun<'_>, CliError> {
        let here = env::current_dir().and_then(fs::canonicalize);
        let here = here.map_err(|error| CliError::Unwritable { name: ".".to_owned(), error })?;
        let place = tempfile::Builder::new().prefix("memlint-fix-").tempdir();
        let place = place
            .map_err(|error| CliError::Unwritable { name: env::temp_dir().display().to_string(), error })?;
        Ok(Rerun { arguments, color, here, place })
    }

    /// Runs the program in a copy with some files changed; the inner error says why it did not come to its end.
    fn run(&self, changed: &[Patched]) -> Result<Result<RunResult, String>, CliError> {
        let failed = |path: &Path, error| CliError::Unwritable { name: path.display().to_string(), error };
        let copied = self.place.path().join("copy");
        let _ = fs::remove_dir_all(&copied);
        copy::copy(&self.here, &copied).map_err(|error| CliError::Uncopied { error })?;
        for file in changed {
            let Some(path) = below(&self.here, &file.name).map(|path| copied.join(path)) else {
                return Ok(Err(format!("{} lies outside of the current folder", shown_name(&file.name))));
            };
            fs::write(&path, &file.after).map_err(|error| failed(&path, error))?;
        }
        let recording = self.place.path().join("recording");
        let _ = fs::remove_dir_all(&recording);
        let destination = Destination::prepare(Some(&recording), false)?;
        let model = self
            .arguments
            .no_gpu
            .then_some(DeviceModel { devices: NonZeroU32::MIN, bytes: self.arguments.model_memory });
        let lead = Lead::into(&self.here, &copied);
        let wish = Wish {
            when: When::default(),
            stacks: StackFrames::Python,
            max_entries: None,
            model,
            elsewhere: Some(Elsewhere {
                folder: copied.clone(),
                searched: env::var_os("PYTHONPATH").map(|list| lead.searched(&list)),
            }),
        };
        let (status, recorded) = record::run(&self.command(&lead), &wish, &destination, |_, _| {})?;
        if !status.success() {
            let refused = recorded.refusal().map_or(String::new(), |refusal| format!(": {refusal}"));
            return Ok(Err(format!("the program fails ({status}){refused}")));
        }
        for error in &recorded.trouble {
            terminal::show_error(error, self.color);
        }
        match recorded.snapshots.first() {
            Some(snapshot) => self.judge(&snapshot.path).map(Ok),
            None => Ok(Err("nothing was recorded".to_owned())),
        }
    }

    /// The command, with absolute paths into the current folder led into the copy.
    fn command(&self, lead: &Lead<'_>) -> Vec<OsString> {
        self.arguments.command.iter().map(|word| lead.word(word)).collect()
    }

    fn judge(&self, path: &Path) -> Result<RunResult, CliError> {
        let input: Input = read(&Source::named(path), &self.arguments.judged.reading.limits)?;
        let plan = Plan::of_rules(&rules::by_default());
        let report = engine::conclude(vec![engine::examine(&input, &plan)], Vec::new(), &plan);
        let devices = report.recordings.iter().flat_map(|one| &one.devices);
        let peak = devices.filter_map(|device| device.peak_requested).max().unwrap_or(Bytes::ZERO);
        let (mut findings, mut faults) = (BTreeMap::new(), BTreeMap::new());
        for finding in report.findings.iter().filter(|one| one.severity >= Severity::Warning) {
            *findings.entry(kind(finding)).or_insert(0) += 1;
            // Shares of the peak rise by themselves when it falls.
            if finding.group == Group::Leak || finding.severity == Severity::Error {
                *faults.entry(kind(finding)).or_insert(0) += 1;
            }
        }
        Ok(RunResult { peak, findings, faults })
    }
}
