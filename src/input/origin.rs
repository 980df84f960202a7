//! Which process of a job wrote a snapshot, and when. No snapshot says it; the names of files and folders usually do.
//!
//! In: the sources of one run of memlint. Out: an [`Origin`] each. `rank3_memory_snapshot.pickle` (torchtitan, in
//! `iteration_10/` or, where the job ends, `iteration_25_exit/`), `snapshot.rank-3.pickle` and `rank_3/snapshot.pickle` are of
//! rank 3; the file's name decides before those of its folders, the nearest first. Numbers behind `iteration`, `iter`, `step`
//! and `epoch` are times. The number in `snapshot_3.pickle` may be either: the files of one name decide together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path};

use super::Source;

/// No job has more processes; larger numbers are dates and times.
const MOST_RANKS: u64 = 1 << 20;
/// Numbers of a file's name with this many digits are dates, times and process ids: another one in every file of a job.
const LONG: usize = 6;
/// What stands before the number of an iteration.
const TIMES: [&str; 4] = ["iteration", "iter", "step", "epoch"];

/// Where a snapshot belongs, as far as names tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// What the names of the job's snapshots have in common, such as `out/iteration_*/rank*_memory_snapshot.pickle`. `None`
    /// where the name tells neither rank nor time: such a snapshot belongs to no other.
    pub job: Option<String>,
    /// The rank of the process that wrote it.
    pub rank: Option<u32>,
    /// When it was written: the numbers of the iteration, the outermost first. Compares as time does.
    pub moment: Vec<u64>,
}

/// Where each of some sources belongs.
pub fn origins(sources: &[Source]) -> Vec<Origin> {
    let mut names: Vec<Name> = sources
        .iter()
        .map(|source| match source {
            Source::File(path) => Name::of(path),
            Source::Remote(address) => Name::of(Path::new(&address.shown())),
            Source::Stdin => Name::default(),
        })
        .collect();
    settle_bare_numbers(&mut names);
    let jobs = jobs(&names);
    names
        .into_iter()
        .zip(jobs)
        .map(|(name, job)| Origin { job, rank: name.rank, moment: name.moment })
        .collect()
}

/// A path taken apart.
#[derive(Debug, Default)]
struct Name {
    /// The folders, with `*` for ranks and times.
    folder: String,
    /// The file's name, with `*` for ranks, times and long numbers.
    file: String,
    rank: Option<u32>,
    moment: Vec<u64>,
    /// The number that ends the file's name behind the word "snapshot".
    bare: Option<u64>,
}

impl Name {
    fn of(path: &Path) -> Name {
        let parts: Vec<String> = path
            .components()
            .filter(|component| *component != Component::CurDir)
            .map(|component| component.as_os_str().to_string_lossy().into_owned())
            .collect();
        let mut name = Name::default();
        let mut patterns = Vec::new();
        for (back, part) in parts.iter().rev().enumerate() {
            patterns.push(name.take(part, back == 0));
        }
        // The folders were read from the innermost; times count from the outermost.
        name.moment.reverse();
        let file = patterns.drain(..1.min(patterns.len())).next();
        patterns.reverse();
        let folder = patterns.join("/").replace("//", "/");
        // Of an address, as people write it.
        let folder = match folder.split_once(":/") {
            Some((scheme, rest))
                if path.to_str().is_some_and(|path| path.starts_with(&format!("{scheme}://"))) =>
            {
                format!("{scheme}://{rest}")
            }
            _ => folder,
        };
        Name { folder, file: file.unwrap_or_default(), ..name }
    }

    /// Takes the numbers out of a part of the path; what is left of it.
    fn take(&mut self, part: &str, is_file: bool) -> String {
        let stem = part.find('.').unwrap_or(part.len());
        let mut taken: Vec<Range<usize>> = Vec::new();
        // From the last to the first: see `Name::of`.
        for number in numbers(part).into_iter().rev() {
            let Number { word, value, digits } = number;
            let end = digits.end;
            let lowercase = part.get(..digits.start).unwrap_or_default().to_ascii_lowercase();
            // The rank of a low-rank adapter is another thing.
            let process = word == "rank" && !lowercase.contains("lora");
            if process && self.rank.is_none() && value < MOST_RANKS {
                self.rank = u32::try_from(value).ok();
                taken.push(digits);
            } else if TIMES.contains(&word.as_str()) {
                let exit = part.get(end..).is_some_and(|rest| rest.starts_with("_exit"));
                let after = if exit { end + "_exit".len() } else { end };
                self.moment.extend(exit.then_some(1));
                self.moment.push(value);
                taken.push(digits.start..after);
            } else if is_file && word.ends_with("snapshot") && end == stem {
                self.bare = Some(value);
                taken.push(digits);
            } else if is_file && digits.len() >= LONG {
                taken.push(digits);
            }
        }
        let mut pattern = part.to_owned();
        for range in taken {
            pattern.replace_range(range, "*");
        }
        pattern
    }
}

