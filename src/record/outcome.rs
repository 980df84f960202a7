//! What came of a recording.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::error::RecordError;
use super::message::{Message, Written};
use crate::unit::Bytes;

/// A process that loaded the hook.
#[derive(Debug)]
pub struct Process {
    /// Its number on the machine.
    pub pid: u32,
    /// Whether it imported PyTorch.
    has_torch: bool,
    /// How it was recorded, if it was.
    pub settings: Option<(String, usize)>,
    /// What went wrong in it.
    pub failures: Vec<String>,
    /// Snapshots that it wrote.
    snapshots: usize,
    /// Whether it said all it had to say.
    pub(super) has_ended: bool,
    /// How many steps its optimizers made.
    pub steps: usize,
    /// What the stand-in for a GPU could not do.
    refused: Vec<String>,
    /// Seconds from step to step while it was recorded, in the middle.
    pub recorded_seconds: Option<f64>,
    /// The same, since recording ended.
    pub unrecorded_seconds: Option<f64>,
}

impl Process {
    pub(super) fn of(pid: u32) -> Process {
        Process {
            pid,
            has_torch: false,
            settings: None,
            failures: Vec::new(),
            snapshots: 0,
            has_ended: false,
            steps: 0,
            refused: Vec::new(),
            recorded_seconds: None,
            unrecorded_seconds: None,
        }
    }

    pub(super) fn note(&mut self, message: &Message) {
        match message {
            Message::Python | Message::Wheel { .. } => {}
            Message::Torch => self.has_torch = true,
            Message::Recording { stacks, max_entries } => {
                self.settings = Some((stacks.clone(), *max_entries));
            }
            Message::Written(written) => {
                self.snapshots += 1;
                self.steps = written.steps;
            }
            Message::Refused { calls } => self.refused.clone_from(calls),
            Message::Failed { what } => self.failures.push(what.clone()),
            Message::End { steps, recorded_seconds, unrecorded_seconds } => {
                self.has_ended = true;
                self.steps = *steps;
                self.recorded_seconds = *recorded_seconds;
                self.unrecorded_seconds = *unrecorded_seconds;
            }
        }
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.settings.is_some()
    }

    /// Why its last snapshot is missing, if it is recorded and did not say that it ends.
    fn missing_end(&self) -> Option<RecordError> {
        if !self.is_recorded() || self.has_ended {
            return None;
        }
        let pid = self.pid;
        // Where there is no such folder, what is silent counts as gone.
        let still_runs = Path::new("/proc").join(pid.to_string()).exists();
        Some(if still_runs {
            RecordError::Running { pid }
        } else {
            RecordError::Killed { pid, wrote: self.snapshots > 0 }
        })
    }
}

/// A snapshot in its place.
#[derive(Debug)]
pub struct PackedSnapshot {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// What its process told of it.
    pub written: Written,
}

/// What came of a recording.
#[derive(Debug)]
pub struct Recorded {
    /// The processes that loaded the hook.
    pub processes: Vec<Process>,
    /// The snapshots, by name; of those with one name the last.
    pub snapshots: Vec<PackedSnapshot>,
    /// What keeps this from being the whole job.
    pub trouble: Vec<RecordError>,
}

impl Recorded {
    pub(super) fn of(
        processes: Vec<Process>,
        packed: Vec<Result<PackedSnapshot, RecordError>>,
        folder: &Path,
    ) -> Recorded {
        let mut snapshots: Vec<PackedSnapshot> = Vec::new();
        let mut trouble = Vec::new();
        for one in packed {
            match one {
                Ok(snapshot) => {
                    snapshots.retain(|other| other.path != snapshot.path);
                    snapshots.push(snapshot);
                }
                Err(error) => trouble.push(error),
            }
        }
        snapshots.sort_by(|a, b| a.path.cmp(&b.path));
        for process in &processes {
            trouble.extend(process.failures.iter().map(|what| RecordError::Told { what: what.clone() }));
            let missing = process.missing_end();
            if matches!(missing, Some(RecordError::Killed { .. })) {
                clear_partial(folder, process.pid);
            }
            trouble.extend(missing);
        }
        if snapshots.is_empty() && trouble.is_empty() {
            trouble.push(nothing(&processes));
        }
        Recorded { processes, snapshots, trouble }
    }
}

impl Recorded {
    /// Puts what went wrong before everything else in its place. What follows from it is not told beside.
    pub(super) fn put_first(&mut self, trouble: Vec<RecordError>) {
        if !trouble.is_empty() {
            self.trouble = trouble;
        }
    }

    /// Why a program failed that was run without a GPU, where that is the likely reason.
    pub fn refusal(&self) -> Option<RecordError> {
        let calls: BTreeSet<&str> =
            self.processes.iter().flat_map(|process| &process.refused).map(String::as_str).collect();
        (!calls.is_empty())
            .then(|| RecordError::Refused { calls: calls.into_iter().collect::<Vec<_>>().join("`, `") })
    }
}

/// Why there is no snapshot of a program in which nothing went wrong.
fn nothing(processes: &[Process]) -> RecordError {
    if processes.is_empty() {
        return RecordError::NoPython;
    }
    if !processes.iter().any(|process| process.has_torch) {
        return RecordError::NoTorch;
    }
    RecordError::NoMemory
}

/// Removes what a process that was killed has half written.
fn clear_partial(folder: &Path, pid: u32) {
    let ending = format!(".{pid}.partial");
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(&ending) {
            // It may be gone by itself.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
