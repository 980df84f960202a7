//! Recordings and the programs that made them: none is taken for another, and no edit moves a recorded line to another one.

use std::fs;
use std::path::Path;

use memlint::engine::{RecordedFile, Recording};
use memlint::finding::Location;
use memlint::source::SourceMap;

use crate::case::{self, Case};

/// What the corpus tells of the user's files, and the folder of the program.
fn recorded() -> impl Iterator<Item = (&'static Case, Recording, std::path::PathBuf)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    case::all().iter().map(move |case| {
        let recording = case.input.recording();
        let folder = examples.join(&case.name);
        (case, recording, folder)
    })
}

fn places(file: &RecordedFile) -> impl Iterator<Item = Location> {
    file.lines.iter().map(|line| Location {
        file: file.path.clone(),
        line: line.line,
        function: line.function.clone(),
    })
}

/// An edit, and what it makes of the lines of a file.
struct Edit {
    name: &'static str,
    /// Whether recorded lines only move. Where one goes or two change places, what stands there instead may well fit: of
    /// two calls of modules nothing tells which one was recorded.
    shifts: bool,
    lines: Vec<String>,
}

/// Edits all over a file: lines that come and go above each of these, neighbours that
/// change places, functions that get other names.
fn edits(text: &str, at: &[u32]) -> Vec<Edit> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut all = Vec::new();
    let mut add = |name, lines| {
        let shifts = !["the line itself is gone", "neighbours swapped"].contains(&name);
        all.push(Edit { name, shifts, lines });
    };
    for count in [1, 2, 3, 7] {
        let mut longer = vec!["# a note".to_owned(); count];
        longer.extend(lines.iter().cloned());
        add("a comment on top", longer);
    }
    add("no first line", lines[1..].to_vec());
    let blank = |at: usize| lines.get(at).is_none_or(|line| line.trim().is_empty());
    for position in at.iter().filter_map(|line| usize::try_from(*line).ok()?.checked_sub(1)) {
        let Some(line) = lines.get(position) else { continue };
        let indent: String = line.chars().take_while(|one| *one == ' ').collect();
        let mut longer = lines.clone();
        longer.insert(position, format!("{indent}pass"));
        add("a statement above", longer);
        let mut shorter = lines.clone();
        shorter.remove(position);
        add("the line itself is gone", shorter);
        if position > 0 && blank(position - 1) {
            let mut shorter = lines.clone();
            shorter.remove(position - 1);
            add("a blank line above is gone", shorter);
        }
        if position + 1 < lines.len() && !blank(position + 1) {
            let mut swapped = lines.clone();
            swapped.swap(position, position + 1);
            add("neighbours swapped", swapped);
        }
    }
    let heads = lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("def "));
    for (position, line) in heads {
        let mut renamed = lines.clone();
        renamed[position] = line.replacen("def ", "def other_", 1);
        add("another function's name", renamed);
    }
    all
}

#[test]
fn every_program_of_the_corpus_is_the_one_that_was_recorded() {
    let (mut files, mut lines, mut wrong) = (0, 0, Vec::new());
    for (case, recording, folder) in recorded() {
        let sources = SourceMap::new([folder], Vec::new()).seen_by([&recording]);
        for file in &recording.files {
            if let Some(changed) = sources.changed(&file.path) {
                wrong.push((case.name.clone(), changed.misfit.why));
            }
            let found = places(file).filter(|place| sources.find(place).is_some()).count();
            files += usize::from(found > 0);
            lines += found;
        }
    }
    assert_eq!(wrong, []);
    assert!(
        files >= 75 && lines >= 500,
        "only {lines} lines in {files} files were held against their source"
    );
}

/// Edits the programs of the corpus at every so many recorded lines, in a folder of this name.
fn edit_at_every(share: usize, folder: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    fs::create_dir_all(&folder).unwrap();
    let (mut shifts, mut shifted, mut found_wrong, mut found_again) = (0, Vec::new(), Vec::new(), 0);
    for (number, (case, recording, program)) in recorded().enumerate() {
        let [file] = &recording.files[..] else { continue };
        let Ok(text) = fs::read_to_string(program.join("train.py")) else { continue };
        let original: Vec<&str> = text.lines().collect();
        let at = |lines: &[&str], line: u32| lines.get(line as usize - 1).map(|line| (*line).to_owned());
        let mut numbers: Vec<u32> = file.lines.iter().map(|one| one.line).collect();
        numbers.dedup();
        let numbers: Vec<u32> = numbers.into_iter().skip(number % share).step_by(share).collect();
        for Edit { name, shifts: is_shift, lines } in edits(&text, &numbers) {
            fs::write(folder.join("train.py"), lines.join("\n") + "\n").unwrap();
            let edited: Vec<&str> = lines.iter().map(String::as_str).collect();
            let sources = SourceMap::new([folder.clone()], Vec::new()).seen_by([&recording]);
            shifts += usize::from(is_shift);
            let distrusted = sources.changed(&file.path).is_some();
            let found: Vec<_> =
                places(file).filter_map(|place| Some((sources.find(&place)?, place))).collect();
            found_again += if distrusted { found.len() } else { 0 };
            let wrong = found.into_iter().find_map(|(spot, place)| {
                (at(&edited, spot.line) != at(&original, place.line)).then_some((place.line, spot.line))
            });
            let Some((line, taken)) = wrong else { continue };
            let told = format!("{}: {name}: line {taken} is taken for {line}", case.name);
            if distrusted {
                found_wrong.push(told);
            } else if is_shift {
                shifted.push(told);
            }
        }
    }
    assert!(found_wrong.is_empty(), "\n{}", found_wrong.join("\n"));
    assert!(found_again * share >= 1000, "only {found_again} lines were found again");
    // Where a recording shows a few lines of a file, one may come in or go of which it tells nothing.
    assert!(shifts * share >= 1000, "only {shifts} shifts were made");
    assert!(shifted.len() * 200 < shifts, "{} of {shifts}:\n{}", shifted.len(), shifted.join("\n"));
}

#[test]
fn an_edited_program_names_no_wrong_line() {
    edit_at_every(5, "edited");
}

#[test]
#[ignore = "takes half a minute: an edit at every recorded line"]
fn no_edited_program_names_a_wrong_line() {
    edit_at_every(1, "edited-everywhere");
}
