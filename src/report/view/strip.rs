//! One device: what is drawn of it, where the cursor stands, and what is chosen.

use std::cmp::Reverse;
use std::ops::Range;

use super::grove::{Grouping, Grove, own_files, own_lines};
use super::outline::{TreeRow, TreeState};
use super::window::Window;
use crate::engine::{RecordedDevice, Recording, Report};
use crate::finding::Severity;
use crate::picture::{Guilty, Lives, Picture};
use crate::report::paths::Root;
use crate::report::place::SourceLine;
use crate::report::{closing, words};
use crate::source::SourceMap;
use crate::unit::{Bytes, shown_line, shown_name, shown_source};

/// A device, and what somebody looks at.
pub(super) struct Strip<'a> {
    /// The snapshot.
    pub(super) name: String,
    /// How the iterations were found, and the peak.
    pub(super) summary: String,
    /// The same for narrow screens: without how they were found.
    pub(super) brief: String,
    pub(super) picture: &'a Picture,
    /// The findings, in their order.
    pub(super) cards: Vec<Card<'a>>,
    /// The bin under the cursor.
    pub(super) cursor: usize,
    pub(super) window: Window,
    pub(super) grouping: Grouping,
    pub(super) outline: TreeState,
    /// The finding that is chosen.
    pub(super) chosen: Option<usize>,
    /// What is drawn instead of what is: the program without the chosen finding.
    mended: Option<WithoutFinding>,
    grove: Grove,
    /// Bytes in use in each bin.
    requested: Vec<Bytes>,
    /// What the chosen finding is about, in each bin.
    lit: Vec<Bytes>,
}

/// What a program would need without a finding.
struct WithoutFinding {
    lives: Lives,
    requested: Vec<Bytes>,
}

/// A finding in words.
pub(super) struct Card<'a> {
    pub(super) severity: Severity,
    /// `error`, or `error, ignored`.
    pub(super) level: String,
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) place: String,
    /// The place without its function.
    pub(super) line: String,
    pub(super) impact: String,
    pub(super) evidence: String,
    pub(super) help: String,
    guilty: &'a Guilty,
}

