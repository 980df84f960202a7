//! Forward passes that keep activations for a backward pass that never comes.

use super::{declare_rule, measure, place, shown};
use crate::facts::{Facts, UnusedGraph};
use crate::finding::{Finding, Impact, Severity, Value};
use crate::unit::{Confidence, count, percent};

declare_rule! {
    /// Autograd keeps activations although no backward pass follows.
    ActivationsWithoutBackward = "activations-without-backward", Peak, Warning,
    needs: [History, Stacks],
    summary: "autograd keeps activations although no backward pass follows",
}

/// The share of the peak that leaving autograd out has to save for a warning.
const SAVED: f64 = 0.05;
/// The share of the peak that one pass has to keep to be worth a note where the peak lies elsewhere.
const KEPT: f64 = 0.1;
/// One-layer models, known by C++ frames alone: the frames prove it, so little is enough.
const SAVED_BY_PROOF: f64 = 0.02;

impl ActivationsWithoutBackward {
    fn detect(facts: &Facts) -> Vec<Finding> {
        facts.unused_graphs().iter().filter_map(|graph| report(facts, graph)).collect()
    }
}

fn report(facts: &Facts, graph: &UnusedGraph) -> Option<Finding> {
    let steady = facts.steady();
    let saved = graph.changes.saving(facts.timeline);
    let saved_later = graph.changes.saving_within(facts.timeline, steady.events.clone());
    let share = saved.share_of(facts.peak()).max(saved_later.share_of(steady.peak));
    let kept = graph.most.share_of(steady.peak);
    let warns = share >= SAVED || (graph.seen_in_frames && share >= SAVED_BY_PROOF);
    if !warns && kept < KEPT {
        return None;
    }
    let message = format!("{} of activations are kept, but no backward follows", graph.most);
    let help = "run it without autograd: with torch.inference_mode(): (or @torch.no_grad() on the function)";
    let mut finding = ActivationsWithoutBackward::META.finding(facts, message, help);
    if !warns {
        finding.severity = Severity::Info;
    }
    finding.confidence = if graph.calls >= 2 { Confidence::High } else { Confidence::Medium };
    finding.location = place(facts, graph.line);
    finding.label = format!("autograd saves {} in one pass here", graph.most);
    if let Some(stack) = graph.stack {
        finding.stack = shown(facts, stack);
    }
    let first = graph.kept.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    finding.phase = first.map(|event| facts.phase(event)).unwrap_or_default();
    finding.evidence = vec![
        measure(
            "passes",
            Value::Count(graph.calls as u64),
            format!("{} kept {} in all", count(graph.calls, "pass"), count(graph.kept.len(), "tensor")),
        ),
        measure("kept-by-one-pass", Value::Bytes(graph.most), format!("up to {} at once", graph.most)),
        measure("share-of-peak", Value::Ratio(share), format!("{} of the peak", percent(share))),
    ];
    finding.impact = Impact { peak: Some(saved), ..Impact::default() };
    Some(finding)
}
