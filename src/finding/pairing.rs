//! The findings of two runs, told apart: which are the same, which are new, which have gone, which have grown.
//!
//! In: the marks of what was known and of what was found. Out: pairs. Always: each mark is in one pair at most, so that
//! a second finding never hides behind one that is known; equal marks give equal pairs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Finding, Fingerprint, Impact, Measure, Quantity, Severity};
use crate::unit::Bytes;

/// What of a finding tells whether another run has it, too, and whether it has grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// How bad it is.
    pub severity: Severity,
    /// How large it is.
    pub impact: Impact,
}

/// By how much a finding may grow and still be the one that is known.
///
/// Sizes of one program vary from run to run: the last batch is smaller, a data set is shuffled, an algorithm takes another
/// workspace. The rates of growth of the corpus's fourteen growing recordings are the same in their first three quarters
/// as in all of them, to 0.4 %, in one to 6 %; an impact is an estimate, good to 10 % (`tests/corpus/savings.rs`). What depends on
/// shapes drawn at random (holes) varies by more than any tolerance that would still see something grow. Below the floors a
/// share means nothing: the allocator serves requests up to 1 MiB from shared segments (`kSmallSize` in
/// `CUDACachingAllocator.h`), and 64 KiB an iteration are 1 GiB after 16,384 iterations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// As a share of what is known.
    pub share: f64,
    /// Of peaks and of what stays resident, whatever the share.
    pub floor: Bytes,
    /// Of growth with every iteration, whatever the share.
    pub floor_per_iteration: Bytes,
}

impl Tolerance {
    /// So many bytes, be it of a peak or of growth, and no share.
    pub const fn of_bytes(bytes: Bytes) -> Tolerance {
        Tolerance { share: 0.0, floor: bytes, floor_per_iteration: bytes }
    }
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { share: 0.1, floor: Bytes::MIB, floor_per_iteration: Bytes(64 << 10) }
    }
}

/// What makes a finding another than the one that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It is worse by kind: a warning has become an error, or the other way round.
    Severity {
        /// As known.
        was: Severity,
        /// As found.
        now: Severity,
    },
    /// What is known has no size to hold it against.
    Unmeasured {
        /// Which number.
        of: Size,
        /// As found.
        now: Bytes,
    },
    /// It is larger, or smaller.
    Size {
        /// Which number.
        of: Size,
        /// As known; nothing where it was not measured.
        was: Bytes,
        /// As found.
        now: Bytes,
    },
}

/// Which number of an [`Impact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// [`Impact::per_iteration`].
    PerIteration,
    /// [`Impact::peak`].
    Peak,
    /// [`Impact::reserved`].
    Reserved,
    /// [`Impact::resident`].
    Resident,
    /// [`Impact::at_once`].
    AtOnce,
}

/// Which marks belong together; the numbers are positions in the slices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairing {
    /// (known, found), in the order of what was found.
    pub same: Vec<(usize, usize)>,
    /// Known and not found.
    pub gone: Vec<usize>,
    /// Found and not known.
    pub new: Vec<usize>,
}

impl Size {
    const fn of(self, impact: &Impact) -> Bytes {
        let bytes = match self {
            Size::PerIteration => impact.per_iteration,
            Size::Peak => impact.peak,
            Size::Reserved => impact.reserved,
            Size::Resident => impact.resident,
            Size::AtOnce => impact.at_once,
        };
        match bytes {
            Some(bytes) => bytes,
            None => Bytes::ZERO,
        }
    }

    /// What follows a number of bytes: ` per iteration`.
    const fn words(self) -> &'static str {
        match self {
            Size::PerIteration => " per iteration",
            Size::Peak => " of the peak",
            Size::Reserved => " of what is reserved",
            Size::Resident => " between iterations",
            Size::AtOnce => " at once",
        }
    }
}

impl Tolerance {
    /// The largest that is no growth of `was`.
    fn most(&self, of: Size, was: Bytes) -> Bytes {
        let floor = if of == Size::PerIteration { self.floor_per_iteration } else { self.floor };
        was + Bytes::rounded(was.get() as f64 * self.share).max(floor)
    }
}

impl Difference {
    /// The clause for a person, such as "10 MiB per iteration in the baseline, now 40 MiB".
    pub fn evidence(&self, name: &'static str, place: &str) -> Measure {
        match self {
            Difference::Severity { was, now } => Measure {
                name: name.into(),
                value: Quantity::Text(was.name().to_owned()),
                text: format!("of severity {} {place}, now {}", was.name(), now.name()),
            },
            Difference::Unmeasured { of, now } => Measure {
                name: name.into(),
                value: Quantity::Text("no size".to_owned()),
                text: format!("without a size {place}, now {now}{}", of.words()),
            },
            Difference::Size { of, was, now } => Measure {
                name: name.into(),
                value: Quantity::Bytes(*was),
                text: format!("{was}{} {place}, now {now}", of.words()),
            },
        }
    }
}

