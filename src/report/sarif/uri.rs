//! Paths as URIs (RFC 3986).

use std::fmt::Write;

use super::log::ArtifactLocation;
use crate::report::place::CiPath;

/// What relative URIs are relative to: the name that GitHub and others use for the root of the sources.
pub(super) const BASE: &str = "%SRCROOT%";

/// A file in the working copy relative to its root, another absolute path as `file:`, and any other name by itself.
pub(super) fn of(address: CiPath) -> ArtifactLocation {
    match address {
        CiPath::Inside(path) => ArtifactLocation { uri: encoded(&path), uri_base_id: Some(BASE) },
        CiPath::Elsewhere(path) => {
            let path = path.replace('\\', "/");
            let drive = path.as_bytes().get(1) == Some(&b':');
            let uri = match (path.starts_with('/'), drive) {
                (true, _) => format!("file://{}", encoded(&path)),
                (false, true) => format!("file:///{}", encoded(&path).replacen("%3A", ":", 1)),
                (false, false) => encoded(&path),
            };
            ArtifactLocation { uri, uri_base_id: None }
        }
    }
}

/// Every byte but `/` and the unreserved ones as `%` and two digits. A colon, too: what stands before one would be a scheme.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        let inside = of(CiPath::Inside("src/a b:c/größe.py".to_owned()));
        assert_eq!((&*inside.uri, inside.uri_base_id), ("src/a%20b%3Ac/gr%C3%B6%C3%9Fe.py", Some(BASE)));
        let elsewhere = |path: &str| of(CiPath::Elsewhere(path.to_owned())).uri;
        assert_eq!(elsewhere("/opt/job/a#1.py"), "file:///opt/job/a%231.py");
        assert_eq!(elsewhere("C:\\job\\a.py"), "file:///C:/job/a.py");
        assert_eq!(elsewhere("<string>"), "%3Cstring%3E");
    }
}
