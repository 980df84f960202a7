//! The view in the terminal: what stands in the cells of a screen after some keys.

use std::fs;
use std::path::Path;

use memlint::engine::Input;
use memlint::engine::{Plan, Report, conclude, examine};
use memlint::input::{self, Source};
use memlint::pickle;
use memlint::picture::Room;
use memlint::report::Look;
use memlint::report::view::{Keystroke, Next, View};
use memlint::rules;
use memlint::snapshot::Snapshot;
use memlint::source::SourceMap;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;

use crate::fixture::{PLAIN, golden, none, sources};

/// A recording of the corpus, judged, with its pictures.
fn report(case: &str) -> Report {
    let path = format!("snapshots/{case}/snapshot.pickle.zst");
    let source = Source::named(&Path::new(env!("CARGO_MANIFEST_DIR")).join(&path));
    let stream = source.open(&input::Limits::default()).unwrap();
    let snapshot = Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap();
    let plan = Plan::of_rules(&rules::by_default()).drawing(Room::PAGE);
    conclude(vec![examine(&Input::of(path, snapshot), &plan)], Vec::new(), &plan)
}

/// All ranks of a job.
fn job(folder: &str) -> Report {
    let sources =
        Source::named(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expand().unwrap().sources;
    let plan = Plan::of_rules(&rules::by_default()).drawing(Room::PAGE);
    let ranks = sources.iter().zip(input::origins(&sources)).map(|(source, origin)| {
        let stream = source.open(&input::Limits::default()).unwrap();
        let snapshot = Snapshot::read(stream, &pickle::PickleLimits::default()).unwrap();
        examine(&Input { origin, ..Input::of(source.name(), snapshot) }, &plan)
    });
    conclude(ranks.collect(), Vec::new(), &plan)
}

fn nowhere() -> SourceMap {
    SourceMap::new(std::iter::empty(), Vec::new())
}

/// The screen of a view.
fn drawn(view: &mut View, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn text(screen: &Buffer) -> String {
    let row = |y| (0..screen.area.width).map(|x| screen[(x, y)].symbol()).collect::<String>();
    let rows = (0..screen.area.height).map(|y| row(y).trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n") + "\n"
}

/// What is on the screen after some keys, each as it is typed.
fn after(view: &mut View, keys: &str, size: (u16, u16)) -> String {
    drawn(view, size);
    for letter in keys.chars() {
        let key = match letter {
            '\n' => Keystroke::Enter,
            '\t' => Keystroke::Tab,
            '>' => Keystroke::Right,
            '<' => Keystroke::Left,
            'v' => Keystroke::Down,
            letter => Keystroke::Letter(letter),
        };
        assert_eq!(view.press(key), Next::Stay, "{letter:?}");
        drawn(view, size);
    }
    text(&drawn(view, size))
}

const UNICODE: Look = Look { unicode: true, ..PLAIN };

#[test]
fn a_leak_is_seen_from_the_timeline_down_to_its_line() {
    let report = report("grow-replay-bug");
    let sources = nowhere();
    let mut view = View::of(&report, &sources, &PLAIN).unwrap();
    golden("view", &after(&mut view, "", (80, 24)));
    golden("view-finding", &after(&mut view, "fx", (80, 24)));
    golden("view-without", &after(&mut view, "w", (80, 24)));
    let mut view = View::of(&report, &sources, &UNICODE).unwrap();
    golden("view-wide", &after(&mut view, "f\tx", (120, 40)));
    golden("view-account", &after(&mut view, "e", (80, 24)));
    assert_eq!(after(&mut view, " ", (120, 40)), after(&mut view, "", (120, 40)), "any key goes back");
    golden("view-help", &after(&mut view, "?", (80, 24)));
}

#[test]
fn the_saving_and_the_peak_are_seen_however_long_paths_are() {
    let report = report("seed-leak-list");
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("paths/as/long/as/those/of/homes/on/clusters/are");
    fs::create_dir_all(&folder).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/seed-leak-list/train.py");
    fs::copy(program, folder.join("train.py")).unwrap();
    let sources = SourceMap::new([folder], Vec::new());
    for look in [&PLAIN, &UNICODE] {
        let mut view = View::of(&report, &sources, look).unwrap();
        for _ in 0..2 {
            let screen = after(&mut view, "f", (80, 24));
            let lines: Vec<&str> = screen.lines().collect();
            assert!(lines[1].contains("iterations of train.py:") && lines[1].contains(", peak "), "{screen}");
            let below = lines[22];
            assert!(below.contains("train.py:") && below.contains(": peak -"), "{screen}");
            assert!(below.ends_with(')') || below.ends_with("more"), "the saving in full: {screen}");
        }
    }
}

#[test]
fn an_empty_moment_says_so_and_the_peak_of_a_device_is_told_in_80_columns() {
    let report = job("snapshots/ranks/two-devices");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let screen = after(&mut view, "", (80, 24));
    assert!(
        screen.lines().nth(1).unwrap().contains("iterations of ") && screen.contains(", peak 785.1 MiB in ")
    );
    let empty = after(&mut view, "<".repeat(80).as_str(), (80, 24));
    assert!(empty.contains("0 B in use") && empty.contains("nothing is in use at this moment"), "{empty}");
    let wide = after(&mut view, "", (160, 24));
    assert!(wide.contains("(found by loop and Optimizer.step), peak"), "{wide}");
}

#[test]
fn what_is_searched_for_is_opened_and_chosen() {
    let report = report("grow-replay-bug");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let found = after(&mut view, "/OBSERVE\n", (100, 30));
    assert!(found.lines().any(|line| line.contains("in observe")), "{found}");
    // By roles a line's name stands below its file's; it is found as reports name it.
    let line = |found: &str| found.lines().find(|line| line.contains("in observe")).map(str::to_owned);
    let grouped = after(&mut view, "\t\t/OBSERVE\n", (100, 30));
    let number = line(&grouped).unwrap().split("line ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let found = after(&mut view, &format!("\t\t/train.py:{number}\n"), (100, 30));
    assert!(line(&found).is_some(), "{found}");
    let typing = after(&mut view, "/abc", (100, 30));
    assert_eq!(typing.lines().last(), Some("/abc_"));
    let missed = after(&mut view, "\n", (100, 30));
    assert_eq!(missed.lines().last(), Some("nothing alive here is called `abc`"));
}

#[test]
fn the_cursor_goes_through_time() {
    let report = report("grow-replay-bug");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let moment = |screen: &str| screen.lines().find(|line| line.contains(" in use")).unwrap().to_owned();
    let peak = moment(&after(&mut view, "", (80, 24)));
    let left = moment(&after(&mut view, "<", (80, 24)));
    assert_ne!(peak, left);
    assert_eq!(moment(&after(&mut view, "p", (80, 24))), peak);
    let ends: Vec<String> = ["[", "[", "]"].map(|key| moment(&after(&mut view, key, (80, 24)))).to_vec();
    assert!(ends[0] != ends[1] && ends[0] == ends[2], "{ends:?}");
    // Closer, a column is a moment.
    let event = |line: &str| {
        let after = line.split("event ").nth(1).unwrap();
        after.split(' ').next().unwrap().replace(',', "").parse::<usize>().unwrap()
    };
    let here = event(&moment(&after(&mut view, "++++++++", (120, 24))));
    assert_eq!(event(&moment(&after(&mut view, ">", (120, 24)))), here + 1);
    assert_eq!(event(&moment(&after(&mut view, ",", (120, 24)))), here);
    assert!(after(&mut view, "o", (80, 24)).ends_with("no request failed in this recording\n"));
}

#[test]
fn several_ranks_begin_with_the_gravest_finding() {
    let report = job("snapshots/ranks/fsdp-imbalance");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let screen = after(&mut view, "f", (100, 30));
    let gravest = report.findings.iter().map(|finding| finding.severity.name()).next().unwrap();
    assert!(screen.contains(&format!(": {gravest}: ")), "{gravest}: {screen}");
}

#[test]
fn what_ran_out_of_memory_is_marked_and_reached() {
    let report = report("seed-oom");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    golden("view-oom", &after(&mut view, "o", (80, 24)));
}

#[test]
fn the_rows_of_the_tree_add_up() {
    let report = report("seed-resnet50-bug");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let screen = after(&mut view, "\t\t", (120, 50));
    let mut lines = screen.lines().skip_while(|line| !line.contains(" in use"));
    let in_use: f64 = lines.next().unwrap().split(' ').next().unwrap().parse().unwrap();
    let shown = lines.skip(1).take_while(|line| line.contains('%'));
    // Those at the margin: a name stands behind the figures, and what is deeper is indented.
    let top = shown.filter(|line| line.chars().nth(26) != Some(' ') || line.chars().nth(28) != Some(' '));
    let mib = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..2] {
        [number, "MiB"] => number.parse::<f64>().unwrap(),
        [number, "KiB"] => number.parse::<f64>().unwrap() / 1024.0,
        _ => 0.0,
    };
    let sum: f64 = top.map(mib).sum();
    assert!((sum - in_use).abs() < 0.5, "{sum} of {in_use}:\n{screen}");
}

#[test]
fn what_people_look_for_is_called_by_its_name() {
    let report = report("overlap-lm-logits-bug");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    let screen = after(&mut view, "\t\t/logits\n", (100, 40));
    let line = screen.lines().find(|line| line.contains(" logits")).unwrap();
    assert!(line.contains("1.5 GiB"), "{screen}");
    assert!(screen.contains("optimizer state"), "what has no name is there, too:\n{screen}");
}

#[test]
fn another_device_is_offered_where_there_is_one() {
    let last = |mut report: Report| {
        report.findings.clear();
        let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
        ["f", "e"].map(|key| after(&mut view, key, (100, 30)).lines().last().unwrap().to_owned())
    };
    assert_eq!(last(report("seed-linear")), ["nothing was found on this device"; 2]);
    let several = "nothing was found on this device; d shows the next";
    assert_eq!(last(job("snapshots/ranks/fsdp-imbalance")), [several; 2]);
}

#[test]
fn colours_are_those_of_the_terminal_and_only_where_they_are_wanted() {
    let report = report("grow-replay-bug");
    let sources = nowhere();
    let palette = |look: &Look| {
        let mut view = View::of(&report, &sources, look).unwrap();
        after(&mut view, "f", (80, 24));
        let screen = drawn(&mut view, (80, 24));
        let mut colors: Vec<Color> = screen.content().iter().map(|cell| cell.fg).collect();
        colors.sort_by_key(|color| format!("{color:?}"));
        colors.dedup();
        (colors, screen.content().iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)))
    };
    assert_eq!(palette(&PLAIN), (vec![Color::Reset], true));
    let (colors, reversed) = palette(&Look { color: true, ..PLAIN });
    assert!(reversed && colors.contains(&Color::Red), "{colors:?}");
    let sixteen = |color: &Color| !matches!(color, Color::Rgb(..) | Color::Indexed(_));
    assert!(colors.iter().all(sixteen), "{colors:?}");
}

#[test]
fn any_size_can_be_drawn_and_what_is_not_unicode_stays_ascii() {
    let report = report("grow-replay-bug");
    let mut view = View::of(&report, &nowhere(), &PLAIN).unwrap();
    for size in [(1, 1), (20, 5), (39, 14), (40, 13), (40, 14), (41, 15), (80, 24), (300, 100)] {
        let screen = after(&mut view, "f\tx", size);
        assert!(screen.is_ascii(), "{size:?}:\n{screen}");
        assert_eq!(screen.contains("too small") || size.0 < 10, size.0 < 40 || size.1 < 14, "{size:?}");
    }
}

#[test]
fn without_a_picture_there_is_no_view() {
    assert!(View::of(&none(), &sources(), &PLAIN).is_none());
}
