//! The user's source as a recording saw it: recorded lines, and where they are in local files.
//!
//! In: a [`SourceSearch`], and what recordings tell of the user's files. Out: the local file and line of a recorded line, if the
//! file is still the one that was recorded. Always: a file of which any recorded line does not fit is trusted with no line,
//! but for those that are found again beyond doubt.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use super::fit::{LineFit, Misfit};
use super::search::{self, Candidate, PathMap, SourceSearch};
use super::{Checkout, SourceFile};
use crate::engine::{RecordedFile, Recording};
use crate::finding::{Location, Seek};
use crate::unit::shown_name;

/// Where sources are looked for, and what is known of those that were recorded.
#[derive(Debug, Default)]
pub struct SourceMap {
    search: Rc<SourceSearch>,
    checkout: Checkout,
    recorded: BTreeMap<String, RecordedFile>,
    /// The folder in which all of the recorded files lay.
    home: Vec<String>,
    /// What became of the recorded files that were asked for.
    resolved: RefCell<BTreeMap<String, Rc<Resolved>>>,
}

/// Where a recorded line is.
#[derive(Debug, Clone)]
pub struct Spot {
    /// The local file.
    pub file: Rc<SourceFile>,
    /// The line in it, counted from 1.
    pub line: u32,
    /// Whether the paths say that it is the recorded file, and not just one of the same name that fits.
    pub sure: bool,
}

/// A local file that is not, or no longer, what was recorded.
#[derive(Debug, Clone)]
pub struct Changed {
    /// The local file.
    pub file: Rc<SourceFile>,
    /// Which recorded line does not fit.
    pub misfit: Misfit,
    /// Whether the paths say that it is the recorded file.
    pub sure: bool,
    /// Whether nothing but its name is the recorded one's.
    pub by_name: bool,
}

/// What became of a recorded file.
#[derive(Debug)]
enum Resolved {
    /// It is here, as it was.
    Here { file: Candidate, lines: LineFit },
    /// It is here, and has changed.
    Changed(Changed),
    /// It is not here.
    Nowhere,
}