impl Mark {
    /// The mark of a finding.
    pub fn of(finding: &Finding) -> Mark {
        Mark { fingerprint: finding.fingerprint, severity: finding.severity, impact: finding.impact }
    }

    /// What makes it worse than the one that is known, beyond a tolerance.
    pub fn worse_than(&self, known: &Mark, tolerance: &Tolerance) -> Option<Difference> {
        if self.severity > known.severity {
            return Some(Difference::Severity { was: known.severity, now: self.severity });
        }
        let (of, was, now) = self.larger_than(known, tolerance)?;
        if known.has_no_size() || (of == Size::AtOnce && known.impact.at_once.is_none()) {
            return Some(Difference::Unmeasured { of, now });
        }
        Some(Difference::Size { of, was, now })
    }

    /// Whether no number tells how bad it is: then none tells whether it has grown either.
    pub fn has_no_size(&self) -> bool {
        self.impact == Impact::default()
    }

    /// What makes it better than the one that is known, beyond a tolerance.
    pub fn better_than(&self, known: &Mark, tolerance: &Tolerance) -> Option<Difference> {
        if self.severity < known.severity {
            return Some(Difference::Severity { was: known.severity, now: self.severity });
        }
        let (of, now, was) = known.larger_than(self, tolerance)?;
        Some(Difference::Size { of, was, now })
    }

    /// Where it grows with every iteration, that alone is compared: the rest depends on how long was recorded. What stands there because of it is
    /// compared before what mending it saves, which also depends on what else stands beside: a leak that is mended makes no other fault worse.
    /// What is known without that size covers none, unless the two have another in common, or it would cover them all.
    fn larger_than(&self, known: &Mark, tolerance: &Tolerance) -> Option<(Size, Bytes, Bytes)> {
        let grows = |mark: &Mark| Size::PerIteration.of(&mark.impact) > Bytes::ZERO;
        let saved = [Size::Peak, Size::Reserved, Size::Resident];
        let saves = |mark: &Mark| saved.iter().any(|size| size.of(&mark.impact) > Bytes::ZERO);
        let stands = known.impact.at_once.is_some() || !saves(known) || !saves(self);
        let sizes: &[Size] = if grows(self) || grows(known) {
            &[Size::PerIteration]
        } else if self.impact.at_once.is_some() && stands {
            &[Size::AtOnce]
        } else {
            &saved
        };
        sizes.iter().find_map(|&of| {
            let (was, now) = (of.of(&known.impact), of.of(&self.impact));
            (now > tolerance.most(of, was)).then_some((of, was, now))
        })
    }

    /// The worst last.
    fn rank(&self) -> impl Ord + use<> {
        let sizes = [Size::PerIteration, Size::AtOnce, Size::Peak, Size::Reserved, Size::Resident];
        let sizes = sizes.map(|size| size.of(&self.impact));
        (self.severity, sizes)
    }
}

