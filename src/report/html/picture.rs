//! A picture in columns: what a page decodes into arrays.

use std::collections::BTreeMap;

use serde::Serialize;

use super::columns::{or_none, steps, steps_of_bytes, whole};
use crate::engine::Report;
use crate::familiar::Familiar;
use crate::picture::{
    Born, Cloud, CloudStep, Counterfactual, Guilty, Label, Lives, Picture, Piece, Site, Tree,
};
use crate::program::Phase;
use crate::report::place::SourceLine;
use crate::role::Role;
use crate::source::SourceMap;
use crate::unit::{DeviceIndex, shown_line, shown_name};

/// A picture. What `steps` of [`super::columns`] made is marked so.
#[derive(Serialize)]
pub(super) struct Drawn {
    events: usize,
    width: usize,
    /// The lowest address; hexadecimal, since a page's numbers have 53 bits.
    base: String,
    peak: usize,
    strings: Vec<String>,
    tree: Calls,
    /// Steps.
    shown: Vec<i64>,
    /// Steps.
    reserved: Vec<i64>,
    /// Steps, microseconds.
    times: Vec<i64>,
    each: Each,
    clouds: Vec<Merged>,
    guilty: Vec<Marked>,
    phases: Runs,
    turns: Vec<(usize, usize, bool, u64, u64)>,
    failures: Vec<(usize, u64)>,
    annotations: Vec<(usize, usize, usize, usize)>,
    pieces: Pieces,
    sites: Vec<Line>,
}

/// The tree of calls.
#[derive(Serialize)]
struct Calls {
    callers: Vec<u32>,
    called: Vec<u32>,
    /// For each node the node of the line that its lifetimes count for; 0 where there are none.
    sites: Vec<u32>,
    /// For each label its kind, a name and a file among the strings, a line, and whether it is the user's own.
    labels: Vec<(&'static str, usize, usize, u32, bool)>,
}

/// Lifetimes one by one.
#[derive(Serialize)]
struct Each {
    /// Steps.
    start: Vec<i64>,
    /// How many bins it is seen in; -1 until the end.
    bins: Vec<i64>,
    bytes: Vec<u64>,
    /// By how much its block is larger.
    slack: Vec<u64>,
    /// -1 where it lies too far.
    address: Vec<i64>,
    role: Vec<usize>,
    /// -1 where people know it by no name.
    familiar: Vec<i64>,
    /// -1 where it is older than the recording.
    phase: Vec<i64>,
    stream: Vec<u16>,
    node: Vec<u32>,
}

/// A cloud.
#[derive(Serialize)]
struct Merged {
    count: usize,
    role: usize,
    /// -1 where people know it by no name.
    familiar: i64,
    node: u32,
    /// Steps.
    bins: Vec<i64>,
    by: Vec<i64>,
}

/// A finding among what is drawn.
#[derive(Serialize)]
struct Marked {
    /// Its position among the findings of the page.
    finding: usize,
    /// Steps.
    each: Vec<i64>,
    clouds: Vec<u32>,
    /// Where to look, if it is about no lifetime.
    moment: Option<usize>,
    without: Option<Mended>,
}

/// What would be drawn without a finding.
#[derive(Serialize)]
struct Mended {
    peak: u64,
    /// Steps.
    each: Vec<i64>,
    ends: Vec<usize>,
    clouds: Vec<(u32, Vec<i64>, Vec<i64>)>,
}

/// Phases, one after the other.
#[derive(Serialize)]
struct Runs {
    /// Steps.
    bins: Vec<i64>,
    phase: Vec<usize>,
}

/// What was held from the driver.
#[derive(Serialize)]
struct Pieces {
    address: Vec<u64>,
    bytes: Vec<u64>,
    start: Vec<usize>,
    end: Vec<i64>,
    stream: Vec<u16>,
    expandable: Vec<bool>,
    private: Vec<bool>,
}

/// A line of the program.
#[derive(Serialize)]
struct Line {
    place: String,
    at_peak: u64,
    count_at_peak: usize,
    count: usize,
    growth: i64,
}

/// Texts, each once.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Strings {
    fn of(&mut self, text: &str) -> usize {
        let text = shown_line(text);
        if let Some(known) = self.known.get(&text) {
            return *known;
        }
        let at = self.all.len();
        self.known.insert(text.clone(), at);
        self.all.push(text);
        at
    }
}

impl Drawn {
    pub(super) fn of(
        picture: &Picture,
        (report, input, device): (&Report, usize, DeviceIndex),
        sources: &SourceMap,
    ) -> Drawn {
        let mut strings = Strings::default();
        let tree = Calls::of(&picture.tree, &mut strings);
        let annotations = picture.annotations.iter();
        let annotations =
            annotations.map(|one| (strings.of(&one.name), one.start, one.end, one.depth)).collect();
        Drawn {
            events: picture.events,
            width: picture.bins.width,
            base: format!("{:x}", picture.base),
            peak: picture.peak,
            tree,
            annotations,
            strings: strings.all,
            shown: steps(picture.bins.shown.iter().copied()),
            reserved: steps_of_bytes(picture.bins.reserved.iter().copied()),
            times: steps(picture.bins.times.iter().map(|time| usize::try_from(time.0).unwrap_or(0))),
            each: Each::of(&picture.lives),
            clouds: picture.lives.clouds.iter().map(Merged::of).collect(),
            guilty: picture
                .guilty
                .iter()
                .filter_map(|one| Marked::of(one, (report, input, device)))
                .collect(),
            phases: Runs {
                bins: steps(picture.phases.iter().map(|run| run.bin)),
                phase: picture.phases.iter().map(|run| phase(run.phase)).collect(),
            },
            turns: picture
                .turns
                .iter()
                .map(|one| (one.start, one.end, one.complete, one.peak.get(), one.resident.get()))
                .collect(),
            failures: picture.failures.iter().map(|one| (one.moment, one.bytes.get())).collect(),
            pieces: Pieces::of(&picture.pieces),
            sites: picture.sites.iter().map(|site| Line::of(site, sources)).collect(),
        }
    }
}

