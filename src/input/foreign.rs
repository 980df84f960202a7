//! Files that are no snapshots: what each is, told from its first bytes (from its name where nothing else tells), and what to
//! do next.

use std::path::Path;

/// What to do where nothing is known of a file.
const RECORD: &str = "memlint reads what `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` writes, plain or \
                      compressed with gzip, zstd or xz";

/// What a pointer of Git LFS begins with (its specification, version 1).
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Where the word `ustar` stands in the first header of a tar archive (POSIX.1-1988), and the word.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// What the reports of Nsight Systems are called; their format is not public.
const NSIGHT_SYSTEMS: [&str; 3] = ["nsys-rep", "qdrep", "qdstrm"];

/// A file that is no snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Foreign {
    /// What it is, in words.
    pub(super) found: String,
    /// What to do, in the imperative.
    pub(super) next: String,
}

impl Foreign {
    /// What a file is, by its name and by the first bytes of what it holds when it is unpacked.
    pub(super) fn of(name: &str, head: &[u8]) -> Foreign {
        let known = |found: &str, next: &str| Foreign { found: found.to_owned(), next: next.to_owned() };
        let holds = |key: &[u8]| head.windows(key.len()).any(|window| window == key);
        if head.starts_with(LFS_POINTER) {
            let next =
                "fetch the file itself: `git lfs pull` in the working copy, or a checkout with LFS in CI";
            return known("a pointer of Git LFS to a file that was not fetched", next);
        }
        if head.starts_with(b"PK\x03\x04") && holds(b"/data.pkl") {
            return known(
                "a file of `torch.save`",
                &format!("it holds tensors, and no history of them; {RECORD}"),
            );
        }
        if head.starts_with(b"PK\x03\x04") {
            return known("a zip archive", "unpack it with `unzip`, and name the snapshot that was in it");
        }
        if head.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
            return known("a tar archive", "unpack it with `tar -xf`, and name the folder that was in it");
        }
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if NSIGHT_SYSTEMS.contains(&ending) || head.starts_with(b"SQLite format 3\0") {
            let is_report = NSIGHT_SYSTEMS.contains(&ending);
            let found = if is_report {
                "a report of Nsight Systems"
            } else {
                "an SQLite database, as Nsight Systems exports"
            };
            return known(found, &format!("Nsight Systems does not record PyTorch's allocator; {RECORD}"));
        }
        Foreign { found: other(head), next: RECORD.to_owned() }
    }
}

/// What a file is with which nothing can be done.
fn other(head: &[u8]) -> String {
    let known: &[(&[u8], &str)] =
        &[(b"\x7fELF", "a program"), (b"{", "JSON or other text"), (b"[", "JSON or other text")];
    if let Some((_, what)) = known.iter().find(|(magic, _)| head.starts_with(magic)) {
        return (*what).to_owned();
    }
    if let [0x80, protocol, ..] = head {
        return format!("a pickle of protocol {protocol}");
    }
    let printable = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match str::from_utf8(head) {
        Ok(text) if head.iter().all(printable) => {
            let line: String = text.lines().next().unwrap_or_default().chars().take(40).collect();
            format!("text (\"{line}\")")
        }
        _ => {
            let first: Vec<String> = head.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("data that begins with {}", first.join(" "))
        }
    }
}