/// A number in a name.
struct Number {
    /// The letters before it, with at most one sign in between; lower case.
    word: String,
    value: u64,
    digits: Range<usize>,
}

/// The numbers of a name, in their order. Those that fit into no integer are left out.
fn numbers(text: &str) -> Vec<Number> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()).map(|skip| at + skip) else {
            break;
        };
        let tail = text.get(start..).unwrap_or_default();
        let end = start + tail.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(tail.len());
        let before = text.get(..start).unwrap_or_default();
        let before = before.strip_suffix(['_', '-', '=', '.']).unwrap_or(before);
        let begins = before.rfind(|letter: char| !letter.is_ascii_alphabetic());
        let word = begins.map_or(before, |last| before.get(last..).unwrap_or_default());
        let word = word.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic()).to_ascii_lowercase();
        if let Some(value) = text.get(start..end).and_then(|digits| digits.parse().ok()) {
            found.push(Number { word, value, digits: start..end });
        }
        at = end;
    }
    found
}

/// Decides what the numbers of `snapshot_0`, `snapshot_1`, ... are: ranks where they count from 0 with few gaps, or
/// else times. One alone tells nothing of ranks.
fn settle_bare_numbers(names: &mut [Name]) {
    let mut alike: BTreeMap<(String, String), BTreeSet<u64>> = BTreeMap::new();
    for name in names.iter() {
        if let Some(bare) = name.bare.filter(|_| name.rank.is_none()) {
            alike.entry((name.folder.clone(), name.file.clone())).or_default().insert(bare);
        }
    }
    for name in names.iter_mut() {
        let Some(bare) = name.bare else { continue };
        let count_ranks = name.rank.is_none()
            && alike.get(&(name.folder.clone(), name.file.clone())).is_some_and(counts_from_zero);
        match u32::try_from(bare) {
            Ok(rank) if count_ranks => name.rank = Some(rank),
            _ => name.moment.push(bare),
        }
    }
}

/// Whether these are at least two numbers from 0 on, with fewer missing in between than there are.
fn counts_from_zero(numbers: &BTreeSet<u64>) -> bool {
    let last = numbers.last().copied().unwrap_or_default();
    numbers.len() >= 2 && numbers.contains(&0) && last < MOST_RANKS.min(2 * numbers.len() as u64)
}

/// The job of each name. Ranks that stand together in a folder are one job, whatever else is in their names (hosts, times);
/// where one of them stands there twice, only those that are named alike.
fn jobs(names: &[Name]) -> Vec<Option<String>> {
    let mut folders: BTreeMap<&str, Folder> = BTreeMap::new();
    for name in names.iter().filter(|name| name.rank.is_some()) {
        let folder = folders.entry(&name.folder).or_default();
        folder.patterns.insert(&name.file);
        folder.crowded |= !folder.ranks.insert((name.rank, &name.moment));
    }
    let within = |folder: &str, file: &str| {
        if folder.is_empty() || folder.ends_with('/') {
            format!("{folder}{file}")
        } else {
            format!("{folder}/{file}")
        }
    };
    let job = |name: &Name| {
        let belongs = name.rank.is_some() || !name.moment.is_empty();
        let together = folders
            .get(name.folder.as_str())
            .is_some_and(|folder| name.rank.is_some() && !folder.crowded && folder.patterns.len() > 1);
        belongs.then(|| within(&name.folder, if together { "*" } else { &name.file }))
    };
    names.iter().map(job).collect()
}

