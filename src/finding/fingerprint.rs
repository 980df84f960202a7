//! What makes two findings the same finding, in another run, on another machine, after unrelated edits.
//!
//! A hash of the rule and of the user's frames as (file, function). Left out on purpose: line numbers, sizes, addresses,
//! times, the device and the rank; and the phase, which is inferred, and read otherwise where less was recorded
//! (`grow-replay-bug`, its first twelve iterations). Files count from the deepest folder that holds all of the stack's
//! user files, so that neither the place of a checkout nor the presence of its sources changes anything. Comprehensions are
//! left out, too, which have frames of their own only before Python 3.12 (PEP 709), and what torch.compile makes of a
//! function counts as the function.

use std::fmt::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::{Finding, Group, Location};

/// A finding's identity. Shown as `v1:` and 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The version of the hash, in front of it wherever it is written.
    pub const VERSION: &str = "v1:";

    /// The identity of a finding as a rule makes it: taken before its place is looked up in the source.
    pub fn of(finding: &Finding) -> Fingerprint {
        if finding.group == Group::Budget {
            // One of a kind on a device, whichever line holds most today.
            return Fingerprint(xxh3_128(finding.rule.as_bytes()));
        }
        let frames = known_by(finding);
        let paths: Vec<Vec<&str>> = frames.iter().map(|frame| components(&frame.file)).collect();
        let shared = shared_folders(&paths);
        let mut key = finding.rule.to_string();
        for (frame, path) in frames.iter().zip(&paths) {
            let relative = path.get(shared..).unwrap_or_default().join("/");
            let _ = write!(key, "\n{relative}\t{}", as_written(&frame.function));
        }
        Fingerprint(xxh3_128(key.as_bytes()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:032x}", Fingerprint::VERSION, self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Fingerprint, &'static str> {
        let digits = text.strip_prefix(Fingerprint::VERSION).ok_or("a fingerprint begins with `v1:`")?;
        let whole = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = whole.then(|| u128::from_str_radix(digits, 16).ok()).flatten();
        number.map(Fingerprint).ok_or("a fingerprint ends with 32 hexadecimal digits")
    }
}

/// The lines that a finding is known by: the user's part of its stack, innermost first, or else its place.
pub(super) fn known_by(finding: &Finding) -> Vec<&Location> {
    let mut frames = user_frames(finding);
    if frames.is_empty() {
        frames.extend(&finding.location);
    }
    frames
}

/// The user's part of a stack, innermost first.
fn user_frames(finding: &Finding) -> Vec<&Location> {
    const COMPREHENSIONS: [&str; 3] = ["<listcomp>", "<setcomp>", "<dictcomp>"];
    let user = finding.stack.iter().filter(|frame| frame.user).map(|frame| &frame.location);
    user.filter(|frame| !COMPREHENSIONS.contains(&frame.function.as_str())).collect()
}

/// The function that the user wrote: `torch_dynamo_resume_in_forward_at_31` names a line.
pub(crate) fn as_written(function: &str) -> &str {
    let resumed = function.strip_prefix("torch_dynamo_resume_in_").and_then(|rest| rest.rsplit_once("_at_"));
    resumed.map_or(function, |(name, _)| name)
}

/// The line of a finding, its file counted like those of its fingerprint.
pub(super) fn whereabouts(finding: &Finding) -> String {
    let Some(location) = &finding.location else { return "the whole recording".to_owned() };
    let frames = user_frames(finding);
    let mut paths: Vec<Vec<&str>> = frames.iter().map(|frame| components(&frame.file)).collect();
    let own = components(&location.file);
    if !paths.contains(&own) {
        paths = vec![own.clone()];
    }
    let file = own.get(shared_folders(&paths)..).unwrap_or_default().join("/");
    match location.function.as_str() {
        "" => format!("{file}:{}", location.line),
        function => format!("{file}:{} in {function}", location.line),
    }
}

fn components(path: &str) -> Vec<&str> {
    path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect()
}

