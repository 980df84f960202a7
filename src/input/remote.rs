//! Paths that lead to another machine: `s3://bucket/rank0.pickle`. memlint opens none of them; standard input takes what a
//! program of the user's fetches.

/// How to come by what an address names; `None` for a path of this machine.
pub(super) fn how_to_fetch(name: &str) -> Option<String> {
    let (scheme, rest) = name.split_once("://")?;
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if !is_scheme {
        return None;
    }
    // As a shell takes it, whatever signs are in it.
    let quoted = format!("'{}'", name.replace('\'', "'\\''"));
    let fetch = match scheme.to_ascii_lowercase().as_str() {
        "s3" => format!("aws s3 cp {quoted} -"),
        "gs" => format!("gcloud storage cat {quoted}"),
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
        assert!(fetch("HTTPS://host/a?b=1").contains("curl -fsSL 'HTTPS://host/a?b=1' |"));
        assert!(fetch("file:///tmp/a").ends_with(" /tmp/a"));
        assert!(fetch("abfss://runs/a").starts_with("copy it"));
        for path in ["runs/a.pickle", "a://b/../c d://", "://a", "C:/runs", "1a://b"] {
            assert_eq!(how_to_fetch(path).is_some(), path.starts_with("a://"), "{path}");
        }
    }
}
