//! The pages that PyTorch's `_memory_viz.py trace_plot` and `segment_plot` write: the snapshot stands inside, in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What stands before the snapshot (`torch/cuda/_memory_viz.py`, `_format_viz`: JSON of `[{"name", "base64"}]`).
const MARK: &[u8] = b"\"base64\":";

/// The snapshot of a page; `None` where there is none.
pub(super) fn snapshot(page: &[u8]) -> Option<Vec<u8>> {
    let mark = page.windows(MARK.len()).position(|window| window == MARK)?;
    let value = page.get(mark + MARK.len()..)?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().position(|&byte| byte == b'"')?;
    STANDARD.decode(value.get(..end)?).ok()
}

/// What `export_memory_timeline` of PyTorch's profiler gives its pages for a title: they hold a picture and no numbers.
const TITLE: &[u8] = b"<title>GPU Memory Timeline HTML</title>";

/// Whether a page begins like one that the profiler drew.
pub(super) fn is_drawn_timeline(head: &[u8]) -> bool {
    head.windows(TITLE.len()).any(|window| window == TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_stands_between_quotes() {
        let page =
            br#"<!DOCTYPE html><script>const files = [{"name": "snapshot.pickle", "base64": "gASVAA=="}]"#;
        assert_eq!(snapshot(page), Some(vec![0x80, 4, 0x95, 0]));
        assert_eq!(snapshot(b"<html><p>\"base64\": \"gASV"), None, "a page that breaks off");
        assert_eq!(snapshot(b"<html></html>"), None);
    }
}