/// How many folders all paths begin with.
fn shared_folders(paths: &[Vec<&str>]) -> usize {
    let Some((first, others)) = paths.split_first() else { return 0 };
    let folders = paths.iter().map(|path| path.len().saturating_sub(1)).min().unwrap_or(0);
    (0..folders)
        .find(|&depth| others.iter().any(|other| other.get(depth) != first.get(depth)))
        .unwrap_or(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Severity, StackFrame};
    use crate::program::Phase;

    fn frame(file: &str, line: u32, function: &str, user: bool) -> StackFrame {
        StackFrame { location: Location { file: file.to_owned(), line, function: function.to_owned() }, user }
    }

    fn finding(stack: Vec<StackFrame>) -> Finding {
        Finding {
            message: "8 MiB more in each of 8 iterations".to_owned(),
            phase: Phase::Forward,
            location: stack.first().map(|frame| frame.location.clone()),
            stack,
            ..Finding::of("growing-residency", Group::Leak, Severity::Error)
        }
    }

    fn fingerprint(finding: &Finding) -> String {
        Fingerprint::of(finding).to_string()
    }

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let one = Fingerprint::of(&finding(vec![frame("/a/train.py", 3, "main", true)]));
        assert_eq!(one.to_string().parse(), Ok(one));
        assert!("v2:00".parse::<Fingerprint>().is_err() && "v1:+0".parse::<Fingerprint>().is_err());
    }

    #[test]
    fn lines_checkouts_and_libraries_do_not_matter() {
        let here = finding(vec![
            frame("/opt/torch/nn/modules/module.py", 1751, "_call_impl", false),
            frame("/opt/job/src/model.py", 31, "forward", true),
            frame("/opt/job/train.py", 9, "main", true),
        ]);
        let there = finding(vec![
            frame("C:\\work\\job\\src\\model.py", 44, "forward", true),
            frame("C:\\work\\job\\train.py", 12, "main", true),
        ]);
        assert_eq!(fingerprint(&here), fingerprint(&there));
        assert_eq!(
            fingerprint(&here),
            "v1:35abf9f92193cecca01e883896bca986",
            "the fingerprint of a version never changes"
        );
    }

    #[test]
    fn a_budget_is_its_name() {
        let budget = |file: &str| Finding {
            group: Group::Budget,
            rule: "budget.gpu".into(),
            ..finding(vec![frame(file, 3, "main", true)])
        };
        assert_eq!(fingerprint(&budget("/a/train.py")), fingerprint(&budget("/a/model.py")));
    }

    #[test]
    fn comprehensions_and_compiled_functions_do_not_matter() {
        let of = |functions: &[&str]| {
            let frames = functions.iter().map(|function| frame("/a/train.py", 3, function, true));
            fingerprint(&finding(frames.collect()))
        };
        assert_eq!(of(&["<listcomp>", "forward", "main"]), of(&["forward", "main"]));
        assert_eq!(of(&["torch_dynamo_resume_in_forward_at_31", "main"]), of(&["forward", "main"]));
        assert_ne!(of(&["<lambda>", "main"]), of(&["main"]));
    }

    #[test]
    fn whereabouts_are_the_same_in_every_checkout() {
        let of = |root: &str| {
            let at = |file: &str, function| frame(&format!("{root}/{file}"), 31, function, true);
            finding(vec![at("src/model.py", "forward"), at("train.py", "main")])
        };
        assert_eq!(of("/opt/job").whereabouts(), "src/model.py:31 in forward");
        assert_eq!(of("/home/me/checkout").whereabouts(), "src/model.py:31 in forward");
        let moved = Location { file: "elsewhere/loop.py".to_owned(), line: 9, function: String::new() };
        let moved = Finding { location: Some(moved), ..of("/opt/job") };
        assert_eq!(moved.whereabouts(), "loop.py:9");
        assert_eq!(Finding { location: None, ..moved }.whereabouts(), "the whole recording");
    }

    #[test]
    fn functions_and_files_matter_and_phases_do_not() {
        let of = |file, function| fingerprint(&finding(vec![frame(file, 3, function, true)]));
        assert_ne!(of("/a/train.py", "main"), of("/a/train.py", "step"));
        assert_ne!(of("/a/train.py", "main"), of("/a/eval.py", "main"));
        let mut later = finding(vec![frame("/a/train.py", 3, "main", true)]);
        later.phase = Phase::Backward;
        assert_eq!(fingerprint(&later), of("/a/train.py", "main"));
    }
}
