//! A rank that needs more memory than the others of its job, or far less.

mod typical;

use self::typical::{Holdings, Job, apart, growth};
use super::{declare_rule, measure};
use crate::facts::Peer;
use crate::finding::{Finding, Impact, Location, Measure, Quantity, Related, Severity};
use crate::role::Role;
use crate::threshold::Threshold;
use crate::unit::{Bytes, Confidence, percent};

declare_rule! {
    /// A rank needs more memory than the others.
    RankImbalance = "rank-imbalance", Peak, Warning,
    between: ranks,
    summary: "a rank needs more memory than the others of its job",
}

/// How many times the median of the others a peak has to be. Batches of unlike length and collectives' buffers make ranks
/// differ by some percent; the recorded job in which one rank has sequences twice as long (`snapshots/ranks/fsdp-imbalance`) shows 2.5.
static FACTOR: Threshold<f64> = Threshold::new("rules::rank_imbalance::FACTOR", 1.25);
/// Below this the difference is no matter, whatever the factor.
const NOTED: Bytes = Bytes(64 << 20);
/// From here on it is worth a change.
const WARNED: Bytes = Bytes(256 << 20);
/// From this modified z-score on a value is an outlier: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993). Where
/// all ranks differ, as the stages of a pipeline do, none stands out.
static OUTLIER: Threshold<f64> = Threshold::new("rules::rank_imbalance::OUTLIER", 3.5);
/// The median absolute deviation of a normal distribution, in standard deviations.
const NORMAL_DEVIATION: f64 = 0.6745;
/// Of how many ranks one may be out of line. More are not exceptions but another kind of rank.
static FEW: Threshold<usize> = Threshold::new("rules::rank_imbalance::FEW", 4);
/// From so many others on the comparison is sure.
static MANY: Threshold<usize> = Threshold::new("rules::rank_imbalance::MANY", 3);
/// The share of a rank's peak, as far as lines are known, that has to come from lines which the other ranks have, too.
static SHARED_LINES: Threshold<f64> = Threshold::new("rules::rank_imbalance::SHARED_LINES", 0.5);
/// How far the weights of ranks that do the same work may lie apart: FSDP's shards differ by their padding.
static ALIKE: Threshold<f64> = Threshold::new("rules::rank_imbalance::ALIKE", 0.1);
/// A line is worth naming from this share of what is too much.
const NAMED: f64 = 0.1;
/// The lines that are named beside the first.
const MOST_NAMED: usize = 2;

impl RankImbalance {
    fn detect(ranks: &[Peer]) -> Vec<Finding> {
        let job = Job::of(ranks);
        let outliers: Vec<Outlier> = ranks.iter().filter_map(|rank| Outlier::of(rank, &job)).collect();
        if outliers.is_empty() {
            return Vec::new();
        }
        let holdings = Holdings::of(ranks);
        let few = outliers.len() <= ranks.len().div_ceil(FEW.get());
        outliers.iter().filter_map(|outlier| outlier.finding(&holdings, few)).collect()
    }
}

/// A rank that needs far more than the others, or far less.
struct Outlier<'a> {
    rank: &'a Peer,
    /// The only other rank, where there is but one.
    other: Option<&'a Peer>,
    /// How many others there are.
    others: usize,
    /// The median of the others' peaks.
    median: Bytes,
}