impl SourceMap {
    /// Looks below folders that the user named, and where `maps` point first; the longest prefix wins.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>, maps: Vec<PathMap>) -> SourceMap {
        SourceMap { search: Rc::new(SourceSearch::below(roots, maps)), ..SourceMap::default() }
    }

    /// Looks where nobody said to: in the current folder, beside the snapshots, and in `src`, `scripts` and `examples`, as
    /// far as these lie in the working copy.
    pub fn unasked(
        checkout: Checkout,
        beside: impl IntoIterator<Item = PathBuf>,
        maps: Vec<PathMap>,
    ) -> SourceMap {
        let search = Rc::new(SourceSearch::within(&checkout, beside, maps));
        SourceMap { search, checkout, ..SourceMap::default() }
    }

    /// The same, in a working copy from whose root [`SourceMap::checkout`] names files.
    #[must_use]
    pub fn within(self, checkout: Checkout) -> SourceMap {
        SourceMap { checkout, ..self }
    }

    /// The same places for other recordings: their files are held against what these tell of them.
    #[must_use]
    pub fn seen_by<'a>(&self, recordings: impl IntoIterator<Item = &'a Recording>) -> SourceMap {
        let mut recorded: BTreeMap<String, RecordedFile> = BTreeMap::new();
        for file in recordings.into_iter().flat_map(|recording| &recording.files) {
            let known = recorded.entry(file.path.clone()).or_default();
            known.path.clone_from(&file.path);
            known.lines.extend(file.lines.iter().cloned());
        }
        for file in recorded.values_mut() {
            file.lines.sort_unstable();
            file.lines.dedup();
        }
        let home = home(recorded.keys().map(String::as_str));
        SourceMap {
            search: Rc::clone(&self.search),
            checkout: self.checkout.clone(),
            recorded,
            home,
            resolved: RefCell::default(),
        }
    }

    /// The working copy that the sources lie in.
    pub fn checkout(&self) -> &Checkout {
        &self.checkout
    }

    /// Where a recorded line is; `None` where its file is not here, or not as it was. A location without a function is a
    /// line of the local file already.
    pub fn find(&self, location: &Location) -> Option<Spot> {
        let Some(resolved) = self.resolve(&location.file) else {
            let fits = |one: &Candidate| one.file.can_hold(location.line, &location.function);
            let found = self.candidates(&location.file).find(fits)?;
            return Some(Spot { file: found.file, line: location.line, sure: found.sure });
        };
        let here = location.function.is_empty();
        let spot = match &*resolved {
            Resolved::Here { file, lines } => {
                let line = if here { location.line } else { lines.here(location.line) };
                Spot { file: Rc::clone(&file.file), line, sure: file.sure }
            }
            Resolved::Changed(Changed { file, sure, .. }) => {
                let again = || {
                    let recorded = self.recorded.get(&location.file).filter(|_| *sure)?;
                    file.found_again(recorded, location)
                };
                let line = if here { location.line } else { again()? };
                Spot { file: Rc::clone(file), line, sure: *sure }
            }
            Resolved::Nowhere => return None,
        };
        let function = if here { "" } else { &location.function };
        spot.file.can_hold(spot.line, function).then_some(spot)
    }

    /// The local file of a recorded one, if it has changed since the recording.
    pub fn changed(&self, recorded: &str) -> Option<Changed> {
        match &*self.resolve(recorded)? {
            Resolved::Changed(changed) => Some(changed.clone()),
            Resolved::Here { .. } | Resolved::Nowhere => None,
        }
    }

    /// The line of the first call that may be the one which is sought, in the first local file of a recorded path that has one.
    pub fn line_of_call(&self, recorded: &str, seek: &Seek) -> Option<u32> {
        self.candidates(recorded).find_map(|one| one.file.line_of_call(seek))
    }

    /// The one file directly in the given folders that has such a call, and the line; `None` where several do. For
    /// recordings that name no file.
    pub fn sole_caller(&self, seek: &Seek) -> Option<(String, u32)> {
        self.search.sole_caller(seek)
    }

    /// Whether what is to stand for a prefix is there, and some recorded path begins with that prefix.
    pub fn maps_any(&self, from: &str) -> bool {
        self.search.maps_any(from, self.recorded.keys().map(String::as_str))
    }

    /// Files that were not opened, because they lie outside of the folders that were named, or of the working copy.
    pub fn outside(&self) -> Vec<PathBuf> {
        self.search.outside()
    }

    /// What the file of a recorded path is, where one is there and is not taken for a program: "train.py is no UTF-8: ...".
    pub fn unopened(&self, recorded: &str) -> Option<String> {
        let (shown, why) = self.search.unopened(recorded)?;
        Some(format!("{} {why}", shown_name(&shown.display().to_string())))
    }

    fn candidates<'a>(&'a self, recorded: &'a str) -> impl Iterator<Item = Candidate> + 'a {
        self.search.candidates(recorded, &self.home)
    }

    /// What became of a file of which recordings tell; `None` for others.
    fn resolve(&self, recorded: &str) -> Option<Rc<Resolved>> {
        let file = self.recorded.get(recorded)?;
        if let Some(known) = self.resolved.borrow().get(recorded) {
            return Some(Rc::clone(known));
        }
        let resolved = Rc::new(self.look(file));
        self.resolved.borrow_mut().insert(recorded.to_owned(), Rc::clone(&resolved));
        Some(resolved)
    }

    fn look(&self, recorded: &RecordedFile) -> Resolved {
        let mut changed = None;
        for candidate in self.candidates(&recorded.path) {
            match candidate.file.check(recorded) {
                Ok(lines) => return Resolved::Here { file: candidate, lines },
                Err(misfit) => {
                    let Candidate { file, sure, by_name } = candidate;
                    changed.get_or_insert(Changed { file, misfit, sure, by_name });
                }
            }
        }
        changed.map_or(Resolved::Nowhere, Resolved::Changed)
    }
}

/// The folders with which all paths begin.
fn home<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let folders = |path: &'a str| {
        let mut parts = search::parts(path);
        parts.pop();
        parts
    };
    let mut paths = paths.filter(|path| !path.starts_with('<'));
    let Some(first) = paths.next() else { return Vec::new() };
    let shared = paths.map(folders).fold(folders(first), |shared, other| {
        shared.into_iter().zip(other).take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
    });
    shared.into_iter().map(str::to_owned).collect()
}