impl<'a> Strip<'a> {
    /// A device; nothing where there is no picture of it.
    pub(super) fn of(
        report: &'a Report,
        (input, recording): (usize, &'a Recording),
        device: &RecordedDevice,
        sources: &SourceMap,
    ) -> Option<Strip<'a>> {
        let picture = recording.picture(device.device)?;
        let root = Root::of(own_files(&picture.tree));
        // Where the source is at hand lines are named by the files that are here.
        let own = own_lines(&picture.tree).map(|at| SourceLine::of(at, sources).name().to_owned());
        let own: Vec<String> = own.collect();
        let here = Root::of(own.iter().map(String::as_str));
        let shown = |sentence: String| within(&here, &within(&root, &shown_line(&sentence)));
        let card = |guilty: &'a Guilty| {
            let finding = report.findings.get(report.position_of(guilty, input, device.device)?)?;
            let nowhere = || "no line of its own is known".to_owned();
            let at = finding.location.as_ref().map(|at| SourceLine::of(at, sources));
            Some(Card {
                severity: finding.severity,
                level: words::level(finding),
                rule: shown_line(&finding.rule),
                message: shown_line(&finding.message),
                place: at.as_ref().map_or_else(nowhere, |at| at.line_and_function_from(&root)),
                line: at.as_ref().map_or_else(nowhere, |at| at.line_from(&root)),
                impact: shown_line(&words::impact(report, finding)),
                evidence: shown_line(&words::evidence(finding)),
                help: shown_source(&finding.help).into_owned(),
                guilty,
            })
        };
        let grouping = Grouping::Calls;
        let mut cards: Vec<Card> = picture.guilty.iter().filter_map(card).collect();
        // The gravest first, as the report has them.
        cards.sort_by_key(|card| Reverse(card.severity));
        let mut strip = Strip {
            name: shown_name(&recording.name),
            summary: shown(closing::iterations(recording, device, sources)),
            brief: shown(closing::iterations_briefly(recording, device, sources)),
            cards,
            cursor: 0,
            window: Window::whole(picture.bins.len()),
            grouping,
            outline: TreeState::default(),
            chosen: None,
            mended: None,
            grove: Grove::of(picture, grouping),
            requested: picture.bins.requested.clone(),
            lit: Vec::new(),
            picture,
        };
        strip.cursor = strip.bin_of(picture.peak);
        Some(strip)
    }

    /// The bin that shows a moment, or is nearest to it.
    pub(super) fn bin_of(&self, moment: usize) -> usize {
        let bins = &self.picture.bins;
        (moment / bins.width.max(1)).min(bins.len().saturating_sub(1))
    }

    /// The first of the fullest of some bins; the last bin of all where they lie behind it.
    pub(super) fn fullest(&self, bins: Range<usize>) -> usize {
        let last = self.requested().len().saturating_sub(1);
        let bytes = |bin: usize| self.requested().get(bin).copied().unwrap_or_default();
        bins.filter(|bin| *bin <= last).max_by_key(|bin| (bytes(*bin), Reverse(*bin))).unwrap_or(last)
    }

    /// Bytes in use in each bin.
    pub(super) fn requested(&self) -> &[Bytes] {
        self.mended.as_ref().map_or(&self.requested, |mended| &mended.requested)
    }

    /// What the chosen finding is about, in each bin; empty where none is chosen.
    pub(super) fn lit(&self) -> &[Bytes] {
        &self.lit
    }

    pub(super) fn grove(&self) -> &Grove {
        &self.grove
    }

    /// Whether what is drawn is the program without the chosen finding.
    pub(super) const fn is_mended(&self) -> bool {
        self.mended.is_some()
    }

    fn lives(&self) -> &Lives {
        self.mended.as_ref().map_or(&self.picture.lives, |mended| &mended.lives)
    }

    /// What every node of the tree holds under the cursor.
    pub(super) fn held(&self) -> Vec<u64> {
        let lives = self.lives();
        self.grove.held(lives, self.cursor, (0..lives.each.len(), 0..lives.clouds.len()))
    }

    /// What of it the chosen finding is about.
    pub(super) fn guilty_held(&self) -> Vec<u64> {
        let Some(guilty) = self.card().map(|card| card.guilty) else { return Vec::new() };
        let each = guilty.each.iter().map(|at| *at as usize);
        let clouds = guilty.clouds.iter().map(|at| *at as usize);
        self.grove.held(self.lives(), self.cursor, (each, clouds))
    }

    /// The rows of the tree under the cursor.
    pub(super) fn rows(&self, held: &[u64]) -> Vec<TreeRow> {
        self.outline.rows(&self.grove, held)
    }

    /// The finding that is chosen.
    pub(super) fn card(&self) -> Option<&Card<'a>> {
        self.cards.get(self.chosen?)
    }

    pub(super) fn go_to(&mut self, bin: usize) {
        self.cursor = bin.min(self.picture.bins.len().saturating_sub(1));
        self.window = self.window.holding(self.cursor);
    }

    pub(super) fn group_by(&mut self, grouping: Grouping) {
        self.grouping = grouping;
        self.grove = Grove::of(self.picture, grouping);
        self.outline = TreeState::default();
    }

    /// Chooses the next finding or the one before, and goes to where what it is about holds most.
    pub(super) fn choose(&mut self, forward: bool) {
        let count = self.cards.len();
        self.mended = None;
        self.chosen = match (self.chosen, count) {
            (_, 0) => None,
            (None, _) => Some(if forward { 0 } else { count - 1 }),
            (Some(at), _) => Some((at + if forward { 1 } else { count - 1 }) % count),
        };
        let picture = self.picture;
        self.lit = self.card().map(|card| lit(picture, card.guilty)).unwrap_or_default();
        let highest = self.lit.iter().max().copied().unwrap_or_default();
        let fullest = self.lit.iter().position(|bytes| *bytes == highest).filter(|_| highest > Bytes::ZERO);
        let apart = || Some(self.bin_of(self.card()?.guilty.moment?));
        if let Some(bin) = fullest.or_else(apart) {
            self.go_to(bin);
        }
    }

    /// Chooses none.
    pub(super) fn choose_none(&mut self) {
        (self.chosen, self.mended) = (None, None);
        self.lit.clear();
    }

    /// Opens the tree along what holds most below the chosen row.
    pub(super) fn follow_largest(&mut self) {
        let held = self.held();
        let rows = self.rows(&held);
        self.outline.follow_largest(&self.grove, &held, &rows);
    }

    /// Goes to the next row whose name holds some text, or to the one before; whether there is one.
    pub(super) fn search(&mut self, text: &str, forward: bool) -> bool {
        let held = self.held();
        self.outline.search(&self.grove, &held, text, forward)
    }

    /// Draws the program without the chosen finding, or with it again; whether there is anything to draw.
    pub(super) fn mend(&mut self) -> bool {
        if self.mended.take().is_some() {
            return true;
        }
        let picture = self.picture;
        let lives = self.card().and_then(|card| picture.without(card.guilty));
        let mended = |lives: Lives| WithoutFinding { requested: lives.sums(picture.bins.len()), lives };
        self.mended = lives.map(mended);
        self.mended.is_some()
    }
}

/// A sentence whose paths begin at a folder.
fn within(root: &Root, sentence: &str) -> String {
    if root.folder().is_empty() { sentence.to_owned() } else { sentence.replace(root.folder(), "") }
}

/// What a finding is about, in each bin.
fn lit(picture: &Picture, guilty: &Guilty) -> Vec<Bytes> {
    let pick = |at: &u32| *at as usize;
    let part = Lives {
        each: guilty.each.iter().filter_map(|at| picture.lives.each.get(pick(at)).copied()).collect(),
        clouds: guilty.clouds.iter().filter_map(|at| picture.lives.clouds.get(pick(at)).cloned()).collect(),
    };
    part.sums(picture.bins.len())
}
