//! What files and functions of one recording are called in another, though they were moved or renamed.
//!
//! In: the lines of both at which memory is allocated. Out: the name in the base of what the head has. Always: what keeps its name is
//! known by that; what does not only by its lines, which lie as far apart as they did; the old name is gone then, and the new one
//! was not there before.

use std::collections::{BTreeMap, BTreeSet};

use super::measured::AllocationSite;
use crate::finding::{Location, as_written};

/// The lines of each file at which memory is allocated, each with its function.
#[derive(Debug, Clone, Default)]
pub(super) struct PlacesByFile {
    of_file: BTreeMap<String, Places>,
}

/// Functions, each with a line.
type Places = BTreeSet<(String, u32)>;

/// What files and functions of the head are called in the base.
#[derive(Debug, Clone, Default)]
pub(super) struct NameMatches {
    files: BTreeMap<String, String>,
    /// Of each file of the head, the functions that have another name.
    functions: BTreeMap<String, BTreeMap<String, String>>,
}

impl PlacesByFile {
    pub(super) fn of<'a>(sites: impl IntoIterator<Item = &'a AllocationSite>) -> PlacesByFile {
        let mut this = PlacesByFile::default();
        for frame in sites.into_iter().flat_map(|site| &site.frames) {
            this.add(frame);
        }
        this
    }

    pub(super) fn add(&mut self, line: &Location) {
        let place = (as_written(&line.function).to_owned(), line.line);
        self.of_file.entry(line.file.clone()).or_default().insert(place);
    }

    /// The lines of each function of a file, in their order.
    fn functions(&self, file: &str) -> BTreeMap<&str, Vec<u32>> {
        let mut functions: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (function, line) in self.of_file.get(file).into_iter().flatten() {
            functions.entry(function).or_default().push(*line);
        }
        functions
    }
}

impl NameMatches {
    pub(super) fn of(base: &PlacesByFile, head: &PlacesByFile) -> NameMatches {
        let files = head.of_file.iter().filter_map(|(file, places)| {
            let found = likest(base, file).or_else(|| renamed_file(base, head, places))?;
            Some((file.clone(), found.clone()))
        });
        let mut this = NameMatches { files: files.collect(), functions: BTreeMap::new() };
        let functions = head.of_file.keys().filter_map(|file| {
            let known = this.file_alone(file)?;
            Some((file.clone(), renamed_functions(&base.functions(known), &head.functions(file))))
        });
        this.functions = functions.collect();
        this
    }

    /// The file and the function of a line of the head, as the base calls them.
    pub(super) fn in_base(&self, line: &Location) -> (String, String) {
        let function = as_written(&line.function);
        let file = self.files.get(&line.file).unwrap_or(&line.file);
        let renamed = self.functions.get(&line.file).and_then(|functions| functions.get(function));
        (file.clone(), renamed.map_or(function, String::as_str).to_owned())
    }

    /// The file of the base that a file of the head is, where no other is taken for it.
    pub(super) fn file_alone(&self, file: &str) -> Option<&str> {
        let known = self.files.get(file)?;
        let taken = self.files.values().filter(|other| *other == known).count();
        (known == file || taken == 1).then_some(known)
    }
}

/// The file whose path has the most folders in common, from the end; the name at least.
fn likest<'a>(base: &'a PlacesByFile, file: &str) -> Option<&'a String> {
    let likest = base.of_file.keys().rev().max_by_key(|other| (*other == file, common_end(other, file)));
    likest.filter(|other| common_end(other, file) > 0)
}

/// The file that has gone and had the same functions, on lines that lie as far apart.
fn renamed_file<'a>(base: &'a PlacesByFile, head: &PlacesByFile, places: &Places) -> Option<&'a String> {
    let lines = |places: &Places| -> Vec<u32> { places.iter().map(|(_, line)| *line).collect() };
    let is_same = |known: &Places| {
        let functions = known.iter().zip(places).all(|((one, _), (other, _))| one == other);
        known.len() > 1 && functions && shift(&lines(known), &lines(places)).is_some()
    };
    let mut gone = base.of_file.iter().filter(|(file, _)| !head.of_file.contains_key(*file));
    gone.find(|(_, known)| is_same(known)).map(|(file, _)| file)
}

/// The functions of the head that the base has under another name, where there is no doubt which: two lines say by how far they lie
/// apart, one alone by where it stands.
fn renamed_functions(
    base: &BTreeMap<&str, Vec<u32>>,
    head: &BTreeMap<&str, Vec<u32>>,
) -> BTreeMap<String, String> {
    let is_same = |was: &[u32], is: &[u32]| shift(was, is).is_some_and(|by| by == 0 || was.len() > 1);
    let gone: Vec<_> = base.iter().filter(|(name, _)| !head.contains_key(*name)).collect();
    let new: Vec<_> = head.iter().filter(|(name, _)| !base.contains_key(*name)).collect();
    let mut renamed = BTreeMap::new();
    for (name, lines) in &new {
        let mut like = gone.iter().filter(|(_, known)| is_same(known, lines));
        let (Some((old, known)), None) = (like.next(), like.next()) else { continue };
        if new.iter().filter(|(_, lines)| is_same(known, lines)).count() == 1 {
            renamed.insert((**name).to_owned(), (**old).to_owned());
        }
    }
    renamed
}

/// By how much lines have moved, where all of them have moved by as much.
fn shift(base: &[u32], head: &[u32]) -> Option<i64> {
    let mut apart = base.iter().zip(head).map(|(one, other)| i64::from(*other) - i64::from(*one));
    let first = apart.next()?;
    (base.len() == head.len() && apart.all(|other| other == first)).then_some(first)
}

/// How many parts two paths have in common, from the end.
fn common_end(one: &str, other: &str) -> usize {
    let parts = |path: &str| -> Vec<String> { path.rsplit(['/', '\\']).map(str::to_owned).collect() };
    parts(one).iter().zip(&parts(other)).take_while(|(a, b)| a == b).count()
}