impl<'a> Outlier<'a> {
    fn of(rank: &'a Peer, job: &Job<'a>) -> Option<Outlier<'a>> {
        let (median, deviation) = (job.median(rank), job.deviation(rank));
        let distance = apart(rank.peak, median);
        let score = NORMAL_DEVIATION * distance.share_of(deviation);
        let stands_out = deviation == Bytes::ZERO || score > OUTLIER.get();
        let (less, more) = (rank.peak.min(median), rank.peak.max(median));
        let much = distance >= NOTED && more.share_of(less) >= FACTOR.get() && less > Bytes::ZERO;
        let others = job.ranks.len() - 1;
        let other = job.ranks.iter().find(|one| one.rank != rank.rank).filter(|_| others == 1);
        // Of two ranks the larger is told; that one is small among several takes several that agree.
        let told = rank.peak > median || others >= MANY.get();
        (much && stands_out && told).then_some(Outlier { rank, other, others, median })
    }

    fn excess(&self) -> Bytes {
        self.rank.peak - self.median
    }

    /// What to call the others.
    fn than(&self) -> String {
        self.other.map_or_else(|| "the other ranks".to_owned(), |other| format!("rank {}", other.rank))
    }

    /// A rank far below the others: nothing to save, but it may not do its share of the work, or hold its part of the state.
    /// Where it may be meant nothing is said.
    fn below(&self, holdings: &Holdings, few: bool) -> Option<Finding> {
        let Outlier { rank, median, .. } = self;
        if self.by_design(holdings, few).is_some() {
            return None;
        }
        let meta = RankImbalance::META;
        let times = rank.peak.share_of(*median);
        let missing = |role: &Role| holdings.role(*role, rank.role(*role)) - rank.role(*role);
        let role = Role::ALL.iter().max_by_key(|role| missing(role)).filter(|role| missing(role) >= NOTED);
        let less = role.map(|role| {
            let (here, there) = (rank.role(*role), holdings.role(*role, rank.role(*role)));
            let text = format!("{here} of {} memory, {there} on the other ranks", role.name());
            measure("role", Quantity::Text(role.name().to_owned()), text)
        });
        Some(Finding {
            input: rank.input,
            device: Some(rank.device),
            confidence: Confidence::Medium,
            message: format!("rank {} needs {}, {times:.1} times as much as the other ranks", rank.rank, rank.peak),
            help: "see whether it does its share: as many samples of the same lengths, and its part of the state"
                .to_owned(),
            evidence: self.peaks().into_iter().chain(less).collect(),
            ..Finding::of(meta.name, meta.group, Severity::Info)
        })
    }

    fn finding(&self, holdings: &Holdings, few: bool) -> Option<Finding> {
        let Outlier { rank, others, .. } = self;
        if rank.peak < self.median {
            return self.below(holdings, few);
        }
        let times = rank.peak.share_of(self.median);
        let by_design = self.by_design(holdings, few);
        let lines = self.lines(holdings);
        let meta = RankImbalance::META;
        let mut finding = Finding::of(meta.name, meta.group, meta.level);
        let than = self.than();
        finding.message =
            format!("rank {} needs {}, {times:.1} times as much as {than}", rank.rank, rank.peak);
        "give every rank as much to do: the same batch and sequence lengths (pad or pack to one length), and \
         nothing that only one rank keeps"
            .clone_into(&mut finding.help);
        finding.input = rank.input;
        finding.device = Some(rank.device);
        finding.severity =
            if self.excess() >= WARNED && by_design.is_none() { Severity::Warning } else { Severity::Info };
        finding.confidence = match by_design {
            Some(_) => Confidence::Low,
            None if *others < MANY.get() => Confidence::Medium,
            None => Confidence::High,
        };
        finding.impact = Impact { peak: Some(self.excess()), ..Impact::default() };
        if let Some((line, here, elsewhere)) = lines.first() {
            finding.location = Some((*line).clone());
            finding.label = format!("{here} here at its peak; {elsewhere} on {than}");
        }
        let related = lines.iter().skip(1).take(MOST_NAMED);
        finding.related = related
            .map(|(line, here, elsewhere)| Related {
                location: (*line).clone(),
                message: format!("{here} here at its peak; {elsewhere} on {than}"),
                stood: None,
            })
            .collect();
        finding.evidence = self.evidence(holdings, by_design);
        Some(finding)
    }

    /// The lines that have more at the peak than on the other ranks, with both figures, what exceeds most first.
    fn lines(&self, holdings: &Holdings) -> Vec<(&'a Location, Bytes, Bytes)> {
        let least = Bytes::rounded(NAMED * self.excess().get() as f64);
        let compared = self
            .rank
            .lines
            .iter()
            .map(|(line, bytes)| (line, *bytes, holdings.line(line, self.rank.line(line))));
        let mut lines: Vec<_> = compared.filter(|(_, here, elsewhere)| *here > *elsewhere + least).collect();
        lines.sort_by(|a, b| (b.1 - b.2).cmp(&(a.1 - a.2)).then_with(|| a.0.cmp(b.0)));
        lines
    }

    /// Why the ranks may be meant to differ, if there is a sign of it.
    fn by_design(&self, holdings: &Holdings, few: bool) -> Option<&'static str> {
        let here = self.rank.role(Role::Parameter);
        let elsewhere = holdings.role(Role::Parameter, here);
        let known = self.rank.lines.iter().map(|(_, bytes)| *bytes).sum::<Bytes>();
        let has = |line: &Location| holdings.has(line, self.rank.line(line));
        let shared =
            self.rank.lines.iter().filter(|(line, _)| has(line)).map(|(_, bytes)| *bytes).sum::<Bytes>();
        if !few {
            Some("many ranks are like it: another stage of a pipeline, another kind of work?")
        } else if apart(here, elsewhere).share_of(here.max(elsewhere)) > ALIKE.get() {
            Some("its weights are not as large as those of the others: another stage of a pipeline?")
        } else if shared.share_of(known) < SHARED_LINES.get() && known > Bytes::ZERO {
            Some("its peak stands at other lines than those of the others: work that only it has?")
        } else {
            None
        }
    }

    /// Its peak and that of the others.
    fn peaks(&self) -> [Measure; 2] {
        let Outlier { rank, other, others, median } = self;
        let of_others = match other {
            Some(other) => format!("{median} on rank {}", other.rank),
            None => format!("{median} is the median of the {others} others"),
        };
        [
            measure("rank-peak", Quantity::Bytes(rank.peak), format!("{} on rank {}", rank.peak, rank.rank)),
            measure("median-of-others", Quantity::Bytes(*median), of_others),
        ]
    }

    fn evidence(&self, holdings: &Holdings, by_design: Option<&'static str>) -> Vec<Measure> {
        let mut evidence = Vec::from(self.peaks());
        let share = self.rank.peak.share_of(self.median) - 1.0;
        evidence.push(measure("excess-share", Quantity::Ratio(share), String::new()));
        evidence.extend(self.composition(holdings));
        evidence.extend(self.growth(holdings));
        if let Some(why) = by_design {
            evidence.push(measure("by-design", Quantity::Text(why.to_owned()), why.to_owned()));
        }
        evidence
    }

    /// The role that makes most of the difference.
    fn composition(&self, holdings: &Holdings) -> Option<Measure> {
        let compared = self.rank.roles.iter().map(|(role, bytes)| {
            let elsewhere = holdings.role(*role, self.rank.role(*role));
            (*role, *bytes, elsewhere)
        });
        let (role, here, elsewhere) = compared.max_by_key(|(role, here, there)| (*here - *there, *role))?;
        let share = (here - elsewhere).share_of(self.excess());
        (share >= NAMED).then(|| {
            let text = format!(
                "{} of the difference is {} memory: {here} against {elsewhere}",
                percent(share),
                role.name()
            );
            measure("role", Quantity::Text(role.name().to_owned()), text)
        })
    }

    /// What it gains in each iteration and the others do not.
    fn growth(&self, holdings: &Holdings) -> Option<Measure> {
        let here = growth(self.rank);
        let elsewhere = holdings.growth(here);
        let share = (here - elsewhere).times(self.rank.resident.len() as u64).share_of(self.excess());
        (share >= NAMED).then(|| {
            let others = if elsewhere == Bytes::ZERO { "nothing".to_owned() } else { elsewhere.to_string() };
            let text = format!("it grows by {here} in each iteration, the others by {others}");
            measure("growth", Quantity::Bytes(here), text)
        })
    }
}
