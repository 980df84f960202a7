//! What is worse than in the base although no rule says why: a higher peak, or faster growth.
//!
//! In: a comparison, and the head's findings that the base does not have. Out: findings of rules that need two recordings.
//! Always: what such a finding accounts for is not reported twice.

use super::Comparison;
use super::device::{DeviceComparison, SiteChange};
use super::spread::{Direction, SizeChange};
use crate::engine::Report;
use crate::finding::{
    Finding, Fingerprint, Group, Impact, Measure, Quantity, Severity, StackFrame, Standing,
};
use crate::rules::{GROWTH_REGRESSION, PEAK_REGRESSION};
use crate::unit::{Bytes, Confidence, DeviceIndex, percent};

/// From where on more is worse.
///
/// Where the iterations of a recording of the corpus are cut into two halves (`memlint slice`, `memlint diff`), the peaks
/// of requested bytes are equal to the byte, but for programs that leak or that feed other shapes in the second half; where shapes are
/// drawn at random they differ by 6 to 17 %, of which the noise takes all but 4. Reserved bytes differ by up to 0.2 %, and by
/// 10 % with random shapes (`frag-serving-holes-bug`); 20 % of them is where `fragmentation` becomes a warning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegressionLimits {
    /// Of the base's peak, or of its growth.
    pub share: f64,
    /// Of the base's reserved peak.
    pub reserved: f64,
    /// Of a peak, whatever the share.
    pub peak: Bytes,
    /// Of growth with every iteration, whatever the share.
    pub growth: Bytes,
}

impl Default for RegressionLimits {
    fn default() -> RegressionLimits {
        RegressionLimits { share: 0.05, reserved: 0.2, peak: Bytes(4 << 20), growth: Bytes(64 << 10) }
    }
}

impl RegressionLimits {
    /// Whether what stays grows faster by more than a share, a least rate and what the slopes may be off by: by more than
    /// each, not than all together, since the noise of a leak that strikes every few iterations is the leak itself.
    fn outgrown(&self, change: &SizeChange) -> bool {
        let share = Bytes::rounded(change.base.get() as f64 * self.share);
        change.growth() > share.max(self.growth).max(change.noise)
    }

    /// Whether a change is worse by more than a share, or a least size, and by more than noise.
    fn passed(change: &SizeChange, share: f64, least: Bytes) -> bool {
        let share = Bytes::rounded(change.base.get() as f64 * share);
        change.growth() > change.noise + share.max(least)
    }
}

/// What is worse in one input of the head, and not accounted for by a finding that counts. `admit` gives a finding the level that was chosen
/// for its rule, or drops it where that was not selected: faster growth that nobody is told of is no reason to be silent about the peak.
pub fn regressions(
    comparison: &Comparison,
    head: &Report,
    input: usize,
    threshold: &RegressionLimits,
    admit: impl Fn(Finding) -> Option<Finding>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    // Other iterations may well need more.
    let devices = if comparison.shifted.is_some() { &[][..] } else { &comparison.devices };
    for device in devices {
        let here = |at: usize, on: Option<DeviceIndex>| at == input && on == Some(device.device);
        let new: Vec<&Finding> = head
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Info)
            .filter(|finding| !matches!(finding.standing, Standing::Inherited | Standing::Baselined))
            .filter(|finding| {
                here(finding.input, finding.device)
                    || finding.also.iter().any(|other| here(other.input, other.device))
            })
            .collect();
        let growth = growth(device, &new, threshold).and_then(&admit);
        let peak = peak(device, &new, growth.as_ref().is_some_and(speaks_for_itself), threshold);
        found.extend(growth.into_iter().chain(peak.and_then(&admit)).map(|finding| Finding {
            device: Some(device.device),
            help: help(&comparison.base, &comparison.head),
            ..finding
        }));
    }
    for finding in &mut found {
        finding.fingerprint = Fingerprint::of(finding);
    }
    found
}

