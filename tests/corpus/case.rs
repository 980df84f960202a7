//! One case of the corpus: its recording, its labels, its truth.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use memlint::engine::{Input, Plan, Report, conclude, examine};
use memlint::input::{self, Source};
use memlint::pickle;
use memlint::rules;
use memlint::snapshot::Snapshot;
use serde_json::Value;

/// A folder of `snapshots/`.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) labels: Value,
    pub(crate) truth: Value,
    /// The recording, read and understood.
    pub(crate) input: Input,
}

impl Case {
    fn of(folder: &Path) -> Case {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let json = |file: &str| -> Value {
            let path = folder.join(file);
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let source = Source::File(folder.join("snapshot.pickle.zst"));
        let stream = source.open(&input::Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let snapshot = Snapshot::read(stream, &pickle::PickleLimits::default());
        let snapshot = snapshot.unwrap_or_else(|error| panic!("{name}: {error}"));
        let (labels, truth) = (json("case.json"), json("truth.json"));
        Case { input: Input::of(name.clone(), snapshot), name, labels, truth }
    }

    /// A copy of the recording, to be changed.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.input.snapshot.clone()
    }

    /// What the rules say of it.
    pub(crate) fn report(&self) -> Report {
        let plan = Plan::of_rules(&rules::by_default());
        conclude(vec![examine(&self.input, &plan)], Vec::new(), &plan)
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

/// All cases of the version that the corpus is recorded with, by name; `ranks/` holds jobs of several recordings instead. Each is read and understood once for all tests of a
/// program, on all processors. Fails where the corpus is incomplete.
pub(crate) fn all() -> &'static [Case] {
    static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let folders = folders(&root()).filter(|one| !one.ends_with("ranks") && !one.ends_with("versions"));
        let folders: Vec<PathBuf> = folders.collect();
        assert!(folders.len() >= 78, "the corpus holds 78 cases and more, found {}", folders.len());
        read(&folders)
    });
    &ALL
}

/// The recordings of other versions of PyTorch; those of one version share a folder.
pub(crate) fn versions() -> &'static [Case] {
    static VERSIONS: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let folders: Vec<PathBuf> =
            folders(&root().join("versions")).flat_map(|version| folders(&version)).collect();
        assert!(folders.len() >= 140, "six versions have 140 recordings and more, found {}", folders.len());
        read(&folders)
    });
    &VERSIONS
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots")
}

fn folders(of: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
}

fn read(folders: &[PathBuf]) -> Vec<Case> {
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut some = Vec::new();
        while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            some.push(Case::of(folder));
        }
        some
    };
    let mut cases: Vec<Case> = thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let readers: Vec<_> = (0..processors).map(|_| scope.spawn(read_some)).collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}
