//! Data flows one way: a module uses only modules that stand before it in this list.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The pipeline, from the bytes to the command line.
const PIPELINE: [&str; 21] = [
    "unit",
    "input",
    "pickle",
    "snapshot",
    "timeline",
    "replay",
    "program",
    "edit",
    "role",
    "finding",
    "facts",
    "profiler",
    "rules",
    "config",
    "engine",
    "source",
    "comparison",
    "whatif",
    "gate",
    "report",
    "cli",
];

/// The modules whose errors people see, and the one report that draws: only they may know miette.
const MIETTE: [&str; 2] = ["report/text", "cli"];

fn sources() -> Vec<PathBuf> {
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

/// A file's path below `src`, without its ending.
fn name(file: &Path) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    file.strip_prefix(root).unwrap().with_extension("").to_string_lossy().replace('\\', "/")
}

/// The top-level module that a file belongs to; `lib` and `main` stand above all.
fn module(name: &str) -> &str {
    name.split('/').next().unwrap()
}

/// The modules that stand behind `crate::`: one, or those between braces.
fn modules_named(rest: &str) -> Vec<String> {
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    match rest.strip_prefix('{') {
        Some(list) => {
            list.split('}').next().unwrap_or_default().split(',').map(|one| word(one.trim())).collect()
        }
        None => vec![word(rest)],
    }
}

fn rank(module: &str) -> Option<usize> {
    PIPELINE.iter().position(|&known| known == module)
}

#[test]
fn every_module_has_its_place() {
    for file in sources() {
        let name = name(&file);
        let known = ["lib", "main"].contains(&name.as_str()) || rank(module(&name)).is_some();
        assert!(known, "src/{name}.rs belongs to no module of the pipeline");
    }
}

#[test]
fn modules_use_only_what_stands_before_them() {
    let mut seen = 0;
    for file in sources() {
        let name = name(&file);
        let Some(here) = rank(module(&name)) else { continue };
        let text = fs::read_to_string(&file).unwrap();
        for used in text.split("crate::").skip(1).flat_map(modules_named) {
            let Some(there) = rank(&used) else {
                panic!("src/{name}.rs: crate::{used} is no module of the pipeline")
            };
            assert!(there <= here, "src/{name}.rs uses crate::{used}, which stands after it");
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} uses were seen: does this test still read the sources?");
}

#[test]
fn miette_stays_in_errors_and_in_the_text_report() {
    for file in sources() {
        let name = name(&file);
        let text = fs::read_to_string(&file).unwrap();
        let allowed =
            name.ends_with("error") || MIETTE.iter().any(|place| name.starts_with(place)) || name == "main";
        assert!(allowed || !text.contains("miette::"), "src/{name}.rs uses miette");
    }
}
