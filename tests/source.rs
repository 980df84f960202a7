//! Recorded paths and the local files that they stand for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use memlint::finding::{Location, Seek};
use memlint::source::{PathMap, SourceFile, SourceMap};

const TRAIN: &str = "import torch\n\n\ndef main():\n    model = build()\n    return model\n\n\nmain()\n";

/// A folder with these files.
fn folder(name: &str, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("source").join(name);
    let _ = fs::remove_dir_all(&folder);
    for (path, content) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The file that stands for a recorded line, named from the folder.
fn found(sources: &SourceMap, folder: &Path, recorded: &str, line: u32, function: &str) -> Option<String> {
    let location = Location { file: recorded.to_owned(), line, function: function.to_owned() };
    let file = sources.find(&location)?.file;
    Some(Path::new(file.name()).strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/"))
}

#[test]
fn the_longest_ending_wins() {
    let train = TRAIN.as_bytes();
    let folder =
        folder("longest", &[("train.py", train), ("src/train.py", train), ("src/tools/other.py", train)]);
    let sources = SourceMap::new([folder.clone()], Vec::new());
    let find = |recorded: &str| found(&sources, &folder, recorded, 5, "main");
    assert_eq!(find("/opt/job/src/train.py").as_deref(), Some("src/train.py"));
    assert_eq!(find("C:\\jobs\\src\\train.py").as_deref(), Some("src/train.py"));
    assert_eq!(find("/opt/job/lib/train.py").as_deref(), Some("train.py"));
    assert_eq!(find("./train.py").as_deref(), Some("train.py"));
    assert_eq!(find("/opt/job/other.py"), None, "nothing is searched below the root");
    for odd in ["<string>", "<frozen importlib._bootstrap>", "", "/opt/../train.py", "train.txt"] {
        assert_eq!(find(odd), None, "{odd}");
    }
}

#[test]
fn a_file_that_cannot_be_the_recorded_one_is_passed_over() {
    let other = b"def other():\n    pass\n\n\ndef more():\n    pass\n";
    let folder = folder(
        "wrong",
        &[("a/train.py", b"x = 1\n"), ("b/train.py", other), ("c/train.py", TRAIN.as_bytes())],
    );
    let roots = ["a", "b", "c"].map(|root| folder.join(root));
    let sources = SourceMap::new(roots, Vec::new());
    let find = |line, function| found(&sources, &folder, "/job/train.py", line, function);
    assert_eq!(find(1, "<module>").as_deref(), Some("a/train.py"), "of equal ones the first root's");
    assert_eq!(find(6, "more").as_deref(), Some("b/train.py"), "too short in a");
    assert_eq!(find(6, "main").as_deref(), Some("c/train.py"), "another function in b");
    assert_eq!(find(7, "main"), None, "no code at that line anywhere");
    assert_eq!(find(99, "main"), None);
}

#[test]
fn maps_come_first_and_the_longest_prefix_decides() {
    let train = TRAIN.as_bytes();
    let folder = folder(
        "maps",
        &[("train.py", train), ("x/train.py", train), ("y/train.py", train), ("z/t/train.py", train)],
    );
    let map = |from: &str, to: &str| PathMap { from: from.to_owned(), to: folder.join(to) };
    let maps = vec![map("/opt", "z"), map("/opt/job", "x"), map("/opt/job/deep/", "y")];
    let sources = SourceMap::new([folder.clone()], maps);
    let find = |recorded: &str| found(&sources, &folder, recorded, 5, "main");
    assert_eq!(find("/opt/job/train.py").as_deref(), Some("x/train.py"));
    assert_eq!(find("/opt/job/deep/train.py").as_deref(), Some("y/train.py"));
    assert_eq!(find("/opt/t/train.py").as_deref(), Some("z/t/train.py"));
    assert_eq!(find("/opt/jobs/train.py").as_deref(), Some("train.py"), "a prefix ends at a folder");
    assert!("a=b".parse::<PathMap>().is_ok());
    assert!(["ab", "=b", "a="].iter().all(|text| text.parse::<PathMap>().is_err()));
}

#[test]
fn what_no_person_wrote_is_not_read() {
    let mut long = TRAIN.as_bytes().to_vec();
    long.resize((4 << 20) + 1, b'\n');
    let folder = folder("odd", &[("long.py", &long), ("latin.py", b"x = '\xe9'\n"), ("folder.py/x", b"")]);
    let sources = SourceMap::new([folder.clone()], Vec::new());
    for name in ["long.py", "latin.py", "folder.py", "missing.py"] {
        assert_eq!(found(&sources, &folder, name, 1, "<module>"), None, "{name}");
    }
}

#[test]
fn endless_paths_are_not_looked_for() {
    let train = TRAIN.as_bytes();
    let deep = format!("{}train.py", "a/".repeat(40));
    let folder = folder("endless", &[("train.py", train), (&deep, train)]);
    let sources = SourceMap::new([folder.clone()], Vec::new());
    let find = |recorded: &str| found(&sources, &folder, recorded, 5, "main");
    assert_eq!(find(&format!("/{}train.py", "a/".repeat(2000))).as_deref(), Some("train.py"));
    assert_eq!(find(&format!("/{}train.py", "a/".repeat(3000))), None, "longer than any system's paths");
    assert_eq!(find(&deep).as_deref(), Some("train.py"), "of 41 parts only the last 32 are tried");
}

#[test]
fn what_is_not_there_is_remembered_too() {
    let folder = folder("remembered", &[]);
    let sources = SourceMap::new([folder.clone()], Vec::new());
    assert_eq!(found(&sources, &folder, "/job/train.py", 5, "main"), None);
    fs::write(folder.join("train.py"), TRAIN).unwrap();
    assert_eq!(
        found(&sources, &folder, "/job/train.py", 5, "main"),
        None,
        "each folder is looked through once"
    );
    let sources = SourceMap::new([folder.clone()], Vec::new());
    assert_eq!(found(&sources, &folder, "/job/train.py", 5, "main").as_deref(), Some("train.py"));
}

#[test]
fn deep_nesting_is_survived() {
    let deep = format!("x = {}1{}\n", "(".repeat(100_000), ")".repeat(100_000));
    let chain = format!("x = {}1\n", "1 + ".repeat(200_000));
    let calls = format!("x = f{}\n", "(1)".repeat(200_000));
    let folder = folder(
        "deep",
        &[("deep.py", deep.as_bytes()), ("chain.py", chain.as_bytes()), ("calls.py", calls.as_bytes())],
    );
    let sources = SourceMap::new([folder.clone()], Vec::new());
    for name in ["deep.py", "chain.py", "calls.py"] {
        let first = Location { file: name.to_owned(), line: 1, function: "<module>".to_owned() };
        let file = sources.find(&first).unwrap().file;
        assert!(file.expression_at(1).is_some(), "{name}");
    }
}

#[test]
fn a_call_that_asks_for_the_state_alone_is_known() {
    let alone = |text: &str| SourceFile::new("a.py".to_owned(), format!("{text}\n")).records_state_alone(1);
    assert!(alone("torch.cuda.memory._record_memory_history('state')"));
    assert!(alone("torch.cuda.memory._record_memory_history(stacks='python', enabled=\"state\")"));
    for other in [
        "record(True)",
        "_record_memory_history(True)",
        "_record_memory_history(enabled=mode)",
        "x = 'state'",
    ] {
        assert!(!alone(other), "{other}");
    }
}

#[test]
fn a_sought_call_is_found_where_it_stands() {
    let folder =
        folder("call", &[("train.py", b"import torch\n\ndef main():\n    torch.cuda.memory._record(1)\n    _start(context='all')\n    _start(context=None)\n")]);
    let sources = SourceMap::new([folder], Vec::new());
    let line = |call, arguments: &[(&'static str, &'static str)]| {
        let arguments = arguments.iter().map(|(name, default)| ((*name).into(), (*default).into())).collect();
        let label = Cow::Borrowed("");
        sources.line_of_call("/job/train.py", &Seek { call: Cow::Borrowed(call), arguments, label })
    };
    assert_eq!(line("_record", &[]), Some(4));
    assert_eq!(line("_dump", &[]), None);
    assert_eq!(line("_record", &[("context", "all")]), None, "this one leaves it as it is");
    assert_eq!(line("_start", &[("context", "all")]), Some(6), "the first sets it to what it is without");
    assert_eq!(line("_start", &[("stacks", "python")]), None);
}

#[test]
fn what_lies_outside_is_not_opened_whichever_way_leads_there() {
    let train = TRAIN.as_bytes();
    let folder = folder("outside", &[("in/other.py", train), ("out/train.py", train)]);
    let folder = fs::canonicalize(folder).unwrap();
    let (inside, out) = (folder.join("in"), folder.join("out/train.py"));
    let recorded = |path: &Path| path.to_str().unwrap().to_owned();
    let through_proc = Path::new("/proc/self/root").join(out.strip_prefix("/").unwrap());
    let find = |sources: &SourceMap, path: &Path| {
        let location = Location { file: recorded(path), line: 5, function: "main".to_owned() };
        sources.find(&location).is_some()
    };
    let sources = SourceMap::new([inside.clone()], Vec::new());
    for path in [&out, &through_proc, &inside.join("../out/train.py")] {
        assert!(!find(&sources, path), "{}", path.display());
    }
    assert!(find(&sources, &inside.join("other.py")), "the recorded path itself, where it lies inside");
    assert!(find(&SourceMap::new([folder.join("out")], Vec::new()), &out));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../out/train.py", inside.join("train.py")).unwrap();
        let sources = SourceMap::new([inside.clone()], Vec::new());
        assert!(!find(&sources, Path::new("/job/train.py")));
        assert_eq!(sources.outside(), std::slice::from_ref(&out));
        let both = SourceMap::new([inside.clone(), folder.join("out")], Vec::new());
        assert!(find(&both, Path::new("/job/train.py")), "both ends of the link were named");
    }
}
