//! The page: nothing out of a recording is markup in it, and what it holds is what the other formats say.

use memlint::report::{Format, VerdictFailure};

use crate::fixture::{PLAIN, findings, none, saying, sources};
use crate::matrix::{page_document, written, written_failure};

const HOSTILE: [&str; 5] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</title><svg onload=alert(1)>",
    "<!--<script>",
    "\u{2028}\u{202e}'\"&lt;",
];

/// A page without its document: its own code, and the headline.
fn around(page: &str) -> String {
    let (before, rest) = page.split_once("type=\"application/octet-stream\">").unwrap();
    let (packed, after) = rest.split_once("</script>").unwrap();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    assert!(packed.bytes().all(plain), "the document is base64 and nothing else");
    format!("{before}{after}")
}

#[test]
fn nothing_out_of_a_recording_is_markup() {
    let clean = around(&written(Format::Html, &findings(), &sources(), &PLAIN));
    for words in HOSTILE {
        let page = written(Format::Html, &saying(words), &sources(), &PLAIN);
        assert_eq!(around(&page), clean, "{words:?}");
        let message = page_document(&page)["findings"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words.trim_start_matches(['\u{2028}', '\u{202e}'])), "{message}");
    }
}

#[test]
fn a_failure_is_told_in_the_title_and_is_no_markup_there() {
    for words in HOSTILE {
        let failure = VerdictFailure { message: words.to_owned(), help: None };
        let mut out = Vec::new();
        Format::Html.write_failure(&failure, &mut out).unwrap();
        let page = around(&String::from_utf8(out).unwrap());
        let known = around(&written_failure(Format::Html));
        let tags = |page: &str| page.matches('<').count();
        assert_eq!(tags(&page), tags(&known), "{words:?}");
        assert!(page.contains("<title>memlint: no verdict: "));
    }
}

#[test]
fn the_page_says_what_the_other_formats_say() {
    let page = written(Format::Html, &findings(), &sources(), &PLAIN);
    let text = written(Format::Text, &findings(), &sources(), &PLAIN);
    let document = page_document(&page);
    for finding in document["findings"].as_array().unwrap().iter().filter(|one| one["severity"] != "info") {
        let first = finding["message"].as_str().unwrap().split(' ').next().unwrap();
        assert!(!finding["open"].as_bool().unwrap() || text.contains(first), "{finding}");
    }
    assert!(page.contains(&format!("<title>memlint: {}</title>", document["headline"].as_str().unwrap())));
    let nothing = page_document(&written(Format::Html, &none(), &sources(), &PLAIN));
    assert_eq!(nothing["findings"].as_array().map(Vec::len), Some(0));
}