fn role(role: Role) -> usize {
    Role::ALL.iter().position(|one| *one == role).unwrap_or(0)
}

fn familiar(familiar: Option<Familiar>) -> i64 {
    or_none(Familiar::ALL.iter().position(|one| Some(*one) == familiar))
}

fn phase(phase: Phase) -> usize {
    Phase::ALL.iter().position(|one| *one == phase).unwrap_or(0)
}

impl Calls {
    fn of(tree: &Tree, strings: &mut Strings) -> Calls {
        let mut label = |label: &Label| match label {
            Label::All => ("all", 0, 0, 0, false),
            Label::Line(at, own) => (
                "line",
                strings.of(&shown_name(&at.function)),
                strings.of(&shown_name(&at.file)),
                at.line,
                *own,
            ),
            Label::Operator(name) => ("operator", strings.of(&shown_name(name)), 0, 0, false),
            Label::Engine => ("engine", 0, 0, 0, false),
            Label::NoStack => ("no-stack", 0, 0, 0, false),
            Label::Older => ("older", 0, 0, 0, false),
            Label::Merged => ("merged", 0, 0, 0, false),
        };
        Calls {
            callers: tree.callers.clone(),
            called: tree.called.clone(),
            sites: tree.sites.clone(),
            labels: tree.labels.iter().map(&mut label).collect(),
        }
    }
}

impl Each {
    fn of(lives: &Lives) -> Each {
        let each = &lives.each;
        let born = |born: Born| match born {
            Born::Before => -1,
            Born::In(one) => whole(phase(one)),
        };
        Each {
            start: steps(each.iter().map(|one| one.start)),
            bins: each.iter().map(|one| or_none(one.end.map(|end| end.saturating_sub(one.start)))).collect(),
            bytes: each.iter().map(|one| one.bytes.get()).collect(),
            slack: each.iter().map(|one| (one.block - one.bytes).get()).collect(),
            address: each
                .iter()
                .map(|one| one.address.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
                .collect(),
            role: each.iter().map(|one| role(one.role)).collect(),
            familiar: each.iter().map(|one| familiar(one.familiar)).collect(),
            phase: each.iter().map(|one| born(one.born)).collect(),
            stream: each.iter().map(|one| one.stream).collect(),
            node: each.iter().map(|one| one.node).collect(),
        }
    }
}

/// The bins and the bytes of some changes.
fn changes(all: &[CloudStep]) -> (Vec<i64>, Vec<i64>) {
    (steps(all.iter().map(|step| step.bin)), all.iter().map(|step| step.by).collect())
}

impl Merged {
    fn of(cloud: &Cloud) -> Merged {
        let (bins, by) = changes(&cloud.steps);
        let (role, familiar) = (role(cloud.role), familiar(cloud.familiar));
        Merged { count: cloud.count, role, familiar, node: cloud.node, bins, by }
    }
}

impl Marked {
    /// Nothing where no finding of the report is this one.
    fn of(guilty: &Guilty, (report, input, device): (&Report, usize, DeviceIndex)) -> Option<Marked> {
        Some(Marked {
            finding: report.position_of(guilty, input, device)?,
            each: steps(guilty.each.iter().map(|at| *at as usize)),
            clouds: guilty.clouds.clone(),
            moment: guilty.moment,
            without: guilty.without.as_ref().map(Mended::of),
        })
    }
}

impl Mended {
    fn of(without: &Counterfactual) -> Mended {
        let cloud = |(at, all): &(u32, Vec<CloudStep>)| {
            let (bins, by) = changes(all);
            (*at, bins, by)
        };
        Mended {
            peak: without.peak.get(),
            each: steps(without.ends.iter().map(|(at, _)| *at as usize)),
            ends: without.ends.iter().map(|(_, end)| *end).collect(),
            clouds: without.clouds.iter().map(cloud).collect(),
        }
    }
}

impl Pieces {
    fn of(pieces: &[Piece]) -> Pieces {
        Pieces {
            address: pieces.iter().map(|one| one.address).collect(),
            bytes: pieces.iter().map(|one| one.bytes.get()).collect(),
            start: pieces.iter().map(|one| one.start).collect(),
            end: pieces.iter().map(|one| or_none(one.end)).collect(),
            stream: pieces.iter().map(|one| one.stream).collect(),
            expandable: pieces.iter().map(|one| one.expandable).collect(),
            private: pieces.iter().map(|one| one.private).collect(),
        }
    }
}

impl Line {
    fn of(site: &Site, sources: &SourceMap) -> Line {
        let place = |at| shown_line(&SourceLine::of(at, sources).line_and_function());
        let nowhere = || "(no line of the program's is known)".to_owned();
        Line {
            place: site.location.as_ref().map_or_else(nowhere, place),
            at_peak: site.at_peak.get(),
            count_at_peak: site.count_at_peak,
            count: site.count,
            growth: site.growth,
        }
    }
}
