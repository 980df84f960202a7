//! What makes two findings the same finding, in another run, on another machine, after unrelated edits.
//!
//! A hash of the rule, the kind of phase, and the user's frames as (file, function). Left out on purpose: line numbers,
//! sizes, addresses, times, the device and the rank. Files count from the deepest folder that holds all of the stack's
//! user files, so that neither the place of a checkout nor the presence of its sources changes anything.

use std::fmt::Write;

use xxhash_rust::xxh3::xxh3_128;

use crate::finding::{Finding, Location};

/// `v1:` and 32 hexadecimal digits.
pub(super) fn fingerprint(finding: &Finding) -> String {
    let mut frames: Vec<&Location> =
        finding.stack.iter().filter(|frame| frame.user).map(|frame| &frame.location).collect();
    if frames.is_empty() {
        frames.extend(&finding.location);
    }
    let paths: Vec<Vec<&str>> = frames.iter().map(|frame| components(&frame.file)).collect();
    let shared = shared_folders(&paths);
    let mut key = format!("{}\n{}", finding.rule, finding.phase.name());
    for (frame, path) in frames.iter().zip(&paths) {
        let relative = path.get(shared..).unwrap_or_default().join("/");
        let _ = write!(key, "\n{relative}\t{}", frame.function);
    }
    format!("v1:{:032x}", xxh3_128(key.as_bytes()))
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
    use crate::finding::{Group, Impact, Severity, StackFrame};
    use crate::program::Phase;
    use crate::unit::{Bytes, Confidence};

    fn frame(file: &str, line: u32, function: &str, user: bool) -> StackFrame {
        StackFrame { location: Location { file: file.to_owned(), line, function: function.to_owned() }, user }
    }

    fn finding(stack: Vec<StackFrame>) -> Finding {
        Finding {
            input: 0,
            rule: "growing-residency",
            group: Group::Leak,
            severity: Severity::Error,
            confidence: Confidence::High,
            message: "8 MiB more in each of 8 iterations".to_owned(),
            help: String::new(),
            device: None,
            phase: Phase::Forward,
            location: stack.first().map(|frame| frame.location.clone()),
            seek: None,
            excuse: None,
            label: String::new(),
            related: Vec::new(),
            evidence: Vec::new(),
            impact: Impact { peak: Some(Bytes::MIB), ..Impact::default() },
            stack,
        }
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
            "v1:e2aa100e1713c2dcde79a503741a2145",
            "the fingerprint of a version never changes"
        );
    }

    #[test]
    fn functions_files_and_phases_matter() {
        let of = |file, function| fingerprint(&finding(vec![frame(file, 3, function, true)]));
        assert_ne!(of("/a/train.py", "main"), of("/a/train.py", "step"));
        assert_ne!(of("/a/train.py", "main"), of("/a/eval.py", "main"));
        let mut later = finding(vec![frame("/a/train.py", 3, "main", true)]);
        later.phase = Phase::Backward;
        assert_ne!(fingerprint(&later), of("/a/train.py", "main"));
    }
}
