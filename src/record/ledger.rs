//! What the processes of a job tell: a file of JSON lines each (`python/memlint/_recorder/ledger.py` writes them).
//!
//! Always: a line counts when it is whole; what is no line of the hook's is passed over.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::message::Message;
use super::outcome::Process;

/// A line of a process.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    pid: u32,
    #[serde(flatten)]
    event: Message,
}

/// The ledger of a job, read as it grows.
pub(super) struct Ledger {
    folder: PathBuf,
    /// How far each file is read.
    read: BTreeMap<PathBuf, u64>,
    processes: BTreeMap<PathBuf, Process>,
}

impl Ledger {
    pub(super) fn of(folder: &Path) -> Ledger {
        Ledger { folder: folder.to_owned(), read: BTreeMap::new(), processes: BTreeMap::new() }
    }

    /// What was told since the last look.
    pub(super) fn news(&mut self) -> Vec<Message> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
        files.sort();
        let mut news = Vec::new();
        for path in files {
            let read = self.read.entry(path.clone()).or_default();
            let Some(text) = whole_lines(&path, *read) else { continue };
            *read += text.len() as u64;
            for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
                self.processes.entry(path.clone()).or_insert_with(|| Process::of(line.pid)).note(&line.event);
                news.push(line.event);
            }
        }
        news
    }

    /// The processes that are recorded and have not ended, as far as they told.
    pub(super) fn recorded_now(&self) -> Vec<u32> {
        let recorded = self.processes.values().filter(|process| process.is_recorded() && !process.has_ended);
        recorded.map(|process| process.pid).collect()
    }

    pub(super) fn into_processes(self) -> Vec<Process> {
        self.processes.into_values().collect()
    }
}

/// The lines of a file from `start` on that are written to their end.
fn whole_lines(path: &Path, start: u64) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    let end = text.iter().rposition(|byte| *byte == b'\n')? + 1;
    text.truncate(end);
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_count_when_they_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::of(folder.path());
        assert!(ledger.news().is_empty());
        let mut file = fs::File::create(folder.path().join("7-1.jsonl")).unwrap();
        file.write_all(b"{\"event\": \"python\", \"pid\": 7}\nnot ours\n{\"event\": \"recording\", \"pid\"")
            .unwrap();
        assert!(matches!(ledger.news()[..], [Message::Python]));
        assert!(ledger.recorded_now().is_empty());
        file.write_all(b": 7, \"stacks\": \"all\", \"max_entries\": 5}\n").unwrap();
        assert!(matches!(ledger.news()[..], [Message::Recording { max_entries: 5, .. }]));
        assert!(ledger.news().is_empty());
        assert_eq!(ledger.recorded_now(), [7]);
        file.write_all(b"{\"event\": \"end\", \"pid\": 7, \"steps\": 3}\n").unwrap();
        ledger.news();
        assert!(ledger.recorded_now().is_empty());
        assert_eq!(ledger.into_processes().len(), 1);
    }
}
