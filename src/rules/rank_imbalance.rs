//! A rank that needs more memory than the others of its job.

use statrs::statistics::{Data, Median};

use super::{declare_rule, measure};
use crate::facts::Peer;
use crate::finding::{Finding, Impact, Location, Measure, Related, Severity, Value};
use crate::lives::growth::of_levels;
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
        let outliers: Vec<Outlier> = ranks.iter().filter_map(|rank| Outlier::of(rank, ranks)).collect();
        let few = outliers.len() <= ranks.len().div_ceil(FEW.get());
        outliers.iter().map(|outlier| outlier.finding(few)).collect()
    }
}

/// A rank that needs far more than the others.
struct Outlier<'a> {
    rank: &'a Peer,
    others: Vec<&'a Peer>,
    /// The median of the others' peaks.
    median: Bytes,
}

impl<'a> Outlier<'a> {
    fn of(rank: &'a Peer, ranks: &'a [Peer]) -> Option<Outlier<'a>> {
        let others: Vec<&Peer> = ranks.iter().filter(|other| other.rank != rank.rank).collect();
        let median = median(&others, |other| other.peak);
        let excess = rank.peak - median;
        let deviation = median_of(others.iter().map(|other| (other.peak - median).max(median - other.peak)));
        let score = NORMAL_DEVIATION * excess.share_of(deviation);
        let stands_out = deviation == Bytes::ZERO || score > OUTLIER.get();
        let much = excess >= NOTED && rank.peak.share_of(median) >= FACTOR.get() && median > Bytes::ZERO;
        (much && stands_out).then_some(Outlier { rank, others, median })
    }

    fn excess(&self) -> Bytes {
        self.rank.peak - self.median
    }

    /// What is typical of the others.
    fn typical(&self, of: impl Fn(&Peer) -> Bytes) -> Bytes {
        median(&self.others, of)
    }

    fn finding(&self, few: bool) -> Finding {
        let Outlier { rank, others, .. } = self;
        let times = rank.peak.share_of(self.median);
        let by_design = self.by_design(few);
        let lines = self.lines();
        let meta = RankImbalance::META;
        let mut finding = Finding::of(meta.name, meta.group, meta.level);
        let than = match others.as_slice() {
            [other] => format!("rank {}", other.rank),
            _ => "the other ranks".to_owned(),
        };
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
            None if others.len() < MANY.get() => Confidence::Medium,
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
        finding.evidence = self.evidence(by_design);
        finding
    }

    /// The lines that have more at the peak than on the other ranks, with both figures, what exceeds most first.
    fn lines(&self) -> Vec<(&'a Location, Bytes, Bytes)> {
        let least = Bytes::rounded(NAMED * self.excess().get() as f64);
        let compared = self
            .rank
            .lines
            .iter()
            .map(|(line, bytes)| (line, *bytes, self.typical(|other| other.line(line))));
        let mut lines: Vec<_> = compared.filter(|(_, here, elsewhere)| *here > *elsewhere + least).collect();
        lines.sort_by(|a, b| (b.1 - b.2).cmp(&(a.1 - a.2)).then_with(|| a.0.cmp(b.0)));
        lines
    }

    /// Why the ranks may be meant to differ, if there is a sign of it.
    fn by_design(&self, few: bool) -> Option<&'static str> {
        let weights = |peer: &Peer| peer.role(Role::Parameter);
        let (here, elsewhere) = (weights(self.rank), self.typical(weights));
        let apart = (here - elsewhere).max(elsewhere - here);
        let known = self.rank.lines.iter().map(|(_, bytes)| *bytes).sum::<Bytes>();
        let has = |line: &Location| self.others.iter().any(|other| other.line(line) > Bytes::ZERO);
        let shared =
            self.rank.lines.iter().filter(|(line, _)| has(line)).map(|(_, bytes)| *bytes).sum::<Bytes>();
        if !few {
            Some("many ranks are like it: another stage of a pipeline, another kind of work?")
        } else if apart.share_of(here.max(elsewhere)) > ALIKE.get() {
            Some("its weights are not as large as those of the others: another stage of a pipeline?")
        } else if shared.share_of(known) < SHARED_LINES.get() && known > Bytes::ZERO {
            Some("its peak stands at other lines than those of the others: work that only it has?")
        } else {
            None
        }
    }

    fn evidence(&self, by_design: Option<&'static str>) -> Vec<Measure> {
        let Outlier { rank, others, median } = self;
        let of_others = match others.as_slice() {
            [other] => format!("{median} on rank {}", other.rank),
            several => format!("{median} is the median of the {} others", several.len()),
        };
        let mut evidence = vec![
            measure("rank-peak", Value::Bytes(rank.peak), format!("{} on rank {}", rank.peak, rank.rank)),
            measure("median-of-others", Value::Bytes(*median), of_others),
            measure("excess-share", Value::Ratio(rank.peak.share_of(*median) - 1.0), String::new()),
        ];
        evidence.extend(self.composition());
        evidence.extend(self.growth());
        if let Some(why) = by_design {
            evidence.push(measure("by-design", Value::Text(why.to_owned()), why.to_owned()));
        }
        evidence
    }

    /// The role that makes most of the difference.
    fn composition(&self) -> Option<Measure> {
        let compared = self.rank.roles.iter().map(|(role, bytes)| {
            let elsewhere = self.typical(|other| other.role(*role));
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
            measure("role", Value::Text(role.name().to_owned()), text)
        })
    }

    /// What it gains in each iteration and the others do not.
    fn growth(&self) -> Option<Measure> {
        let (here, elsewhere) = (growth(self.rank), self.typical(growth));
        let share = (here - elsewhere).times(self.rank.resident.len() as u64).share_of(self.excess());
        (share >= NAMED).then(|| {
            let others = if elsewhere == Bytes::ZERO { "nothing".to_owned() } else { elsewhere.to_string() };
            let text = format!("it grows by {here} in each iteration, the others by {others}");
            measure("growth", Value::Bytes(here), text)
        })
    }
}

/// By how much a rank grows from iteration to iteration, where it does so steadily.
fn growth(peer: &Peer) -> Bytes {
    let series: Vec<f64> = peer.resident.iter().map(|bytes| bytes.get() as f64).collect();
    of_levels(&series).map(|growth| Bytes::rounded(growth.slope)).unwrap_or_default()
}

fn median(peers: &[&Peer], of: impl Fn(&Peer) -> Bytes) -> Bytes {
    median_of(peers.iter().map(|peer| of(peer)))
}

fn median_of(values: impl Iterator<Item = Bytes>) -> Bytes {
    let values: Vec<f64> = values.map(|bytes| bytes.get() as f64).collect();
    if values.is_empty() { Bytes::ZERO } else { Bytes::rounded(Data::new(values).median()) }
}
