//! Long paths, told shortly: those of a program from the folder on that they have in common, those of libraries from their
//! package on.

/// A folder that holds all of some files. It ends with its separator; empty where they share none that is worth leaving out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Root(String);

impl Root {
    /// That of some files.
    pub(super) fn of<'a>(mut files: impl Iterator<Item = &'a str>) -> Root {
        let first = files.next().map_or("", folder);
        let shared = files.fold(first, shared_folder);
        // From `/` on every path begins, and one without it would pass for one from here.
        let is_some_folder = !shared.trim_matches(['/', '\\']).is_empty();
        Root(if is_some_folder { shared.to_owned() } else { String::new() })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &str {
        &self.0
    }

    /// A file from there on; what lies elsewhere stays as it is.
    pub(super) fn within<'a>(&self, file: &'a str) -> &'a str {
        file.strip_prefix(&self.0).unwrap_or(file)
    }
}

/// A path up to its last separator, which is included.
fn folder(path: &str) -> &str {
    path.rfind(['/', '\\']).and_then(|end| path.get(..=end)).unwrap_or_default()
}

/// The part of a folder in which another file lies, too.
fn shared_folder<'a>(shared: &'a str, file: &str) -> &'a str {
    let mut shared = shared;
    while !file.starts_with(shared) {
        shared = folder(shared.trim_end_matches(['/', '\\']));
    }
    shared
}

/// A library's path from its package on.
pub(super) fn package_path(path: &str) -> &str {
    ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|folder| path.rsplit_once(folder))
        .map_or(path, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_folder_that_holds_all() {
        let root = Root::of(["/opt/job/a/train.py", "/opt/job/about.py"].into_iter());
        assert_eq!((root.folder(), root.within("/opt/job/a/train.py")), ("/opt/job/", "a/train.py"));
        assert_eq!(root.within("/usr/lib/python3/ast.py"), "/usr/lib/python3/ast.py");
        let apart = Root::of(["/opt/train.py", "/home/other.py"].into_iter());
        assert_eq!((apart.folder(), apart.within("/opt/train.py")), ("", "/opt/train.py"));
        assert_eq!(Root::of(std::iter::empty()), Root::default());
    }
}
