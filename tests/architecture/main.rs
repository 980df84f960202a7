//! Data flows one way: a module uses only modules that stand before it in this list.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod circles;
mod names;
#[path = "../shipped/mod.rs"]
mod shipped;

use std::fs;
use std::path::Path;

use shipped::{code, sources};

/// The pipeline, from the bytes to the command line.
const PIPELINE: [&str; 30] = [
    "unit",
    "threshold",
    "input",
    "record",
    "pickle",
    "snapshot",
    "timeline",
    "replay",
    "frames",
    "program",
    "edit",
    "role",
    "familiar",
    "lives",
    "finding",
    "facts",
    "profiler",
    "rules",
    "verdict",
    "picture",
    "config",
    "engine",
    "part",
    "source",
    "fix",
    "comparison",
    "whatif",
    "gate",
    "report",
    "cli",
];

/// The modules whose errors people see, and the one report that draws: only they may know miette.
const MIETTE: [&str; 2] = ["report/text", "cli"];

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

/// Where the text of a frame may be taken: where it is read and written, where it is understood, where it becomes the place
/// of a finding, and where it gets another name.
const FRAME_TEXT: [&str; 4] = ["snapshot/", "frames/", "finding/mod", "edit/anonymize"];

/// The modules that conclude something from stacks.
const CONCLUDING: [&str; 8] =
    ["program", "role", "facts", "profiler", "rules", "engine", "comparison", "gate"];

/// Parts of the files and of the functions that the tables of `frames` know.
const SAID_BY_FRAMES: [&str; 10] = [
    "torch/",
    "-packages",
    ".py\"",
    ".so\"",
    "\"<module>\"",
    "\"__init__\"",
    "\"from_pretrained\"",
    "_call_impl",
    "\"unscale_",
    "SavedVariable",
];

/// Whether a file is there for tests alone.
fn is_of_tests(name: &str) -> bool {
    name.ends_with("tests")
        || name.contains("/tests/")
        || ["testing", "testing/by_hand", "program/tape"].contains(&name)
}

#[test]
fn only_frames_knows_what_a_frame_says() {
    let (mut taken, mut known) = (0, 0);
    for file in sources() {
        let name = name(&file);
        if is_of_tests(&name) {
            continue;
        }
        let code = code(&file);
        // However the call is broken into lines.
        let joined: String = code.split_whitespace().collect();
        let takes = joined.matches("stacks.frame(").count();
        let allowed = FRAME_TEXT.iter().any(|place| name.starts_with(place));
        assert!(allowed || takes == 0, "src/{name}.rs looks at frames by itself: ask `frames`");
        taken += takes;
        for part in SAID_BY_FRAMES {
            let says = code.contains(part);
            let concludes = CONCLUDING.contains(&module(&name));
            assert!(!(says && concludes), "src/{name}.rs knows {part} of frames: that stands in `frames`");
            known += usize::from(says && name.starts_with("frames/"));
        }
    }
    assert!(taken > 3, "only {taken} uses were seen: does this test still read the sources?");
    assert!(known > 5, "only {known} parts stand in `frames`: are they still what its tables know?");
}

#[test]
fn every_module_has_its_place() {
    for file in sources() {
        let name = name(&file);
        let known = ["lib", "main", "testing"].contains(&module(&name)) || rank(module(&name)).is_some();
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
        // What tests make recordings with stands apart.
        for used in text.split("crate::").skip(1).flat_map(modules_named).filter(|used| used != "testing") {
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

/// The one module that reaches other machines, and what only such a module uses.
const NETWORK: &str = "input/remote/network/";
const OF_NETWORKS: [&str; 8] = [
    "object_store",
    "reqwest",
    "rustls",
    "tokio",
    "futures_util",
    "std::net::Tcp",
    "std::net::Udp",
    "ToSocketAddrs",
];

#[test]
fn only_one_module_knows_a_network_and_only_what_is_typed_gets_there() {
    let (mut used, mut named) = (0, 0);
    for file in sources() {
        let name = name(&file);
        let code = code(&file);
        let knows = OF_NETWORKS.iter().filter(|what| code.contains(**what)).count();
        assert!(
            knows == 0 || name.starts_with(NETWORK),
            "src/{name}.rs knows a network: that stands in `{NETWORK}`"
        );
        used += knows;
        // A path on the command line may be an address; what anything else names is a file.
        let names = code.matches("Source::named(").count();
        assert!(
            names == 0 || name.starts_with("cli/"),
            "src/{name}.rs asks what a text names: only the command line may"
        );
        named += names;
        let makes = code.contains("Address::of");
        assert!(!makes || name.starts_with("input/"), "src/{name}.rs makes an address out of a text");
    }
    assert!(used > 5, "only {used} uses were seen: is the module still there?");
    assert!(named > 5, "only {named} uses were seen: is it still called so?");
}

#[test]
fn no_rule_asks_another() {
    let rules: Vec<String> = sources()
        .iter()
        .map(|file| name(file))
        .filter_map(|name| name.strip_prefix("rules/").map(str::to_owned))
        .filter(|name| !matches!(name.as_str(), "mod" | "claim" | "regressions" | "trial"))
        .collect();
    assert!(rules.len() >= 28);
    for file in sources() {
        let name = name(&file);
        let Some(rule) = name.strip_prefix("rules/").filter(|rule| *rule != "mod") else { continue };
        let text = fs::read_to_string(&file).unwrap();
        let own = rule.split('/').next().unwrap();
        for other in rules.iter().filter(|other| other.split('/').next() != Some(own)) {
            let asks = [format!("{other}::"), format!("super::{other}"), format!("rules::{other}")];
            assert!(!asks.iter().any(|ask| text.contains(ask)), "{rule} asks {other}");
        }
    }
}
