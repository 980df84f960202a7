//! One device of both recordings, side by side.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::measured::{AllocationSite, MeasuredDevice, SumSeries};
use super::sites;
use super::spread::{Direction, SizeChange, Spread};
use crate::finding::Location;
use crate::program::Phase;
use crate::role::Role;
use crate::unit::{Bytes, DeviceIndex};

/// How a device differs.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceComparison {
    /// Its ordinal.
    pub device: DeviceIndex,
    /// How many iterations the base and the head hold.
    pub iterations: (usize, usize),
    /// How many of them are compared, by their number; the highest points are looked for up to the last of these.
    pub aligned: usize,
    /// How many of these are left out of what is steady: the warm-up.
    pub warm_up: usize,
    /// The highest requested bytes.
    pub peak: SizeChange,
    /// What the program does at these.
    pub peak_at: (PeakAt, PeakAt),
    /// The highest reserved bytes.
    pub reserved: SizeChange,
    /// Requested bytes between iterations, the middle of the steady ones; `None` without iterations.
    pub resident: Option<SizeChange>,
    /// By how much these grow with every iteration; `None` where there are too few to tell.
    pub growth: Option<SizeChange>,
    /// Allocations in an iteration, the middle of the steady ones.
    pub allocations: Option<(usize, usize)>,
    /// What is in use at the highest point, by role; what differs most first.
    pub roles: Vec<RoleChange>,
    /// What is in use at the highest point and what grows, by call site; what differs most first.
    pub sites: Vec<SiteChange>,
}

/// Where the highest point lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeakAt {
    /// Before the first iteration.
    Setup,
    /// In an iteration, counted from 1.
    Iteration(usize),
    /// After the last iteration, or anywhere where there is none.
    After,
}

/// A role's part of the highest point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleChange {
    /// The role.
    pub role: Role,
    /// Bytes.
    pub bytes: SizeChange,
}

/// A call site's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteChange {
    /// The innermost line of the user's; in the base, and in the head. `None` where there is none in that recording.
    pub lines: (Option<Location>, Option<Location>),
    /// The calls around it, innermost first, as the head has them.
    pub callers: Vec<Location>,
    /// What the program does when it allocates there.
    pub phase: Phase,
    /// Bytes in use at the highest point.
    pub bytes: SizeChange,
    /// Bytes by which what stays grows with every iteration.
    pub growth: SizeChange,
    /// Allocations in an iteration, on average.
    pub allocations: (usize, usize),
}

impl SiteChange {
    /// The line in the head, or where it was.
    pub fn line(&self) -> Option<&Location> {
        self.lines.1.as_ref().or(self.lines.0.as_ref())
    }
}

/// Which moments and iterations are compared.
struct Aligned<'a> {
    base: &'a MeasuredDevice,
    head: &'a MeasuredDevice,
    iterations: usize,
    warm_up: usize,
    /// The highest moments.
    moments: (usize, usize),
    scale: Bytes,
}

