//! No circle among the parts of one module, at any depth.
//!
//! A module's parts are its children; a child that has children of its own counts as one part, with all that is below it. What is
//! read are the paths that begin with `crate`, `super` or `self`, in `use` and anywhere else. A name that a parent only hands on
//! belongs to the part that defines it.
//!
//! A module and its own parts may know each other: a parent names its parts to put them to work, and they use what it defines for all
//! of them (`facts` its `Facts`, `cli` its exit codes), as Rust's privacy has it. That is no circle among parts, and no file is
//! worth being cut for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::shipped::{code, sources};
use crate::{is_of_tests, name};

/// The parts of a path, from the crate's root: `["cli", "fix", "verify"]`.
type Module = Vec<String>;

/// A path as it is written, with the name under which it is known from there on.
struct Written {
    parts: Vec<String>,
    known_as: String,
    /// Whether it stands in a `use`.
    imported: bool,
}

/// The sources' modules: what is written in each, and what each calls its own though another defines it.
struct Sources {
    written: BTreeMap<Module, Vec<Written>>,
    handed_on: BTreeMap<(Module, String), Vec<String>>,
}

impl Sources {
    fn read() -> Self {
        let mut written = BTreeMap::new();
        for file in sources() {
            let name = name(&file);
            if is_of_tests(&name) || ["lib", "main"].contains(&name.as_str()) {
                continue;
            }
            let mut module: Module = name.split('/').map(str::to_owned).collect();
            module.pop_if(|last| last == "mod");
            written.insert(module, paths(&code(&file)));
        }
        let mut handed_on = BTreeMap::new();
        for (module, paths) in &written {
            for path in paths.iter().filter(|path| path.imported) {
                if let Some(whole) = from_root(module, &path.parts) {
                    handed_on.insert((module.clone(), path.known_as.clone()), whole);
                }
            }
        }
        Self { written, handed_on }
    }

    /// The module that defines what a path from the root leads to.
    fn of<'a>(&'a self, path: &'a [String]) -> &'a [String] {
        let mut path = path;
        // A name that is handed on is looked up where it comes from; nothing is handed on in a circle.
        loop {
            let known = |depth: &usize| self.written.contains_key(&path[..*depth]);
            let depth = (0..=path.len()).rev().find(known).unwrap_or(0);
            let next = path.get(depth).map(|name| (path[..depth].to_vec(), name.clone()));
            match next.and_then(|key| self.handed_on.get(&key)) {
                Some(whole) if whole != path => path = whole,
                _ => return &path[..depth],
            }
        }
    }

    /// For each module with parts, which of them use which, and by what name.
    fn uses(&self) -> BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>> {
        let mut uses: BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>> = BTreeMap::new();
        for (module, paths) in &self.written {
            for written in paths {
                let Some(whole) = from_root(module, &written.parts) else { continue };
                let used = self.of(&whole);
                let shared = module.iter().zip(used).take_while(|(one, other)| one == other).count();
                let (Some(from), Some(to)) = (module.get(shared), used.get(shared)) else { continue };
                if shared == 0 {
                    // The order of the pipeline is a test of its own.
                    continue;
                }
                let below = uses.entry(module[..shared].to_vec()).or_default();
                let what = format!("{} -> {}: {}", module.join("/"), used.join("/"), written.known_as);
                below.entry(from.clone()).or_default().entry(to.clone()).or_insert(what);
            }
        }
        uses
    }
}

/// A path as seen from the crate's root; none where it starts at another crate, or at a name that is known already.
fn from_root(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let first = path.first()?;
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    let up = path.iter().take_while(|part| *part == "super").count();
    let own = usize::from(first == "self");
    if up + own == 0 || up > module.len() {
        return None;
    }
    let mut whole = module[..module.len() - up].to_vec();
    whole.extend_from_slice(&path[up + own..]);
    Some(whole)
}

/// Words and signs, as far as paths are made of them.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |one: char| one.is_alphanumeric() || one == '_';
        let length = if is_word(first) {
            rest.find(|one| !is_word(one)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Every path that begins with `crate`, `super` or `self`.
fn paths(code: &str) -> Vec<Written> {
    let tokens = tokens(code);
    let mut written = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let starts = ["crate", "super", "self"].contains(&tokens[at]) && tokens.get(at + 1) == Some(&"::");
        if starts {
            let imported = at > 0 && tokens[at - 1] == "use";
            at = one_path(&tokens, at, &[], imported, &mut written);
        } else {
            at += 1;
        }
    }
    written
}

/// Reads one path, with all that stands between its braces; gives the place behind it.
fn one_path(
    tokens: &[&str],
    from: usize,
    before: &[String],
    imported: bool,
    into: &mut Vec<Written>,
) -> usize {
    let mut parts = before.to_vec();
    let mut at = from;
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while at < tokens.len() && tokens[at] != "}" {
                    at =
                        if tokens[at] == "," { at + 1 } else { one_path(tokens, at, &parts, imported, into) };
                }
                return at + 1;
            }
            Some(&"self") if !parts.is_empty() => {}
            Some(word) => parts.push((*word).to_owned()),
            None => return at,
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    let mut known_as = parts.last().cloned().unwrap_or_default();
    if tokens.get(at) == Some(&"as") {
        tokens[at + 1].clone_into(&mut known_as);
        at += 2;
    }
    into.push(Written { parts, known_as, imported });
    at
}

/// The parts that reach themselves through others.
fn in_circles(uses: &BTreeMap<String, BTreeMap<String, String>>) -> BTreeSet<&String> {
    let reached = |start| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(one) = next.pop() {
            let used = uses.get(one).into_iter().flat_map(BTreeMap::keys);
            next.extend(used.filter(|one| reached.insert(*one)));
        }
        reached
    };
    uses.keys().filter(|part| reached(*part).contains(part)).collect()
}

#[test]
fn parts_of_a_module_use_no_circle() {
    let sources = Sources::read();
    let (mut seen, mut found) = (0, String::new());
    for (module, uses) in sources.uses() {
        let circular = in_circles(&uses);
        let ties = uses.iter().filter(|(from, _)| circular.contains(from));
        for (_, what) in ties.flat_map(|(_, used)| used).filter(|(to, _)| circular.contains(to)) {
            found.extend(["\n", &module.join("/"), ": ", what]);
        }
        seen += uses.values().map(BTreeMap::len).sum::<usize>();
    }
    assert!(found.is_empty(), "parts use themselves through their neighbours:{found}");
    assert!(seen > 400, "only {seen} uses were seen: does this test still read the sources?");
}

#[test]
fn paths_are_read_as_they_are_written() {
    let code = "use super::{a::{self, B as C}, d}; fn e() { self::f::g(super::super::h) } pub(super) fn i(crate::J(k): J) {}";
    let read: Vec<String> = paths(code).iter().map(|path| path.parts.join("::")).collect();
    assert_eq!(read, ["super::a", "super::a::B", "super::d", "self::f::g", "super::super::h", "crate::J"]);
    let module = ["x".to_owned(), "y".to_owned()];
    let whole =
        |path: &[&str]| from_root(&module, &path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>());
    assert_eq!(whole(&["super", "super", "z"]), Some(vec!["z".to_owned()]));
    assert_eq!(whole(&["self", "z"]).map(|whole| whole.join("/")), Some("x/y/z".to_owned()));
    assert_eq!(whole(&["z"]), None);
}
