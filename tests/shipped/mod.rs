//! The sources that are shipped, as text.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file of Rust below `src`, in order.
pub(crate) fn sources() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// A file's code without its comments and tests.
pub(crate) fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    shipped.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}
