//! The base: a recording of the program as it was, which a change must not make worse.
//!
//! In: the reports of both. Out: the head's report with the standing of what the base has, too, and what is worse said on
//! the finding. Always: one finding of the base covers one of the head.

use crate::comparison::Moves;
use crate::engine::Report;
use crate::finding::{Finding, Group, Mark, Measure, Pairing, Quantity, Standing, Tolerance, pair};

/// Settles the findings that the base has, too, no smaller than they are now. What is new or worse stays open.
pub fn inherit(report: &mut Report, base: &Report, moves: &Moves, tolerance: &Tolerance) {
    let marks = |report: &Report| report.findings.iter().map(Mark::of).collect::<Vec<Mark>>();
    let (known, found) = (marks(base), marks(report));
    let mut pairing = pair(&known, &found, tolerance);
    for (old, now) in moves.take(&mut pairing, &base.findings, &report.findings, tolerance) {
        let (Some(before), Some(finding)) = (base.findings.get(old), report.findings.get_mut(now)) else {
            continue;
        };
        if finding.is_open() {
            finding.standing = Standing::Inherited;
            finding.evidence.push(moved_from(before));
        }
    }
    for &(old, now) in &pairing.same {
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
            // A limit holds for what is, whatever was before.
            None if finding.group == Group::Budget => {}
            None => finding.standing = Standing::Inherited,
        }
    }
    tell_what_has_gone(report, base, pairing, tolerance);
}

/// Says beside what is new which finding of the base has gone and is like it. Each that has gone stands for one: a second finding is
/// new, whatever it is called.
fn tell_what_has_gone(report: &mut Report, base: &Report, pairing: Pairing, tolerance: &Tolerance) {
    let mut gone: Vec<&Finding> = pairing.gone.into_iter().filter_map(|old| base.findings.get(old)).collect();
    for now in pairing.new {
        let Some(finding) = report.findings.get_mut(now) else { continue };
        let is_like = |old: &&Finding| {
            old.rule == finding.rule && Mark::of(finding).worse_than(&Mark::of(old), tolerance).is_none()
        };
        if let Some(old) = gone.iter().position(is_like).map(|place| gone.remove(place)) {
            finding.evidence.push(perhaps_renamed(old));
        }
    }
}

/// Says where the base has a finding, under another name.
fn moved_from(old: &Finding) -> Measure {
    let place = old.whereabouts();
    Measure {
        name: "moved-in-base".into(),
        text: format!("in the base at {place}: only the name is another"),
        value: Quantity::Text(place),
    }
}

/// Says of a finding that it may be one of the base under another name, in code that was edited, too.
fn perhaps_renamed(old: &Finding) -> Measure {
    let place = old.whereabouts();
    Measure {
        name: "gone-from-base".into(),
        text: format!(
            "the base has one like it, no smaller, at {place}, which is gone: if that was only renamed, this is no new fault, \
             and not told any more once it is merged"
        ),
        value: Quantity::Text(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Fingerprint, Impact, Location, Severity};
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
        inherit(&mut head, &report(&[10, 10]), &Moves::default(), &Tolerance::default());
        let standings: Vec<&Standing> = head.findings.iter().map(|finding| &finding.standing).collect();
        assert_eq!(standings, [&Standing::Open, &Standing::Inherited, &Standing::Inherited]);
        assert!(head.findings[0].evidence.is_empty(), "both of the base are taken");
        let mut head = report(&[40]);
        inherit(&mut head, &report(&[10]), &Moves::default(), &Tolerance::default());
        assert_eq!(head.findings[0].evidence[0].text, "10 MiB per iteration in the base, now 40 MiB");
    }

    #[test]
    fn a_limit_is_not_waived_by_a_base_that_passes_it_too() {
        let passed = || {
            let budget = Finding::of("budget.card", Group::Budget, Severity::Error);
            Report { findings: vec![budget], ..Report::default() }
        };
        let mut head = passed();
        inherit(&mut head, &passed(), &Moves::default(), &Tolerance::default());
        assert_eq!(head.findings[0].standing, Standing::Open);
    }

    #[test]
    fn what_may_have_been_renamed_is_new_and_says_so() {
        let called = |function: &str, rate: u64| {
            let mut report = report(&[rate]);
            let finding = &mut report.findings[0];
            let (file, function) = ("/a/train.py".to_owned(), function.to_owned());
            finding.location = Some(Location { file, line: 39, function });
            finding.fingerprint = Fingerprint::of(finding);
            report
        };
        let settled = |rate| {
            let mut head = called("train", rate);
            inherit(&mut head, &called("main", 10), &Moves::default(), &Tolerance::default());
            assert_eq!(head.findings[0].standing, Standing::Open);
            head.findings[0].evidence.clone()
        };
        assert!(settled(10)[0].text.contains("train.py:39 in main, which is gone"));
        assert!(settled(40).is_empty(), "larger, so it is not only the name");
    }
}
