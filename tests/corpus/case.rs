//! One case of the corpus: its recording, its labels, its truth.

use std::fs;
use std::path::{Path, PathBuf};

use memlint::input::{self, Source};
use memlint::pickle;
use memlint::snapshot::Snapshot;
use serde_json::Value;

/// A folder of `snapshots/`.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) labels: Value,
    pub(crate) truth: Value,
}

impl Case {
    /// Reads the recording.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let source = Source::File(self.folder.join("snapshot.pickle.zst"));
        let stream =
            source.open(&input::Limits::default()).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Snapshot::read(stream, &pickle::Limits::default())
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Whether the recording began before the program had allocated anything, and holds everything since.
    pub(crate) fn is_whole(&self) -> bool {
        self.labels["recorded"] == "from-start" && !self.expects("truncated-history")
    }

    /// Whether a rule is among the expected findings.
    pub(crate) fn expects(&self, rule: &str) -> bool {
        self.labels["expect"].as_array().is_some_and(|all| all.iter().any(|one| one["pattern"] == rule))
    }

    /// PyTorch's own statistic for a device, such as `requested_bytes.all.peak`.
    pub(crate) fn statistic(&self, device: usize, name: &str) -> Option<u64> {
        self.truth["stats"][device.to_string()][name].as_u64()
    }
}

/// All cases, by name; `ranks/` holds jobs of several recordings instead. Fails where the corpus is incomplete.
pub(crate) fn all() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots");
    let read = |path: PathBuf| -> Value {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let mut cases: Vec<Case> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.is_dir() && !folder.ends_with("ranks"))
        .map(|folder| Case {
            name: folder.file_name().unwrap().to_string_lossy().into_owned(),
            labels: read(folder.join("case.json")),
            truth: read(folder.join("truth.json")),
            folder,
        })
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(cases.len() >= 78, "the corpus holds 78 cases and more, found {}", cases.len());
    cases
}