impl<'a> Aligned<'a> {
    fn of(base: &'a MeasuredDevice, head: &'a MeasuredDevice) -> Aligned<'a> {
        let iterations = base.iterations.min(head.iterations);
        let equal = base.iterations == head.iterations;
        let highest = |one: &MeasuredDevice| {
            let all = equal || iterations == 0;
            let last = if all { one.peaks.len() } else { iterations + 1 };
            // Of equals the first.
            let moments = one.peaks.iter().take(last).enumerate();
            moments.max_by_key(|(at, peak)| (**peak, Reverse(*at))).map_or(0, |(at, _)| at)
        };
        let moments = (highest(base), highest(head));
        let peak = |one: &MeasuredDevice, at: usize| one.peaks.get(at).copied().unwrap_or_default();
        let scale = peak(base, moments.0).max(peak(head, moments.1));
        Aligned { base, head, iterations, warm_up: usize::from(iterations >= 3), moments, scale }
    }

    /// The moments of the steady iterations.
    fn steady(&self) -> (usize, usize) {
        (1 + self.warm_up, 1 + self.iterations)
    }

    /// A level at the highest moments, with the noise of the steady ones.
    fn at_peak(&self, base: &SumSeries, head: &SumSeries) -> SizeChange {
        let (now, then) = (base.at(self.moments.0), head.at(self.moments.1));
        let (first, last) = self.steady();
        let noise = |levels: &SumSeries| Spread::of(&levels.values(first, last)).high_noise;
        let quiet = SizeChange::of(now, then, 0.0, self.scale);
        if quiet.direction() == Direction::Same {
            return quiet;
        }
        SizeChange::of(now, then, noise(base).max(noise(head)), self.scale)
    }

    /// The highest of a series of moments, with the noise of the steady ones.
    fn highest(&self, of: impl Fn(&MeasuredDevice) -> &[Bytes]) -> SizeChange {
        let all = self.base.iterations == self.head.iterations || self.iterations == 0;
        let highest = |one: &MeasuredDevice| {
            let series = of(one);
            let last = if all { series.len() } else { self.iterations + 1 };
            series.iter().take(last).copied().max().unwrap_or_default()
        };
        let (first, last) = self.steady();
        let noise =
            |one: &MeasuredDevice| Spread::of(of(one).get(first..last).unwrap_or_default()).high_noise;
        let noise = noise(self.base).max(noise(self.head));
        SizeChange::of(highest(self.base), highest(self.head), noise, self.scale)
    }

    /// The growth of two series of ends; `None` where there are too few.
    fn growth(&self, base: &[Bytes], head: &[Bytes]) -> Option<SizeChange> {
        if !shows_growth(base.len().min(head.len())) {
            return None;
        }
        let (one, other) = (Spread::of(base), Spread::of(head));
        let noise = one.slope_noise.max(other.slope_noise);
        let rate = |spread: &Spread| Bytes::rounded(spread.slope);
        // A thousandth of the peak, spread over a thousand iterations, matters to nobody.
        let scale = Bytes(self.scale.get() / 100);
        Some(SizeChange::of(rate(&one), rate(&other), noise, scale))
    }

    /// Which ends growth is read from: the first is left out where enough are left.
    fn ends(&self) -> (usize, usize) {
        (usize::from(self.iterations >= 5), self.iterations)
    }
}

impl DeviceComparison {
    pub(super) fn of(base: &MeasuredDevice, head: &MeasuredDevice) -> DeviceComparison {
        let aligned = Aligned::of(base, head);
        let (first, last) = aligned.ends();
        let ends = |one: &'_ MeasuredDevice| one.resident.get(first..last).unwrap_or_default().to_vec();
        let steady = |one: &MeasuredDevice| {
            one.resident.get(aligned.warm_up..aligned.iterations).unwrap_or_default().to_vec()
        };
        let resident = (aligned.iterations > 0).then(|| {
            let (one, other) = (Spread::of(&steady(base)), Spread::of(&steady(head)));
            let noise = one.middle_noise.max(other.middle_noise);
            SizeChange::of(Bytes::rounded(one.middle), Bytes::rounded(other.middle), noise, aligned.scale)
        });
        let allocations = |one: &MeasuredDevice| {
            let mut counts: Vec<usize> =
                one.allocations.get(aligned.warm_up..aligned.iterations).unwrap_or_default().to_vec();
            counts.sort_unstable();
            counts.get(counts.len() / 2).copied()
        };
        DeviceComparison {
            device: head.device,
            iterations: (base.iterations, head.iterations),
            aligned: aligned.iterations,
            warm_up: aligned.warm_up,
            peak: aligned.highest(|one| &one.peaks),
            peak_at: (peak_at(base, aligned.moments.0), peak_at(head, aligned.moments.1)),
            reserved: aligned.highest(|one| &one.reserved),
            resident,
            growth: aligned.growth(&ends(base), &ends(head)),
            allocations: allocations(base).zip(allocations(head)),
            roles: roles(&aligned),
            sites: site_changes(&aligned),
        }
    }

    /// The call sites that hold more at the highest point, beyond the noise; the most first.
    pub fn grown(&self) -> impl Iterator<Item = &SiteChange> {
        self.sites.iter().filter(|site| site.bytes.direction() == Direction::Up)
    }

    /// The call sites that hold less.
    pub fn shrunk(&self) -> impl Iterator<Item = &SiteChange> {
        self.sites.iter().filter(|site| site.bytes.direction() == Direction::Down)
    }
}

