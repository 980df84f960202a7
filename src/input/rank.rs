//! The rank of the process that wrote a snapshot. No snapshot says it; the names of files and folders usually do.
//!
//! `rank3_memory_snapshot.pickle` (torchtitan, in `iteration_10/`), `snapshot.rank-3.pickle`, `rank_3/snapshot.pickle` and
//! `snapshot_3.pickle` are of rank 3. The word "rank" decides before the number behind "snapshot", which may also be an
//! iteration's; the file's name decides before those of its folders, the nearest first.

use std::path::{Component, Path};

/// No job has more processes; larger numbers are dates and times.
const MOST_RANKS: u32 = 1 << 20;

/// The rank that a path names.
pub(super) fn of(path: &Path) -> Option<u32> {
    let names: Vec<String> = path
        .components()
        .rev()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    names.iter().find_map(|name| behind_rank(name)).or_else(|| behind_snapshot(names.first()?))
}

/// The number behind the word "rank", with at most one sign in between.
fn behind_rank(name: &str) -> Option<u32> {
    name.match_indices("rank").find_map(|(at, word)| {
        let begins = !name.get(..at)?.ends_with(|before: char| before.is_ascii_alphabetic());
        let rest = name.get(at + word.len()..)?;
        begins.then(|| number(rest.strip_prefix(['_', '-', '=', '.']).unwrap_or(rest))).flatten()
    })
}

/// The number that ends the file's name behind the word "snapshot".
fn behind_snapshot(name: &str) -> Option<u32> {
    let stem = name.split('.').next()?;
    let rest = stem.get(stem.rfind("snapshot")? + "snapshot".len()..)?;
    let digits = rest.strip_prefix(['_', '-']).unwrap_or(rest);
    number(digits).filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u32> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.get(..end)?.parse().ok().filter(|rank| *rank < MOST_RANKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_names_tell_the_rank() {
        for name in [
            "rank3_memory_snapshot.pickle",
            "iteration_10/rank3_memory_snapshot.pickle",
            "snapshot_rank_3.pickle.zst",
            "job7-rank-3.pickle",
            "snapshot.rank=3.pickle",
            "out/Rank3.pkl",
            "snapshot_3.pickle",
            "memory_snapshot-3.pickle.gz",
            "rank3/snapshot.pickle",
            "rank3/iteration_20/snapshot.pickle",
            "rank0/rank3/snapshot.pickle",
        ] {
            assert_eq!(of(Path::new(name)), Some(3), "{name}");
        }
    }

    #[test]
    fn other_numbers_are_no_ranks() {
        for name in [
            "snapshot.pickle",
            "iteration_10/snapshot.pickle",
            "frank3.pickle",
            "ranks8/snapshot.pickle",
            "lora_rank.pickle",
            "snapshot_20260114.pickle",
            "snapshot_3_late.pickle",
            "rank99999999999.pickle",
            "-",
        ] {
            assert_eq!(of(Path::new(name)), None, "{name}");
        }
    }

    #[test]
    fn the_word_decides_before_the_bare_number() {
        assert_eq!(of(Path::new("rank1/snapshot_50.pickle")), Some(1));
        assert_eq!(of(Path::new("rank1/rank2_snapshot_50.pickle")), Some(2));
    }
}