fn help(base: &str, head: &str) -> String {
    format!(
        "look at what this line allocates now, and at what else has changed:\n  memlint diff {} {}",
        crate::unit::shown_name(base),
        crate::unit::shown_name(head)
    )
}

/// Whether a finding is reason enough to say nothing more: it is an error itself, or somebody said that it is meant.
fn speaks_for_itself(finding: &Finding) -> bool {
    finding.severity == Severity::Error || !finding.is_open()
}

fn growth(device: &DeviceComparison, new: &[&Finding], threshold: &RegressionLimits) -> Option<Finding> {
    let change = device.growth.filter(|change| threshold.outgrown(change))?;
    if new.iter().any(|finding| finding.group == Group::Leak && speaks_for_itself(finding)) {
        return None;
    }
    let worst = device.sites.iter().filter(|site| site.growth.direction() == Direction::Up);
    let worst = worst.max_by_key(|site| site.growth.growth());
    let more = change.growth();
    let finding = Finding {
        message: format!("{more} more stays behind in every iteration than in the base"),
        label: worst.map_or_else(String::new, |site| {
            format!("{} of it in every iteration is allocated here", site.growth.growth())
        }),
        evidence: vec![
            bytes("base-bytes-per-iteration", change.base, "grew by {} per iteration in the base"),
            bytes("bytes-per-iteration", change.head, "now by {}"),
            noise(&change),
            aligned(device),
        ],
        impact: Impact { per_iteration: Some(more), ..Impact::default() },
        ..Finding::of(GROWTH_REGRESSION.name, GROWTH_REGRESSION.group, GROWTH_REGRESSION.level)
    };
    Some(at(finding, worst))
}

fn peak(
    device: &DeviceComparison,
    new: &[&Finding],
    grows: bool,
    threshold: &RegressionLimits,
) -> Option<Finding> {
    let worse = |change: SizeChange, share| {
        RegressionLimits::passed(&change, share, threshold.peak).then_some(change)
    };
    let requested = worse(device.peak, threshold.share).map(|change| (change, "peak"));
    let reserved = || Some((worse(device.reserved, threshold.reserved)?, "reserved peak"));
    let (change, what) = requested.or_else(reserved)?;
    let more = change.growth();
    let of_allocator = what != "peak";
    let of_peak =
        |finding: &Finding| if of_allocator { finding.impact.reserved } else { finding.impact.peak };
    let of_kind = new.iter().filter(|finding| of_peak(finding).is_some());
    let (enough, others): (Vec<&Finding>, Vec<&Finding>) =
        of_kind.copied().partition(|finding| speaks_for_itself(finding));
    let saved: Bytes = enough.iter().filter_map(|finding| of_peak(finding)).sum();
    let grown = device.growth.filter(|_| grows).map_or(Bytes::ZERO, |growth| growth.growth());
    if (saved + grown.times(device.aligned as u64)).times(2) >= more {
        return None;
    }
    let share = percent(more.share_of(change.base));
    let worst = device.grown().max_by_key(|site| site.bytes.growth());
    let mut evidence = vec![
        bytes("base-peak-bytes", change.base, "{} in the base"),
        bytes("peak-bytes", change.head, "{} now"),
        noise(&change),
        aligned(device),
    ];
    let roles = device.roles.iter().filter(|role| role.bytes.direction() == Direction::Up).take(2);
    evidence.extend(roles.map(|role| Measure {
        name: role.role.name().into(),
        value: Quantity::Bytes(role.bytes.growth()),
        text: format!("{} more of role {}", role.bytes.growth(), role.role.name()),
    }));
    evidence.extend(others.iter().filter_map(|finding| {
        let bytes = of_peak(finding).filter(|bytes| *bytes > Bytes::ZERO)?;
        let text = format!("{} accounts for {bytes}", finding.rule);
        Some(Measure { name: "accounted-for-bytes".into(), value: Quantity::Bytes(bytes), text })
    }));
    let finding = Finding {
        message: format!("the {what} is {more} higher than in the base ({share})"),
        label: worst
            .map_or_else(String::new, |site| format!("{} more from here at the peak", site.bytes.growth())),
        evidence,
        impact: if of_allocator {
            Impact { reserved: Some(more), ..Impact::default() }
        } else {
            Impact { peak: Some(more), ..Impact::default() }
        },
        ..Finding::of(PEAK_REGRESSION.name, PEAK_REGRESSION.group, PEAK_REGRESSION.level)
    };
    Some(at(finding, worst))
}

