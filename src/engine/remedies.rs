//! What every finding of a device would change if it were mended.

use super::examination::run;
use super::{Device, Input, Plan, threads};
use crate::finding::Fingerprint;
use crate::rules::{self, Rule};
use crate::verdict::{self, Told};

/// The findings of all rules about a device, advice included, with their identities and with what mending them does to
/// lifetimes; none where nothing was recorded of it. A configuration has no say in it.
pub fn remedies(input: &Input, device: &Device) -> Vec<Told> {
    let Some(facts) = device.facts(&input.snapshot, &input.frames) else { return Vec::new() };
    let plan = Plan::of_rules(rules::RULES);
    let asked: Vec<&dyn Rule> = plan.asked();
    // A rule that cannot judge claims nothing here; `memlint check` says so.
    let claims = threads::each(&asked, |rule| run(*rule, &facts).0).into_iter().flatten();
    let claims: Vec<_> = claims.collect();
    let mut told = verdict::settle(&facts, &claims, &plan.materiality, plan.capacity);
    for one in &mut told {
        one.finding.fingerprint = Fingerprint::of(&one.finding);
    }
    told
}
