//! Nothing that a recording, a source file or a person says is obeyed: by a terminal, or by the log of a CI service. Every
//! hostile word, in every format that people read, at every place and wherever lines are wrapped.

use std::fs;
use std::path::Path;

use memlint::comparison::{
    Comparison, DeviceComparison, Doubt, Fate, FindingChange, PeakAt, SiteChange, SizeChange,
};
use memlint::finding::Finding;
use memlint::input::{Content, Limits, Source};
use memlint::profiler::ProfilerTimeline;
use memlint::program::Phase;
use memlint::report::{Detail, Format, Look, VerdictFailure, diff, profiler, stats, text};
use memlint::source::SourceMap;
use memlint::unit::{Bytes, DeviceIndex, Index};

use crate::fixture::{HOSTILE, PLAIN, at, missing_zero_grad, nowhere, report, saying, sources};
use crate::matrix::written;

/// What somebody may write into a name: commands of GitHub, Azure and `TeamCity`, of terminals, and what is not seen.
const WORDS: [&str; 28] = [
    "::error::x",
    " ::error file=a.py,line=1::x",
    "\u{3000}::add-mask::x",
    "::stop-commands::x",
    "::set-output name=a::x",
    "::debug::x",
    "##[error]x",
    "x##[group]y",
    "##[add-mask]x",
    "##vso[task.setvariable variable=a]x",
    "##VSO[task.complete]x",
    "###[endgroup]",
    "##teamcity[buildStop]",
    "\u{1b}[2J",
    "\u{1b}[8mx",
    "\u{1b}[0;1mx",
    "\u{9b}2J",
    "\u{1b}]8;;http://x\u{7}",
    "\r::error::x",
    "\n::error::x",
    "\n\n##[error]x",
    "\u{2028}::error::x\u{b}::error::x\u{c}::error::x\u{85}::error::x",
    "a\u{0}b\u{8}c\u{7f}",
    "\u{202e}a\u{2066}b\u{200f}c\u{61c}",
    "\u{e0001}\u{e0041}\u{e007f}",
    "\u{e0100}\u{fe0f}\u{200b}\u{2060}\u{feff}\u{ad}\u{3164}",
    "section_start:1:x\r\u{1b}[0Kx",
    HOSTILE,
];

/// What is never shown: it moves, colours, hides or reorders.
const UNSEEN: [char; 27] = [
    '\u{0}',
    '\u{7}',
    '\u{8}',
    '\u{b}',
    '\u{c}',
    '\r',
    '\u{7f}',
    '\u{85}',
    '\u{9b}',
    '\u{ad}',
    '\u{61c}',
    '\u{200b}',
    '\u{200f}',
    '\u{2028}',
    '\u{202e}',
    '\u{2060}',
    '\u{2066}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{e0001}',
    '\u{e0041}',
    '\u{e007f}',
    '\u{e0100}',
    '\u{1b}',
    '\u{200d}',
    '\u{2029}',
];

/// What a terminal or a service would obey in a text; `commands` of memlint's own may begin lines.
fn obeyed(text: &str, commands: bool) -> Option<String> {
    for line in text.lines() {
        // `ActionCommand.TryParseV2` of GitHub's runner passes over blanks; `TryParse` and Azure's agent look anywhere.
        let command = line.trim_start();
        let own =
            commands && ["::error ", "::warning ", "::notice "].iter().any(|kind| line.starts_with(kind));
        let anywhere = line.to_lowercase();
        let found = ["##[", "##vso[", "##teamcity["].iter().any(|command| anywhere.contains(command));
        if (command.starts_with("::") && !own) || found || line.contains(UNSEEN) {
            return Some(line.to_owned());
        }
    }
    None
}

fn assert_harmless(what: &str, word: &str, text: &str, commands: bool) {
    let found = obeyed(text, commands);
    assert!(found.is_none(), "{what}: {word:?} is obeyed in {:?}", found.unwrap_or_default());
}

/// Two recordings side by side that say something.
fn comparison(words: &str) -> Comparison {
    let change = SizeChange { base: Bytes::MIB, head: Bytes::GIB, noise: Bytes::ZERO };
    let site = SiteChange {
        lines: (None, Some(at(words, 3, words))),
        callers: Vec::new(),
        phase: Phase::Forward,
        bytes: change,
        growth: change,
        allocations: (0, 1),
    };
    let device = DeviceComparison {
        device: DeviceIndex::at(0).unwrap(),
        iterations: (5, 5),
        aligned: 5,
        warm_up: 1,
        peak: change,
        peak_at: (PeakAt::Setup, PeakAt::After),
        reserved: change,
        resident: None,
        growth: None,
        allocations: None,
        roles: Vec::new(),
        sites: vec![site],
    };
    let finding = Finding { rule: words.to_owned().into(), ..saying(words).findings[0].clone() };
    Comparison {
        base: words.to_owned(),
        head: words.to_owned(),
        devices: vec![device],
        findings: vec![FindingChange { turn: Fate::New, finding, before: None, difference: None }],
        same_findings: 1,
        shifted: None,
        doubts: vec![Doubt { counts: true, text: words.to_owned(), help: "record both again" }],
    }
}

