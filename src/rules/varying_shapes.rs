//! Allocations that have another size in each iteration, so that no cached block fits.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Facts, Shapes, VaryingSite};
use crate::finding::{Finding, Impact, Related, Severity, Value};
use crate::unit::{AllocationId, Bytes, Confidence, count, percent};

declare_rule! {
    /// The same lines allocate another size in each iteration.
    VaryingShapes = "varying-shapes", Allocator, Warning,
    needs: [History, Stacks, Iterations],
    summary: "the same lines allocate another size in each iteration",
}

/// The share of what the loop allocates that has to vary. Programs with varying batches reach 87 to 100 %, others 0 to 5 %.
const SHARE: f64 = 0.5;
/// The share of reserved memory that lies idle at the peak from which varying sizes are worth a change: 22 to 60 % where
/// nothing is done about them; 2 % with segments that grow.
const COST: f64 = 0.15;
/// Below this nobody pads for it.
const NOTED: Bytes = Bytes(256 << 20);

impl VaryingShapes {
    fn detect(facts: &Facts) -> Vec<Finding> {
        let shapes = facts.shapes();
        let varying: Bytes = shapes.varying.iter().map(|site| site.bytes).sum();
        let share = varying.share_of(shapes.total);
        let heaviest = shapes.varying.iter().max_by_key(|site| site.sizes.last().copied());
        match heaviest {
            Some(heaviest) if share >= SHARE => vec![report(facts, &shapes, heaviest, share)],
            _ => Vec::new(),
        }
    }
}

fn report(facts: &Facts, shapes: &Shapes, heaviest: &VaryingSite, share: f64) -> Finding {
    let message = format!("{} of what the loop allocates has another size each time", percent(share));
    let help = if facts.snapshot.settings.expandable_segments {
        "pad batches to a few fixed lengths, so that cached blocks fit again"
    } else {
        "pad batches to a few fixed lengths, or set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    };
    let mut finding = VaryingShapes::META.finding(facts, message, help);
    let pool = facts.default_pool();
    // What was held before the recording may have been in use then: it is given the benefit of the doubt.
    let idle = pool.reserved - pool.active.max(pool.held_before);
    if idle.share_of(pool.reserved) < COST || idle < NOTED {
        finding.severity = Severity::Info;
    }
    finding.confidence = Confidence::High;
    let allocations: Vec<AllocationId> =
        shapes.varying.iter().flat_map(|site| site.allocations.iter().copied()).collect();
    let blamed = facts.blame().narrowest(&facts.guilty(allocations)).or_else(|| facts.site(heaviest.stack));
    finding.location = blamed.and_then(|frame| place(facts, frame));
    "what this line allocates differs in size each time".clone_into(&mut finding.label);
    let passes =
        |site: &&VaryingSite| blamed.is_some_and(|frame| facts.code.python(site.stack).contains(&frame));
    let example = shapes.varying.iter().filter(passes).max_by_key(|site| site.bytes).unwrap_or(heaviest);
    finding.stack = shown(facts, example.stack);
    finding
        .related
        .extend(entry(facts, shapes).filter(|entry| Some(&entry.location) != finding.location.as_ref()));
    finding.impact = Impact { reserved: Some(idle), ..Impact::default() };
    finding.evidence = evidence(heaviest, idle, share);
    finding
}

/// Where the first varying size comes in: usually the batch.
fn entry(facts: &Facts, shapes: &Shapes) -> Option<Related> {
    let location = shapes.varying.iter().find_map(|site| place(facts, facts.site(site.stack)?))?;
    Some(Related { location, message: "the first size of an iteration that varies".to_owned() })
}

fn evidence(heaviest: &VaryingSite, idle: Bytes, share: f64) -> Vec<crate::finding::Measure> {
    let smallest = heaviest.sizes.first().copied().unwrap_or_default();
    let largest = heaviest.sizes.last().copied().unwrap_or_default();
    vec![
        measure("share", Value::Ratio(share), format!("{} of the bytes the loop allocates", percent(share))),
        measure(
            "sizes",
            Value::Count(heaviest.sizes.len() as u64),
            format!(
                "{} in {} under one stack",
                count(heaviest.sizes.len(), "different size"),
                count(heaviest.iterations, "iteration")
            ),
        ),
        measure("smallest", Value::Bytes(smallest), format!("from {smallest}")),
        measure("largest", Value::Bytes(largest), format!("to {largest}")),
        measure("idle", Value::Bytes(idle), format!("{idle} reserved beyond what was ever in use")),
    ]
}