/// The ranks of one folder.
#[derive(Default)]
struct Folder<'a> {
    patterns: BTreeSet<&'a str>,
    ranks: BTreeSet<(Option<u32>, &'a Vec<u64>)>,
    /// Whether a rank wrote several snapshots at one moment.
    crowded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<Origin> {
        let sources: Vec<Source> = names.iter().map(|name| Source::named(Path::new(name))).collect();
        origins(&sources)
    }

    fn ranks(names: &[&str]) -> Vec<Option<u32>> {
        of(names).into_iter().map(|origin| origin.rank).collect()
    }

    fn jobs(names: &[&str]) -> Vec<Option<String>> {
        of(names).into_iter().map(|origin| origin.job).collect()
    }

    #[test]
    fn the_usual_names_tell_the_rank() {
        for name in [
            "rank3_memory_snapshot.pickle",
            "iteration_10/rank3_memory_snapshot.pickle",
            "snapshot_rank_3.pickle.zst",
            "job7-rank-3.pickle",
            "snapshot.rank=3.pickle",
            "out/Rank3.pkl",
            "rank3/snapshot.pickle",
            "rank3/iteration_20/snapshot.pickle",
            "rank0/rank3/snapshot.pickle",
            "rank3/snapshot_50.pickle",
            "local_rank3_20260114.pickle",
        ] {
            assert_eq!(ranks(&[name]), [Some(3)], "{name}");
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
            "lora_rank8/snapshot.pickle",
            "snapshot_20260114.pickle",
            "snapshot_3.pickle",
            "snapshot_3_late.pickle",
            "rank99999999999.pickle",
            "rank99999999999999999999999999.pickle",
            "-",
        ] {
            assert_eq!(ranks(&[name]), [None], "{name}");
        }
    }

    #[test]
    fn files_of_one_name_decide_what_their_numbers_are() {
        assert_eq!(ranks(&["snapshot_1.pickle", "snapshot_0.pickle"]), [Some(1), Some(0)]);
        let gap = ["memory_snapshot-0.pickle", "memory_snapshot-1.pickle", "memory_snapshot-3.pickle"];
        assert_eq!(ranks(&gap), [Some(0), Some(1), Some(3)]);
        let steps = of(&["snapshot_0.pickle", "snapshot_50.pickle", "snapshot_100.pickle"]);
        assert!(
            steps.iter().all(|one| one.rank.is_none() && one.job.as_deref() == Some("snapshot_*.pickle"))
        );
        let moments: Vec<_> = steps.into_iter().map(|one| one.moment).collect();
        assert_eq!(moments, [[0], [50], [100]]);
        assert_eq!(ranks(&["a/snapshot_0.pickle", "b/snapshot_1.pickle"]), [None, None], "other folders");
        assert_eq!(ranks(&["snapshot_1.pickle", "snapshot_2.pickle"]), [None, None], "ranks count from 0");
        assert_eq!(ranks(&["rank1/snapshot_0.pickle", "rank1/snapshot_1.pickle"]), [Some(1), Some(1)]);
    }

    #[test]
    fn times_compare_as_they_pass() {
        let names = ["a/epoch_1/step=90/rank0.pickle", "a/epoch_2/step=5/rank0.pickle"];
        let dumps =
            ["t/iteration_9/rank0.pickle", "t/iteration_10/rank0.pickle", "t/iteration_10_exit/rank0.pickle"];
        for series in [&names[..], &dumps[..]] {
            let origins = of(series);
            assert!(origins.is_sorted_by(|a, b| a.moment < b.moment && a.job == b.job), "{origins:?}");
        }
        assert_eq!(of(&dumps)[2].moment, [10, 1]);
        assert_eq!(jobs(&dumps)[0].as_deref(), Some("t/iteration_*/rank*.pickle"));
    }

    #[test]
    fn a_job_is_its_folder_and_unrelated_files_stand_alone() {
        let hosts = ["out/node7_rank0_20260114101112.pickle", "./out/node9_rank1_20260114101113.pickle"];
        assert_eq!(jobs(&hosts), [Some("out/*".to_owned()), Some("out/*".to_owned())]);
        let models = ["out/small_rank0.pickle", "out/large_rank0.pickle", "out/large_rank1.pickle"];
        let large = Some("out/large_rank*.pickle".to_owned());
        assert_eq!(jobs(&models), [Some("out/small_rank*.pickle".to_owned()), large.clone(), large]);
        let runs = jobs(&["run_1/rank0.pickle", "run_2/rank1.pickle"]);
        assert_ne!(runs[0], runs[1]);
        assert_eq!(jobs(&["/a/rank0.pickle"])[0].as_deref(), Some("/a/rank*.pickle"));
        assert_eq!(jobs(&["a/train.pickle", "a/eval.pickle", "-"]), [None, None, None]);
        assert_eq!(jobs(&["s3://runs/of/rank0.pickle"])[0].as_deref(), Some("s3://runs/of/rank*.pickle"));
        assert_eq!(
            jobs(&["https://host/rank0.pickle?sig=1"])[0].as_deref(),
            Some("https://host/rank*.pickle")
        );
    }
}
