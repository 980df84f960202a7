//! What makes two findings the same finding, in another run, on another machine, after unrelated edits.
//!
//! A hash of the rule, the kind of phase, and the user's frames as (file, function). Left out on purpose: line numbers,
//! sizes, addresses, times, the device and the rank. Files count from the deepest folder that holds all of the stack's
//! user files, so that neither the place of a checkout nor the presence of its sources changes anything.

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
        key.push_str(&format!("\n{relative}\t{}", frame.function));
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
