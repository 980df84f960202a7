//! One name, one type.
//!
//! What is compared are the types of the pipeline: structs, enums, traits and aliases. Left out are errors, tests, and what is named
//! for people who never see the code: documents (what serde reads or writes as a file) and the arguments of the command line, which are
//! called like the commands.

use std::collections::BTreeMap;

use crate::shipped::{code, sources};
use crate::{is_of_tests, name};

/// Plain words, for types that only their own file sees.
const PLAIN: [&str; 9] = ["Any", "Entry", "Key", "Kind", "Line", "Name", "Number", "Row", "Search"];

/// Where documents are written down as types.
const DOCUMENTS: [&str; 8] = [
    "report/",
    "gate/baseline/document",
    "config/file",
    "part",
    "profiler/trace",
    "record/manifest",
    "record/message",
    "record/ledger",
];

/// What defines a type.
const KINDS: [&str; 4] = ["struct", "enum", "trait", "type"];

/// A type that a file defines, and whether others see it.
struct Defined {
    name: String,
    is_seen: bool,
}

/// The types of a file that are compared.
fn defined(file: &str, code: &str) -> Vec<Defined> {
    let holds_documents = DOCUMENTS.iter().any(|place| file.starts_with(place));
    let mut defined = Vec::new();
    let mut is_document = false;
    for line in code.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.trim_start().starts_with("#[derive(") {
            is_document = line.contains("Serialize") || line.contains("Deserialize");
        }
        // `pub`, `pub(super)`, `pub(in crate::cli)`.
        let is_seen = words.first().is_some_and(|first| first.starts_with("pub"));
        let behind = words.iter().take_while(|word| is_seen && !KINDS.contains(word)).count();
        // An alias within a trait's implementation is the trait's.
        let is_nested = line.starts_with(' ');
        if let [what, named, ..] = words[behind..]
            && KINDS.contains(&what)
            && !(is_nested && what == "type")
        {
            let name: String = named.chars().take_while(|one| one.is_alphanumeric()).collect();
            let is_left_out = is_document && holds_documents;
            if !name.is_empty() && !is_left_out {
                defined.push(Defined { name, is_seen });
            }
            is_document = false;
        }
    }
    defined
}

#[test]
fn a_name_is_given_once() {
    let mut places: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    for path in sources() {
        let file = name(&path);
        if is_of_tests(&file) || file.ends_with("error") || file.starts_with("cli/arguments") {
            continue;
        }
        for Defined { name, is_seen } in defined(&file, &code(&path)) {
            places.entry(name).or_default().push((file.clone(), is_seen));
        }
    }
    for (name, places) in &places {
        let is_plain = PLAIN.contains(&name.as_str());
        let seen = places.iter().find(|(_, is_seen)| *is_seen);
        assert!(!is_plain || seen.is_none(), "{name} is too plain for a type that others see: {seen:?}");
        assert!(is_plain || places.len() == 1, "{name} is several things: {places:?}");
    }
    for plain in PLAIN {
        assert!(places.get(plain).is_some_and(|places| places.len() > 1), "{plain} need not be plain");
    }
    assert!(
        places.len() > 600,
        "only {} names were seen: does this test still read the sources?",
        places.len()
    );
}
