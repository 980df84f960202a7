//! The hook's files, in a private folder that Python searches first, and that is gone afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::RecordError;

/// The hook, by path below the folder that is searched. Its package is part of the Python package, too; here it has a name of its
/// own, because a program may have another memlint installed.
const FILES: [(&str, &str); 19] = [
    ("sitecustomize.py", include_str!("../../python/hook/sitecustomize.py")),
    ("memlint_recorder/__init__.py", include_str!("../../python/memlint/_recorder/__init__.py")),
    ("memlint_recorder/checkpoints.py", include_str!("../../python/memlint/_recorder/checkpoints.py")),
    ("memlint_recorder/descent.py", include_str!("../../python/memlint/_recorder/descent.py")),
    ("memlint_recorder/dump.py", include_str!("../../python/memlint/_recorder/dump.py")),
    ("memlint_recorder/garbage.py", include_str!("../../python/memlint/_recorder/garbage.py")),
    ("memlint_recorder/history.py", include_str!("../../python/memlint/_recorder/history.py")),
    ("memlint_recorder/known.py", include_str!("../../python/memlint/_recorder/known.py")),
    ("memlint_recorder/ledger.py", include_str!("../../python/memlint/_recorder/ledger.py")),
    ("memlint_recorder/operators.py", include_str!("../../python/memlint/_recorder/operators.py")),
    ("memlint_recorder/order.py", include_str!("../../python/memlint/_recorder/order.py")),
    ("memlint_recorder/pace.py", include_str!("../../python/memlint/_recorder/pace.py")),
    ("memlint_recorder/process.py", include_str!("../../python/memlint/_recorder/process.py")),
    ("memlint_recorder/recorder.py", include_str!("../../python/memlint/_recorder/recorder.py")),
    ("memlint_recorder/signals.py", include_str!("../../python/memlint/_recorder/signals.py")),
    ("memlint_recorder/snapshots.py", include_str!("../../python/memlint/_recorder/snapshots.py")),
    ("memlint_recorder/standin.py", include_str!("../../python/memlint/_recorder/standin.py")),
    ("memlint_recorder/values.py", include_str!("../../python/memlint/_recorder/values.py")),
    ("memlint_recorder/waiting.py", include_str!("../../python/memlint/_recorder/waiting.py")),
];

/// An installed hook; what is left of it goes with this value.
pub(super) struct Hook {
    folder: TempDir,
    modules: PathBuf,
    ledger: PathBuf,
    stand_ins: PathBuf,
}

impl Hook {
    /// Writes the files, and makes room for the ledger.
    pub(super) fn install() -> Result<Hook, RecordError> {
        let failed = |error| RecordError::Hook { folder: std::env::temp_dir(), error };
        let folder = tempfile::Builder::new().prefix("memlint-").tempdir().map_err(failed)?;
        // Frames of the hook are a package's by this name, and nobody's own code.
        let modules = folder.path().join("site-packages");
        let ledger = folder.path().join("ledger");
        let stand_ins = folder.path().join("standin");
        let write = || {
            fs::create_dir_all(modules.join("memlint_recorder"))?;
            fs::create_dir(&ledger)?;
            FILES.iter().try_for_each(|(path, text)| fs::write(modules.join(path), text))
        };
        write().map_err(failed)?;
        Ok(Hook { folder, modules, ledger, stand_ins })
    }

    /// The folder that is to stand first on `PYTHONPATH`.
    pub(super) fn modules(&self) -> &Path {
        debug_assert!(self.modules.starts_with(self.folder.path()));
        &self.modules
    }

    /// Where libraries may be written that stand in for CUDA's.
    pub(super) fn stand_ins(&self) -> PathBuf {
        self.stand_ins.clone()
    }

    /// The folder in which processes tell what they do.
    pub(super) fn ledger(&self) -> &Path {
        &self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_installed_and_goes_again() {
        let hook = Hook::install().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/memlint/_recorder");
        let mut modules = 0;
        for entry in fs::read_dir(&sources).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "py") {
                let installed = hook.modules().join("memlint_recorder").join(path.file_name().unwrap());
                assert_eq!(fs::read(&path).unwrap(), fs::read(installed).unwrap(), "{}", path.display());
                modules += 1;
            }
        }
        assert_eq!(modules + 1, FILES.len());
        let folder = hook.modules().to_owned();
        drop(hook);
        assert!(!folder.exists());
    }
}