/// Pairs what was found with what is known. Several of one fingerprint are paired so that as many as can be are no worse
/// than what is known; what is left of both is paired by size, and is worse.
pub fn pair(known: &[Mark], found: &[Mark], tolerance: &Tolerance) -> Pairing {
    let mut groups: BTreeMap<Fingerprint, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (at, mark) in known.iter().enumerate() {
        groups.entry(mark.fingerprint).or_default().0.push(at);
    }
    for (at, mark) in found.iter().enumerate() {
        groups.entry(mark.fingerprint).or_default().1.push(at);
    }
    let mut pairing = Pairing::default();
    for (mut old, mut now) in groups.into_values() {
        let worst_first = |marks: &[Mark], at: usize| Reverse(marks.get(at).map(Mark::rank));
        old.sort_by_key(|&at| worst_first(known, at));
        now.sort_by_key(|&at| worst_first(found, at));
        // From the worst down, each takes the least of the known that covers it.
        now.retain(|&new| {
            let covers = |&at: &usize| match (found.get(new), known.get(at)) {
                (Some(new), Some(old)) => new.worse_than(old, tolerance).is_none(),
                _ => false,
            };
            let taken = old.iter().rposition(covers).map(|place| old.remove(place));
            pairing.same.extend(taken.map(|old| (old, new)));
            taken.is_none()
        });
        let both = old.len().min(now.len());
        pairing.same.extend(old.drain(..both).zip(now.drain(..both)));
        pairing.gone.append(&mut old);
        pairing.new.append(&mut now);
    }
    pairing.same.sort_unstable_by_key(|(_, found)| *found);
    pairing.gone.sort_unstable();
    pairing.new.sort_unstable();
    pairing
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn mark(kind: &str, per_iteration: u64) -> Mark {
        let digits = format!("v1:{kind:0>32}");
        Mark {
            fingerprint: digits.parse().unwrap(),
            severity: Severity::Error,
            impact: Impact { per_iteration: Some(Bytes(per_iteration * MIB)), ..Impact::default() },
        }
    }

    fn paired(known: &[Mark], found: &[Mark]) -> Pairing {
        pair(known, found, &Tolerance::default())
    }

    #[test]
    fn what_grows_is_compared_by_its_rate_however_long_it_grew() {
        let long = |total: u64| Mark {
            impact: Impact { peak: Some(Bytes(total)), ..mark("a", 10).impact },
            ..mark("a", 10)
        };
        assert_eq!(long(900 * MIB).worse_than(&long(MIB), &Tolerance::default()), None);
        let grown = mark("a", 40).worse_than(&mark("a", 10), &Tolerance::default()).unwrap();
        assert_eq!(
            grown.evidence("x", "in the baseline").text,
            "10 MiB per iteration in the baseline, now 40 MiB"
        );
        assert_eq!(mark("a", 11).worse_than(&mark("a", 10), &Tolerance::default()), None);
        assert!(mark("a", 12).worse_than(&mark("a", 10), &Tolerance::default()).is_some());
        assert!(mark("a", 10).better_than(&mark("a", 12), &Tolerance::default()).is_some());
    }

    #[test]
    fn what_was_not_measured_counts_as_nothing() {
        let known = Mark { impact: Impact::default(), ..mark("a", 0) };
        assert!(mark("a", 1).worse_than(&known, &Tolerance::default()).is_some());
        let peak = Mark { impact: Impact { peak: Some(Bytes(MIB)), ..Impact::default() }, ..known };
        assert_eq!(peak.worse_than(&known, &Tolerance::default()), None, "below the floor");
        let impact = Impact { at_once: Some(Bytes(300 * MIB)), ..Impact::default() };
        let worse = Mark { impact, ..known }.worse_than(&known, &Tolerance::default()).unwrap();
        assert_eq!(
            worse.evidence("x", "in the baseline").text,
            "without a size in the baseline, now 300 MiB at once"
        );
        let saved =
            Mark { impact: Impact { reserved: Some(Bytes(900 * MIB)), ..Impact::default() }, ..known };
        let unlike = Mark { impact, ..known }.worse_than(&saved, &Tolerance::default());
        assert!(matches!(unlike, Some(Difference::Unmeasured { of: Size::AtOnce, .. })), "no size in common");
    }

    #[test]
    fn what_stands_counts_and_not_what_another_fault_hides() {
        let masked = |saved: u64| {
            let impact = Impact {
                peak: Some(Bytes(saved * MIB)),
                at_once: Some(Bytes(862 * MIB)),
                ..Impact::default()
            };
            Mark { impact, ..mark("a", 0) }
        };
        assert_eq!(masked(732).worse_than(&masked(395), &Tolerance::default()), None);
        let impact = Impact { at_once: Some(Bytes(1000 * MIB)), ..masked(395).impact };
        let larger = Mark { impact, ..masked(395) };
        let words =
            larger.worse_than(&masked(732), &Tolerance::default()).unwrap().evidence("x", "in the base");
        assert_eq!(words.text, "862 MiB at once in the base, now 1000 MiB");
    }

    #[test]
    fn a_warning_that_becomes_an_error_is_worse() {
        let warning = Mark { severity: Severity::Warning, ..mark("a", 10) };
        assert!(mark("a", 10).worse_than(&warning, &Tolerance::default()).is_some());
        assert_eq!(warning.worse_than(&mark("a", 10), &Tolerance::default()), None);
        assert!(warning.better_than(&mark("a", 10), &Tolerance::default()).is_some());
    }

    #[test]
    fn a_second_one_does_not_hide_behind_the_first() {
        let pairing = paired(&[mark("a", 10)], &[mark("a", 10), mark("a", 10)]);
        assert_eq!((pairing.same.len(), pairing.new.len()), (1, 1));
        let pairing = paired(&[mark("a", 10), mark("a", 10)], &[mark("a", 10)]);
        assert_eq!((pairing.same.len(), pairing.gone.len()), (1, 1));
    }

    #[test]
    fn as_many_as_can_be_are_covered() {
        let known = [mark("a", 5), mark("a", 10)];
        assert_eq!(paired(&known, &[mark("a", 10), mark("a", 5)]).same, [(1, 0), (0, 1)]);
        let pairing = paired(&known, &[mark("a", 40), mark("a", 7)]);
        assert_eq!(pairing.same, [(0, 0), (1, 1)], "7 fits behind 10; 40 has grown from what is left");
        assert_eq!(paired(&known, &[mark("b", 5)]).new, [0]);
    }
}
