//! Names that lead to another machine: `s3://bucket/rank0.pickle`. Nothing is opened here.
//!
//! In: what somebody typed. Out: an [`Address`], or how to come by what memlint does not read. Always: what is shown of an
//! address has no key, password or signature in it.

use std::cmp::Ordering;
use std::fmt;

use super::naming::has_signs;

/// Where an object lies that is read over the network.
///
/// Two are the same if they are written alike.
#[derive(Clone)]
pub struct Address {
    scheme: Scheme,
    /// As it was typed, or listed.
    text: String,
    /// Bytes of the object, where a listing told.
    size: Option<u64>,
}

/// How an object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scheme {
    /// `s3://bucket/key`: Amazon S3 and what speaks its protocol.
    S3,
    /// `gs://bucket/name`: Google Cloud Storage.
    Gs,
    /// `az://container/name`: Azure Blob Storage.
    Az,
    /// `https://host/path`.
    Https,
    /// `http://host/path`: of this machine alone.
    Http,
}

/// What an address stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// One object.
    Object,
    /// All that lie below.
    Folder,
    /// Those that match.
    Pattern,
}

impl Scheme {
    fn of(word: &str) -> Option<Scheme> {
        Some(match word.to_ascii_lowercase().as_str() {
            "s3" => Scheme::S3,
            "gs" => Scheme::Gs,
            "az" => Scheme::Az,
            "https" => Scheme::Https,
            "http" => Scheme::Http,
            _ => return None,
        })
    }

    /// Whether it leads to a store, which has buckets and can list.
    pub(super) fn is_store(self) -> bool {
        matches!(self, Scheme::S3 | Scheme::Gs | Scheme::Az)
    }
}

impl Address {
    /// What a text names, where that is an address that memlint can read.
    pub(super) fn of(text: &str) -> Option<Address> {
        let (scheme, _) = text.split_once("://")?;
        Some(Address { scheme: Scheme::of(scheme)?, text: text.to_owned(), size: None })
    }

    /// What messages and reports call it: without user and password, and without the query and the fragment of an `https://`
    /// address, where signatures stand.
    pub fn shown(&self) -> String {
        let (scheme, rest) = self.parted();
        let shown = rest.split(['?', '#']).next().unwrap_or_default();
        let rest = if self.scheme.is_store() { rest } else { shown };
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let place = place.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{place}{path}")
    }

    #[cfg(feature = "remote")]
    pub(super) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Bytes of the object, where a listing told.
    pub(super) fn size(&self) -> Option<u64> {
        self.size
    }

    /// What it stands for. Behind `https://` there are no folders and no patterns.
    pub(super) fn stands_for(&self) -> Stands {
        let key = self.key();
        match self.scheme.is_store() {
            true if has_signs(key) => Stands::Pattern,
            true if key.is_empty() || key.ends_with('/') => Stands::Folder,
            _ => Stands::Object,
        }
    }

    /// The bucket, the container or the host, with whatever stands before it.
    #[cfg(any(test, feature = "remote"))]
    pub(super) fn place(&self) -> &str {
        let (_, rest) = self.parted();
        let ends: &[char] = if self.scheme.is_store() { &['/'] } else { &['/', '?', '#'] };
        rest.split(ends).next().unwrap_or_default()
    }

    /// The name of the object in its bucket.
    pub(super) fn key(&self) -> &str {
        self.parted().1.split_once('/').map_or("", |(_, key)| key)
    }

    /// As it was typed: with whatever secrets are in it.
    #[cfg(feature = "remote")]
    pub(super) fn typed(&self) -> &str {
        &self.text
    }

    /// How to come by it without memlint.
    #[cfg(not(feature = "remote"))]
    pub(super) fn how_to_fetch(&self) -> String {
        how_to_fetch(&self.text).unwrap_or_default()
    }

    /// Another object of the same bucket.
    #[cfg(feature = "remote")]
    pub(super) fn beside(&self, key: &str, size: u64) -> Address {
        let (scheme, _) = self.parted();
        Address { text: format!("{scheme}://{}/{key}", self.place()), size: Some(size), ..*self }
    }