/// Puts a finding at the call site that grew most.
fn at(finding: Finding, site: Option<&SiteChange>) -> Finding {
    let Some((site, line)) = site.and_then(|site| Some((site, site.line()?))) else { return finding };
    let stack = std::iter::once(line).chain(&site.callers);
    Finding {
        confidence: Confidence::High,
        phase: site.phase,
        location: Some(line.clone()),
        stack: stack.map(|location| StackFrame { location: location.clone(), user: true }).collect(),
        ..finding
    }
}

fn bytes(name: &'static str, value: Bytes, words: &str) -> Measure {
    Measure {
        name: name.into(),
        value: Quantity::Bytes(value),
        text: words.replace("{}", &value.to_string()),
    }
}

fn noise(change: &SizeChange) -> Measure {
    let text = format!("iterations alone differ by up to {}", change.noise);
    Measure { name: "noise-bytes".into(), value: Quantity::Bytes(change.noise), text }
}

fn aligned(device: &DeviceComparison) -> Measure {
    let text = match device.aligned {
        0 => "no iterations to align".to_owned(),
        number => format!("{} compared", crate::unit::count(number, "iteration")),
    };
    Measure { name: "iterations-compared".into(), value: Quantity::Count(device.aligned as u64), text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::PeakAt;
    use crate::finding::Location;
    use crate::program::Phase;
    use crate::unit::Index;

    const MIB: u64 = 1 << 20;

    fn change(base: u64, head: u64, noise: u64) -> SizeChange {
        SizeChange { base: Bytes(base * MIB), head: Bytes(head * MIB), noise: Bytes(noise * MIB) }
    }

    fn comparison(peak: SizeChange, growth: SizeChange) -> Comparison {
        let line = |line| Location { file: "/a/train.py".to_owned(), line, function: "main".to_owned() };
        let site = |at: u32, more: u64| SiteChange {
            lines: (Some(line(at)), Some(line(at + 2))),
            callers: vec![line(90)],
            phase: Phase::Forward,
            bytes: change(10, 10 + more, 0),
            growth: change(0, more / 10, 0),
            allocations: (1, 1),
        };
        let device = DeviceComparison {
            device: DeviceIndex::at(0).unwrap(),
            iterations: (8, 8),
            aligned: 8,
            warm_up: 1,
            peak,
            peak_at: (PeakAt::Iteration(2), PeakAt::Iteration(2)),
            reserved: change(900, 900, 0),
            resident: None,
            growth: Some(growth),
            allocations: None,
            roles: Vec::new(),
            sites: vec![site(3, 20), site(7, 80)],
        };
        Comparison { devices: vec![device], ..Comparison::default() }
    }

    fn found(comparison: &Comparison, new: &[(Group, Severity, Standing, u64)]) -> Vec<String> {
        let finding = |(group, severity, standing, saved): &(Group, Severity, Standing, u64)| Finding {
            device: DeviceIndex::at(0),
            standing: standing.clone(),
            impact: Impact { peak: Some(Bytes(saved * MIB)), ..Impact::default() },
            ..Finding::of("rule", *group, *severity)
        };
        let head = Report { findings: new.iter().map(finding).collect(), ..Report::default() };
        let found = regressions(comparison, &head, 0, &RegressionLimits::default(), Some);
        found.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect()
    }

    #[test]
    fn a_higher_peak_is_found_where_most_was_added() {
        let comparison = comparison(change(500, 600, 0), change(0, 0, 0));
        let all = regressions(&comparison, &Report::default(), 0, &RegressionLimits::default(), Some);
        let [finding] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(finding.message, "the peak is 100 MiB higher than in the base (20 %)");
        assert_eq!(finding.location.as_ref().map(|location| location.line), Some(9));
        assert_eq!(finding.stack.len(), 2);
        assert_ne!(finding.fingerprint, Fingerprint::default());
    }

    #[test]
    fn small_noisy_and_explained_changes_are_none() {
        let none = change(0, 0, 0);
        let peak = |base, head, noise| comparison(change(base, head, noise), none);
        assert!(found(&peak(500, 520, 0), &[]).is_empty(), "4 %");
        assert!(found(&peak(500, 600, 90), &[]).is_empty(), "noise and 5 %");
        assert!(found(&peak(10, 13, 0), &[]).is_empty(), "3 MiB");
        assert!(found(&peak(600, 500, 0), &[]).is_empty());
        let new = |severity, standing, saved| (Group::Peak, severity, standing, saved);
        assert!(found(&peak(500, 600, 0), &[new(Severity::Error, Standing::Open, 60)]).is_empty());
        let meant = Standing::Ignored { reason: "meant".to_owned(), by: "a.py:1".to_owned() };
        assert!(found(&peak(500, 600, 0), &[new(Severity::Warning, meant, 60)]).is_empty());
        for not_enough in [
            new(Severity::Error, Standing::Open, 20),
            new(Severity::Error, Standing::Inherited, 60),
            new(Severity::Warning, Standing::Open, 60),
        ] {
            assert_eq!(
                found(&peak(500, 600, 0), &[not_enough]).len(),
                1,
                "a warning does not close the gate"
            );
        }
    }

    #[test]
    fn growth_is_found_once() {
        let growing = comparison(change(500, 564, 0), change(0, 8, 0));
        assert_eq!(
            found(&growing, &[]),
            ["growth-regression: 8 MiB more stays behind in every iteration than in the base"],
            "what grows explains the peak"
        );
        assert!(found(&growing, &[(Group::Leak, Severity::Error, Standing::Open, 64)]).is_empty());
    }

    #[test]
    fn growth_that_is_not_told_as_an_error_does_not_hide_the_peak() {
        let growing = comparison(change(500, 564, 0), change(0, 8, 0));
        let told = |admit: fn(Finding) -> Option<Finding>| {
            let found = regressions(&growing, &Report::default(), 0, &RegressionLimits::default(), admit);
            found.into_iter().map(|finding| finding.rule.into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(told(|one| (one.rule != GROWTH_REGRESSION.name).then_some(one)), ["peak-regression"]);
        let as_warnings = told(|one| Some(Finding { severity: Severity::Warning, ..one }));
        assert_eq!(as_warnings, ["growth-regression", "peak-regression"]);
    }

    #[test]
    fn the_noise_of_a_leak_that_strikes_now_and_then_does_not_hide_it() {
        let kib = |base: u64, head: u64, noise: u64| SizeChange {
            base: Bytes(base << 10),
            head: Bytes(head << 10),
            noise: Bytes(noise << 10),
        };
        let found = |growth| found(&comparison(change(500, 500, 0), growth), &[]).len();
        assert_eq!(found(kib(0, 100, 50)), 1);
        assert_eq!((found(kib(0, 60, 0)), found(kib(0, 100, 110)), found(kib(4000, 4100, 50))), (0, 0, 0));
    }

    #[test]
    fn reserved_bytes_may_differ_by_more() {
        let mut comparison = comparison(change(500, 500, 0), change(0, 0, 0));
        comparison.devices[0].reserved = change(900, 1000, 0);
        assert!(found(&comparison, &[]).is_empty());
        comparison.devices[0].reserved = change(900, 1200, 0);
        let holes = "peak-regression: the reserved peak is 300 MiB higher than in the base (33 %)";
        assert_eq!(found(&comparison, &[]), [holes]);
    }
}
