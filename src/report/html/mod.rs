//! The page: one file that a browser opens without a network, with a picture of every device and the findings beside it.
//!
//! The page's own code, style and skeleton are written in TypeScript under `page/`, built there, committed as
//! `page/page.html` and embedded. What this module adds is the document, JSON: compressed and in base64, in a block
//! that no browser runs. So nothing out of a recording is markup or a script, whatever it holds; and the code puts text into the page
//! as text alone. The policy in the page's head allows its own script and style by their hashes and no connection at all.

mod chosen;
mod columns;
mod finding;
mod picture;
mod recording;

use std::collections::BTreeSet;
use std::io::{self, BufWriter};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

pub use self::chosen::{chooses, in_full};

use self::chosen::Alike;
use self::finding::Card;
use self::recording::Recorded;
use super::headline::Headline;
use super::tally::Tally;
use super::{VerdictFailure, markdown, words};
use crate::engine::{Recording, Report};
use crate::familiar::Familiar;
use crate::program::Phase;
use crate::role::Role;
use crate::source::SourceMap;
use crate::unit::{shown_line, shown_page};

/// The page with everything but the document.
const PAGE: &str = include_str!("../../../page/page.html");
/// Where the document stands in it.
const PLACE: &str = "@document@";
/// Where the headline stands in it, for whoever sees no more of the page than its title.
const TITLE: &str = "@title@";
/// The version of the document: the page's code reads no other.
const VERSION: &str = "memlint-page/1";

/// Everything that the page shows.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: &'static str,
    /// The first line: what was found, or why there is no verdict.
    headline: String,
    /// What that comes to for the gate.
    verdict: String,
    /// The names that the columns of pictures count by.
    roles: Vec<&'static str>,
    familiars: Vec<&'static str>,
    phases: Vec<&'static str>,
    findings: Vec<Card>,
    notices: Vec<Said>,
    /// What was not judged, with the rules.
    silences: Vec<(String, Vec<&'a str>)>,
    recordings: Vec<Recorded>,
    /// The recordings that are not drawn in full, in groups of those that are alike.
    groups: Vec<Alike>,
    /// The recording that all are held against, and what differs.
    base: Vec<Recorded>,
    differences: Vec<String>,
}

/// Something about the judging, or a file that could not be read.
#[derive(Serialize)]
struct Said {
    severity: &'static str,
    message: String,
    help: String,
}

/// Writes the report of a check as a page.
///
/// # Errors
/// Where the output cannot be written.
pub(super) fn page(report: &Report, sources: &SourceMap, out: &mut dyn io::Write) -> io::Result<()> {
    let drawn = in_full(report);
    let first = Headline::of(report).map_or_else(|| Tally::of(report).words(), |headline| headline.text);
    write(
        &Document {
            headline: shown_line(&first),
            verdict: markdown::verdict(report).replace("**", ""),
            findings: Card::all(report, sources),
            notices: said(report),
            silences: words::silences(report),
            recordings: Recorded::all(report, &report.recordings, &drawn, sources),
            groups: chosen::groups(&report.recordings, &drawn),
            base: base_beside(report, &drawn, sources),
            differences: report.differences.iter().map(|one| shown_page(&one.text, false)).collect(),
            ..Document::empty()
        },
        out,
    )
}

/// The recordings of the base that stand beside those that are drawn.
fn base_beside(report: &Report, drawn: &BTreeSet<usize>, sources: &SourceMap) -> Vec<Recorded> {
    let beside = counterparts(report, drawn);
    let all = Recorded::all(report, &report.base, &beside, sources);
    all.into_iter().enumerate().filter(|(at, _)| beside.contains(at)).map(|(_, one)| one).collect()
}

/// The positions of the base's recordings that stand beside some of the report's: those of the same ranks, and the first.
pub fn counterparts(report: &Report, drawn: &BTreeSet<usize>) -> BTreeSet<usize> {
    let ranks: BTreeSet<u32> = drawn.iter().filter_map(|at| report.recordings.get(*at)?.rank).collect();
    let is_beside = |(at, one): (usize, &Recording)| {
        (at == 0 || one.rank.is_some_and(|rank| ranks.contains(&rank))).then_some(at)
    };
    report.base.iter().enumerate().filter_map(is_beside).collect()
}

/// Writes that there is no verdict.
///
/// # Errors
/// Where the output cannot be written.
pub(super) fn failure(failure: &VerdictFailure, out: &mut dyn io::Write) -> io::Result<()> {
    let headline = format!("no verdict: {}", shown_line(&failure.sentence()));
    write(&Document { headline, ..Document::empty() }, out)
}

impl Document<'_> {
    fn empty() -> Self {
        Document {
            format: VERSION,
            version: env!("CARGO_PKG_VERSION"),
            headline: String::new(),
            verdict: String::new(),
            roles: Role::ALL.map(Role::name).to_vec(),
            familiars: Familiar::ALL.map(Familiar::words).to_vec(),
            phases: Phase::ALL.map(Phase::name).to_vec(),
            findings: Vec::new(),
            notices: Vec::new(),
            silences: Vec::new(),
            recordings: Vec::new(),
            groups: Vec::new(),
            base: Vec::new(),
            differences: Vec::new(),
        }
    }
}

fn said(report: &Report) -> Vec<Said> {
    let unread = report.unread.iter().map(|one| Said {
        severity: "error",
        message: shown_line(&format!("{}: {}", one.name, one.message)),
        help: shown_line(one.help.as_deref().unwrap_or_default()),
    });
    let notices = report.notices.iter().map(|one| Said {
        severity: one.severity.name(),
        message: shown_line(&one.message),
        help: shown_line(&one.help),
    });
    unread.chain(notices).collect()
}

/// Puts the document into its place: JSON, compressed, base64.
fn write(document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
    let (before, after) = PAGE.split_once(PLACE).unwrap_or((PAGE, ""));
    out.write_all(before.replace(TITLE, &markdown::html(&document.headline)).as_bytes())?;
    {
        let packed = GzEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::default());
        // Numbers are written one by one, and each call of the encoder has its price.
        let mut buffered = BufWriter::with_capacity(1 << 16, packed);
        serde_json::to_writer(&mut buffered, document)?;
        let packed = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        packed.finish()?.finish()?;
    }
    out.write_all(after.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_place_for_the_document_and_loads_nothing() {
        assert_eq!((PAGE.matches(PLACE).count(), PAGE.matches(TITLE).count()), (1, 2));
        assert!(PAGE.contains("connect-src 'none'"), "a policy against connections");
        for word in ["src=\"http", "href=\"http", "@import", "url(http", "unsafe-inline", "unsafe-eval"] {
            assert!(!PAGE.contains(word), "{word}");
        }
    }
}