    fn parted(&self) -> (&str, &str) {
        self.text.split_once("://").unwrap_or(("", &self.text))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown()).finish()
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Address) -> bool {
        self.text == other.text
    }
}

impl Eq for Address {}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Address) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Address) -> Ordering {
        self.text.cmp(&other.text)
    }
}

/// How to come by what an address names without memlint; `None` for a path of this machine.
pub(super) fn how_to_fetch(name: &str) -> Option<String> {
    let (scheme, rest) = name.split_once("://")?;
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if !is_scheme {
        return None;
    }
    let shown = Address::of(name).map_or_else(|| name.to_owned(), |address| address.shown());
    // As a shell takes it, whatever signs are in it.
    let quoted = format!("'{}'", shown.replace('\'', "'\\''"));
    let fetch = match scheme.to_ascii_lowercase().as_str() {
        "s3" => format!("aws s3 cp {quoted} -"),
        "gs" => format!("gcloud storage cat {quoted}"),
        // Whoever typed a signature has it; a log need not.
        "http" | "https" if shown != name => "curl -fsSL ADDRESS".to_owned(),
        "http" | "https" => format!("curl -fsSL {quoted}"),
        "file" => return Some(format!("write the path alone: {rest}")),
        _ => return Some("copy it to this machine, and name the copy".to_owned()),
    };
    Some(format!("copy it to this machine, or give it to memlint as it comes: {fetch} | memlint check -"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_a_path() {
        let fetch = |name: &str| how_to_fetch(name).unwrap_or_default();
        assert!(
            fetch("s3://runs/it's.pickle")
                .contains("aws s3 cp 's3://runs/it'\\''s.pickle' - | memlint check -")
        );
        assert!(fetch("gs://runs/a").contains("gcloud storage cat 'gs://runs/a' |"));
        assert!(fetch("HTTPS://host/a").contains("curl -fsSL 'HTTPS://host/a' |"));
        assert!(fetch("https://host/a?b=1").contains("curl -fsSL ADDRESS |"));
        assert!(fetch("file:///tmp/a").ends_with(" /tmp/a"));
        assert!(fetch("abfss://runs/a").starts_with("copy it"));
        for path in ["runs/a.pickle", "a://b/../c d://", "://a", "C:/runs", "1a://b"] {
            assert_eq!(how_to_fetch(path).is_some(), path.starts_with("a://"), "{path}");
            assert_eq!(Address::of(path), None, "{path}");
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let shown = |text: &str| Address::of(text).unwrap().shown();
        assert_eq!(
            shown("https://me:word@host:8080/a/b.pickle?X-Amz-Signature=1f#c"),
            "https://host:8080/a/b.pickle"
        );
        assert_eq!(shown("https://host?sig=a/b@c"), "https://host");
        assert_eq!(shown("s3://KEY:SECRET@runs/rank?.pickle"), "s3://runs/rank?.pickle");
        assert_eq!(shown("s3://runs/a@b.pickle"), "s3://runs/a@b.pickle");
        let debugged = format!("{:?}", Address::of("https://host/a?sig=secret"));
        assert!(!debugged.contains("secret"), "{debugged}");
    }

    #[test]
    fn stores_have_folders_and_patterns() {
        let stands = |text: &str| Address::of(text).unwrap().stands_for();
        assert_eq!(stands("s3://runs/rank0.pickle"), Stands::Object);
        for folder in ["s3://runs", "gs://runs/", "az://runs/of/today/"] {
            assert_eq!(stands(folder), Stands::Folder, "{folder}");
        }
        assert_eq!(stands("s3://runs/rank*.pickle"), Stands::Pattern);
        for object in ["https://host/run/", "https://host/rank0?a=*", "http://localhost"] {
            assert_eq!(stands(object), Stands::Object, "{object}");
        }
        let address = Address::of("s3://runs/of/today/").unwrap();
        assert_eq!((address.place(), address.key()), ("runs", "of/today/"));
    }
}