#[test]
fn no_word_is_obeyed_in_any_format_for_people() {
    for word in WORDS {
        let report = saying(word);
        for detail in [Detail::Quiet, Detail::Normal, Detail::Verbose] {
            let look = Look { detail, ..PLAIN };
            for format in [Format::Text, Format::Concise, Format::Markdown, Format::Github] {
                for sources in [sources(), nowhere()] {
                    let text = written(format, &report, &sources, &look);
                    assert_harmless(format.name(), word, &text, format == Format::Github);
                }
            }
            assert_harmless("diff", word, &diff::render(&comparison(word), &look), false);
        }
        for recording in &report.recordings {
            assert_harmless("stats", word, &stats::render(recording, &[], &nowhere(), &PLAIN), false);
        }
        let failure = VerdictFailure { message: word.to_owned(), help: Some(word.to_owned()) };
        for format in [Format::Text, Format::Concise, Format::Markdown, Format::Github] {
            let mut out = Vec::new();
            format.write_failure(&failure, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_harmless("no verdict", word, &text, format == Format::Github);
        }
    }
}

#[test]
fn no_word_is_obeyed_wherever_lines_are_wrapped() {
    for padding in 0..120 {
        let words = format!("{} ::error::x {} ##[error]y", "p".repeat(padding), "q ".repeat(padding / 2));
        let report = saying(&words);
        for look in [PLAIN, Look { width: 40, unicode: true, ..PLAIN }] {
            let drawn = text::render(&report, &nowhere(), &look);
            let statistics = stats::render(&report.recordings[0], &[], &nowhere(), &look);
            for (what, text) in
                [("text", drawn), ("stats", statistics), ("diff", diff::render(&comparison(&words), &look))]
            {
                assert_harmless(what, &words, &text, false);
            }
        }
    }
}

#[test]
fn lines_of_source_are_shown_and_not_obeyed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("obeyed-source");
    fs::create_dir_all(&folder).unwrap();
    // What would end the line of the source is no part of it.
    for word in WORDS.into_iter().filter(|word| !word.contains(['\n', '\u{c}', '"', '\r'])) {
        let program = format!(
            "def run_resnet50():\n    for batch in f(\"{word} {word}\"):\n        x = keep(batch, \"{word}\")  # {word}\n"
        );
        fs::write(folder.join("train.py"), program).unwrap();
        let sources = SourceMap::new([folder.clone()], Vec::new());
        let mut report = report(vec![Finding {
            location: Some(at("/opt/job/train.py", 3, "run_resnet50")),
            related: Vec::new(),
            stack: Vec::new(),
            ..missing_zero_grad()
        }]);
        report.recordings[0].devices[0].main_loop = Some(memlint::engine::MainLoop {
            location: at("/opt/job/train.py", 3, "run_resnet50"),
            last_line: 3,
        });
        let drawn = text::render(&report, &sources, &PLAIN);
        assert!(drawn.contains("3 |"), "{word:?} is drawn:\n{drawn}");
        assert_harmless("excerpt", word, &drawn, false);
        let statistics = stats::render(&report.recordings[0], &[], &sources, &Look { width: 40, ..PLAIN });
        assert!(statistics.contains("for batch in"), "{statistics}");
        assert_harmless("loop", word, &statistics, false);
    }
}

#[test]
fn colours_of_names_are_not_those_of_the_report() {
    let look = Look { color: true, ..PLAIN };
    for word in WORDS {
        let report = saying(word);
        let page = text::render(&report, &nowhere(), &look) + &diff::render(&comparison(word), &look);
        // The only escapes are those with which memlint colours words; the others are gone with their sign.
        let shown: Vec<&str> = page.split('\u{1b}').skip(1).collect();
        for escape in shown {
            let known =
                ["[0m", "[1m", "[2m", "[1;31m", "[1;33m", "[1;36m"].iter().any(|one| escape.starts_with(one));
            assert!(known, "{word:?}: {escape:?}");
        }
    }
}

#[test]
fn names_of_timelines_are_not_obeyed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/profiler/leak.raw.json.gz");
    let Content::Timeline(stream) = Source::File(path).open_any(&Limits::default()).unwrap() else {
        panic!("a timeline")
    };
    let timeline = ProfilerTimeline::read(stream, 1 << 24).unwrap();
    for word in WORDS {
        assert_harmless("timeline", word, &profiler::render(word, &timeline, &PLAIN), false);
    }
}
