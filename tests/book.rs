//! The book and the README: their commands, run as they stand there in the repository's root, and their links.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use regex::Regex;

/// The book's sources.
const BOOK: &str = "docs/src";

#[test]
fn commands_do_what_is_shown() {
    trycmd::TestCases::new().case("docs/src/*.md").case("README.md");
}

#[test]
fn every_name_in_evidence_is_explained_and_no_other() {
    let page = read(&Path::new(BOOK).join("evidence.md"));
    let names = Regex::new("`([a-z-]+)`").unwrap();
    let columns = page.lines().filter_map(|line| line.split('|').nth(2));
    let explained: BTreeSet<String> =
        columns.flat_map(|keys| names.captures_iter(keys)).map(|one| one[1].to_owned()).collect();
    let written = Regex::new(
        r#"(?:measure\(|Measure \{\s*name:|Cow::Borrowed\(|&str =|source\.line\),)\s*"([a-z-]+)""#,
    )
    .unwrap();
    let mut missing = BTreeSet::new();
    let mut known = BTreeSet::new();
    for file in sources(&root().join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        for one in written.captures_iter(text.split("#[cfg(test)]").next().unwrap()) {
            known.insert(one[1].to_owned());
            let is_measure = !one[0].starts_with("&str") && !one[0].starts_with("Cow");
            missing.extend((is_measure && !explained.contains(&one[1])).then(|| one[1].to_owned()));
        }
    }
    assert!(missing.is_empty(), "not in evidence.md: {missing:?}");
    assert!(known.len() > 100, "only {} names were found in the sources", known.len());
    let unknown: Vec<_> = explained.difference(&known).collect();
    assert!(unknown.is_empty(), "in evidence.md, and nowhere in the sources: {unknown:?}");
}

/// All files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(files).filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(page: &Path) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// What a page links to, code left out.
fn links(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        // Every second part stands between backquotes.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        if !is_code {
            let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.map(str::to_owned));
        }
    }
    found
}

/// `rules/../rules.md` as `rules.md`.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in page.parent().unwrap().join(target).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{target} of {} leaves the book", page.display()),
            part => path.push(part),
        }
    }
    path
}

/// What mdBook makes of a heading for links to it.
fn anchor(heading: &str) -> String {
    let letters =
        heading.trim().chars().filter(|one| one.is_alphanumeric() || matches!(one, ' ' | '-' | '_'));
    letters.map(|one| if one == ' ' { '-' } else { one.to_ascii_lowercase() }).collect()
}

fn has_heading(text: &str, wanted: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|one| one == wanted)
}

fn is_elsewhere(target: &str) -> bool {
    target.starts_with("https://")
}

/// The pages that mdBook renders, in the folder of the book.
fn pages() -> BTreeSet<PathBuf> {
    links(&read(&Path::new(BOOK).join("SUMMARY.md"))).into_iter().map(PathBuf::from).collect()
}

#[test]
fn every_link_of_the_book_leads_to_a_page_of_it() {
    let pages = pages();
    for page in &pages {
        let text = read(&Path::new(BOOK).join(page));
        for target in links(&text).iter().filter(|target| !is_elsewhere(target)) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let other = if file.is_empty() { page.clone() } else { resolved(page, file) };
            // Pictures are copied; a page is rendered where the summary names it.
            let is_copied = other.extension().is_none_or(|ending| ending != "md");
            let is_there =
                if is_copied { root().join(BOOK).join(&other).is_file() } else { pages.contains(&other) };
            assert!(is_there, "{} links to {target}, which the book has not", page.display());
            let there = heading.is_empty() || has_heading(&read(&Path::new(BOOK).join(&other)), heading);
            assert!(there, "{} links to {target}, and there is no such heading", page.display());
        }
    }
}

#[test]
fn every_page_is_in_the_book() {
    let pages = pages();
    for folder in ["", "rules"] {
        for file in fs::read_dir(root().join(BOOK).join(folder)).unwrap() {
            let page = Path::new(folder).join(file.unwrap().file_name());
            if page.extension().is_some_and(|ending| ending == "md") && page != Path::new("SUMMARY.md") {
                assert!(pages.contains(&page), "{} is not in SUMMARY.md", page.display());
            }
        }
    }
}

#[test]
fn every_link_of_the_readme_leads_to_a_file() {
    let targets = links(&read(Path::new("README.md")));
    assert!(targets.len() > 10);
    for target in targets.iter().filter(|target| !is_elsewhere(target)) {
        assert!(root().join(target).exists(), "README.md links to {target}");
    }
}

#[test]
fn the_repository_has_one_address() {
    let address = env!("CARGO_PKG_REPOSITORY");
    let named = Regex::new(r"(?:github\.com/|uses: |repository: )([\w.-]+/memlint)\b").unwrap();
    let mut places = 0;
    for file in ["README.md", "pyproject.toml", "docs/book.toml", "docs/src/ci.md", "action.yml"] {
        places += all_are(file, &named, address);
    }
    for file in fs::read_dir(root().join("examples/ci")).unwrap() {
        places += all_are(&format!("examples/ci/{}", file.unwrap().file_name().display()), &named, address);
    }
    assert!(places > 5);
}

/// How many places of a file name the repository, all of them rightly.
fn all_are(file: &str, named: &Regex, address: &str) -> usize {
    let text = read(Path::new(file));
    assert!(!text.contains("OWNER/"), "{file}");
    let names: Vec<&str> = named.captures_iter(&text).filter_map(|one| Some(one.get(1)?.as_str())).collect();
    for name in &names {
        assert_eq!(format!("https://github.com/{name}"), address, "{file}");
    }
    names.len()
}

/// What `memlint explain` says of when a rule's findings count: a row of a table. Rules that compare two recordings say nothing.
fn when_it_counts(rule: &str) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memlint"));
    let output = command.args(["explain", rule, "--isolated"]).output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let (_, section) = page.split_once("\n## When it counts\n")?;
    let section = section.split_whitespace().collect::<Vec<_>>().join(" ");
    let between = |from: &str, to: &str| {
        let rest = section.split_once(from).unwrap().1;
        rest.split_once(to).unwrap().0.trim().to_owned()
    };
    let (error, warning) = (between("- error: ", "- warning: "), between("- warning: ", "- note: "));
    let (note, why) = (between("- note: ", " Why: "), between(" Why: ", "`[materiality."));
    Some(format!(
        "| [{rule}](rules/{rule}.md) | {error} | {warning} | {note} | {} |",
        why.trim_end_matches('.')
    ))
}

#[test]
fn the_table_of_levels_says_what_holds() {
    let rules = links(&read(Path::new("rules/README.md")));
    let mut table = String::from("| rule | error | warning | note | why |\n|---|---|---|---|---|\n");
    for row in rules.iter().filter_map(|page| when_it_counts(page.strip_suffix(".md")?)) {
        let _ = writeln!(table, "{row}");
    }
    let page = Path::new(BOOK).join("levels.md");
    let text = fs::read_to_string(root().join(&page)).unwrap();
    let (before, held) = text.split_at(text.find("| rule |").unwrap());
    if std::env::var_os("INSTA_UPDATE").is_some_and(|wanted| wanted == "always") {
        fs::write(root().join(&page), format!("{before}{table}")).unwrap();
    } else {
        assert_eq!(held, table, "INSTA_UPDATE=always writes {}", page.display());
    }
}
