//! Words of a command, led from the current folder into its copy.
//!
//! Always: only what is plainly a path below the folder is led; one that leaves it again by `..` stays, and so does whatever only begins
//! like it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::plain;

/// From a folder into its copy.
pub(super) struct Lead<'a> {
    /// What the folder is called: its real path, and the one that the shell has for it.
    names: Vec<String>,
    here: &'a Path,
    copied: &'a Path,
}

impl<'a> Lead<'a> {
    /// `here` is a real path.
    pub(super) fn into(here: &'a Path, copied: &'a Path) -> Lead<'a> {
        let called = env::var_os("PWD").map(PathBuf::from);
        let called = called.filter(|path| fs::canonicalize(path).is_ok_and(|real| real == here));
        let mut names: Vec<String> = [Some(here.to_owned()), called]
            .into_iter()
            .flatten()
            .filter_map(|path| Some(path.to_str()?.to_owned()))
            .collect();
        // Whoever is in the root has nothing that could be told from it.
        names.retain(|name| name.len() > 1);
        names.dedup();
        Lead { names, here, copied }
    }

    /// A word: as a whole, or as far as it holds such paths: `--log=/job/log.txt`.
    pub(super) fn word(&self, word: &OsStr) -> OsString {
        match word.to_str() {
            Some(text) => self.text(text).into(),
            None => self.path(Path::new(word)).into_os_string(),
        }
    }

    /// What `PYTHONPATH` says: also folders that a link leads to.
    pub(super) fn searched(&self, list: &OsStr) -> OsString {
        let led = env::split_paths(list).map(|path| match fs::canonicalize(&path) {
            Ok(real) if path.is_absolute() && real.starts_with(self.here) => self.path(&real),
            _ => path,
        });
        // What cannot be put together again is no list of paths.
        env::join_paths(led).unwrap_or_else(|_| self.word(list))
    }

    fn path(&self, path: &Path) -> PathBuf {
        let below = plain(path);
        below.strip_prefix(self.here).map_or_else(|_| path.to_owned(), |below| self.copied.join(below))
    }

    fn text(&self, text: &str) -> String {
        let mut led = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, name)) = self.first(rest, led.is_empty()) {
            let (before, found) = rest.split_at(at);
            let behind = found.get(name.len()..).unwrap_or_default();
            let end = name.len() + behind.find(ends).unwrap_or(behind.len());
            let path = found.get(..end).unwrap_or(found);
            led.push_str(before);
            // `/job/../data` is somewhere else.
            if plain(Path::new(path)).starts_with(name) {
                led.push_str(&self.copied.display().to_string());
                led.push_str(path.get(name.len()..).unwrap_or_default());
            } else {
                led.push_str(path);
            }
            rest = found.get(path.len()..).unwrap_or_default();
        }
        led.push_str(rest);
        led
    }

    /// The first place at which the folder is named, and how.
    fn first<'t>(&self, text: &'t str, is_start: bool) -> Option<(usize, &'t str)> {
        let named = self.names.iter().flat_map(|name| text.match_indices(name.as_str()));
        let named = named.filter(|(at, name)| {
            let (before, behind) = text.split_at(*at);
            let behind = behind.get(name.len()..).unwrap_or_default();
            begins(before, is_start)
                && !behind.starts_with(|next: char| next.is_alphanumeric() || "_-.".contains(next))
        });
        named.min_by_key(|(at, name)| (*at, std::cmp::Reverse(name.len())))
    }
}

/// What no path goes on with, in words that hold several: lists, quotes, code of a shell.
fn ends(letter: char) -> bool {
    letter.is_whitespace() || ":;,=\"'`()[]{}<>|&".contains(letter)
}

/// Whether an absolute path can begin behind some text: not within another one.
fn begins(before: &str, is_start: bool) -> bool {
    let is_option = is_start && before.len() == 2 && before.starts_with('-');
    let within = |last: char| last.is_alphanumeric() || "_-./~".contains(last);
    is_option || before.ends_with("://") || !before.ends_with(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(word: &str) -> String {
        let (here, copied) = (Path::new("/home/me/job"), Path::new("/tmp/copy"));
        let lead = Lead { names: vec!["/home/me/job".to_owned(), "/job".to_owned()], here, copied };
        lead.word(OsStr::new(word)).into_string().unwrap()
    }

    #[test]
    fn paths_below_the_folder_are_led_wherever_they_stand_in_a_word() {
        for (word, copy) in [
            ("/home/me/job", "/tmp/copy"),
            ("/home/me/job/train.py", "/tmp/copy/train.py"),
            ("--log=/home/me/job/log.txt", "--log=/tmp/copy/log.txt"),
            ("--log=/job/log.txt", "--log=/tmp/copy/log.txt"),
            ("-I/home/me/job/lib", "-I/tmp/copy/lib"),
            ("/home/me/job/a:/home/me/job/b:/opt", "/tmp/copy/a:/tmp/copy/b:/opt"),
            ("cd '/home/me/job' && touch /home/me/job/x", "cd '/tmp/copy' && touch /tmp/copy/x"),
            ("file:///home/me/job/x", "file:///tmp/copy/x"),
            ("/home/me/job/sub/../x", "/tmp/copy/sub/../x"),
        ] {
            assert_eq!(led(word), copy);
        }
    }

    #[test]
    fn what_lies_elsewhere_stays() {
        for word in [
            "train.py",
            "/home/me/job2/x",
            "/home/me/job.txt",
            "--log=/mnt/home/me/job/x",
            "../home/me/job/x",
            "/home/me/job/../data",
            "--data=/home/me/job/../../x",
            "/home/me",
        ] {
            assert_eq!(led(word), word);
        }
    }
}