/// Whether so many iterations show growth: four values are the fewest whose rise can be told from chance.
pub(super) const fn shows_growth(iterations: usize) -> bool {
    iterations >= 4
}

/// Whether two recordings have call sites, and none in common.
pub(super) fn are_strangers(base: &MeasuredDevice, head: &MeasuredDevice) -> bool {
    let told = |sites: &[AllocationSite]| sites.iter().any(|site| !site.frames.is_empty());
    let known = |pair: &sites::SitePair| match *pair {
        (Some(one), Some(_)) => base.sites.get(one).is_some_and(|site| !site.frames.is_empty()),
        _ => false,
    };
    told(&base.sites) && told(&head.sites) && !sites::pair(&base.sites, &head.sites).iter().any(known)
}

fn peak_at(device: &MeasuredDevice, moment: usize) -> PeakAt {
    match moment {
        0 if device.iterations > 0 => PeakAt::Setup,
        at if at > device.iterations || device.iterations == 0 => PeakAt::After,
        at => PeakAt::Iteration(at),
    }
}

fn roles(aligned: &Aligned) -> Vec<RoleChange> {
    let nothing = SumSeries::default();
    let all: BTreeSet<Role> = aligned.base.roles.keys().chain(aligned.head.roles.keys()).copied().collect();
    let level = |one: &'_ MeasuredDevice, role: Role| one.roles.get(&role).cloned();
    let mut changes: Vec<RoleChange> = all
        .into_iter()
        .map(|role| {
            let (base, head) = (level(aligned.base, role), level(aligned.head, role));
            let bytes = aligned.at_peak(base.as_ref().unwrap_or(&nothing), head.as_ref().unwrap_or(&nothing));
            RoleChange { role, bytes }
        })
        .filter(|change| change.bytes.base.max(change.bytes.head) > Bytes::ZERO)
        .collect();
    changes.sort_by_key(|change| Reverse((change.bytes.size(), change.bytes.head)));
    changes
}

/// The sites of one pair of lines, whoever calls them.
#[derive(Default)]
struct Row {
    callers: Vec<Location>,
    alive: (SumSeries, SumSeries),
    resident: (SumSeries, SumSeries),
    allocations: (usize, usize),
}

fn site_changes(aligned: &Aligned) -> Vec<SiteChange> {
    let mut rows: BTreeMap<(Option<Location>, Option<Location>, Phase), Row> = BTreeMap::new();
    for (one, other) in sites::pair(&aligned.base.sites, &aligned.head.sites) {
        let base = one.and_then(|at| aligned.base.sites.get(at));
        let head = other.and_then(|at| aligned.head.sites.get(at));
        let line = |site: Option<&AllocationSite>| site.and_then(|site| site.frames.first()).cloned();
        let Some(either) = head.or(base) else { continue };
        let row = rows.entry((line(base), line(head), either.phase)).or_default();
        if row.callers.is_empty() {
            row.callers = either.frames.get(1..).unwrap_or_default().to_vec();
        }
        if let Some(base) = base {
            row.alive.0.add(&base.alive);
            row.resident.0.add(&base.resident);
            row.allocations.0 += base.allocations;
        }
        if let Some(head) = head {
            row.alive.1.add(&head.alive);
            row.resident.1.add(&head.resident);
            row.allocations.1 += head.allocations;
        }
    }
    let (first, last) = aligned.ends();
    let mut changes: Vec<SiteChange> = rows
        .into_iter()
        .map(|((base, head, phase), row)| {
            let ends = |levels: &SumSeries| levels.values(first, last);
            SiteChange {
                lines: (base, head),
                callers: row.callers,
                phase,
                bytes: aligned.at_peak(&row.alive.0, &row.alive.1),
                growth: aligned.growth(&ends(&row.resident.0), &ends(&row.resident.1)).unwrap_or_default(),
                allocations: (
                    row.allocations.0 / aligned.base.iterations.max(1),
                    row.allocations.1 / aligned.head.iterations.max(1),
                ),
            }
        })
        .collect();
    changes.sort_by_key(|change| Reverse((change.bytes.size(), change.growth.size())));
    changes
}
