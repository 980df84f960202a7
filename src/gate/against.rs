//! The base: a recording of the program as it was, which a change must not make worse.
//!
//! In: the reports of both. Out: the head's report with the standing of what the base has, too, and what is worse said on
//! the finding. Always: one finding of the base covers one of the head.

use crate::engine::Report;
use crate::finding::{Mark, Standing, Tolerance, pair};

/// Settles the findings that the base has, too, no smaller than they are now. What is new or worse stays open.
pub fn inherit(report: &mut Report, base: &Report, tolerance: &Tolerance) {
    let marks = |report: &Report| report.findings.iter().map(Mark::of).collect::<Vec<Mark>>();
    let (known, found) = (marks(base), marks(report));
    for (old, now) in pair(&known, &found, tolerance).same {
        let (Some(before), Some(mark), Some(finding)) =
            (known.get(old), found.get(now), report.findings.get_mut(now))
        else {
            continue;
        };
        if !finding.is_open() {
            continue;
        }
        match mark.worse_than(before, tolerance) {
            Some(growth) => finding.evidence.push(growth.evidence("in-base", "in the base")),
            None => finding.standing = Standing::Inherited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Group, Impact, Severity};
    use crate::unit::Bytes;

    fn report(rates: &[u64]) -> Report {
        let finding = |rate: &u64| Finding {
            impact: Impact { per_iteration: Some(Bytes(rate << 20)), ..Impact::default() },
            ..Finding::of("growing-residency", Group::Leak, Severity::Error)
        };
        Report { findings: rates.iter().map(finding).collect(), ..Report::default() }
    }

    #[test]
    fn what_the_base_has_does_not_count_unless_it_is_worse() {
        let mut head = report(&[40, 10, 3]);
        inherit(&mut head, &report(&[10, 10]), &Tolerance::default());
        let standings: Vec<&Standing> = head.findings.iter().map(|finding| &finding.standing).collect();
        assert_eq!(standings, [&Standing::Open, &Standing::Inherited, &Standing::Inherited]);
        assert!(head.findings[0].evidence.is_empty(), "both of the base are taken");
        let mut head = report(&[40]);
        inherit(&mut head, &report(&[10]), &Tolerance::default());
        assert_eq!(head.findings[0].evidence[0].text, "10 MiB per iteration in the base, now 40 MiB");
    }
}
