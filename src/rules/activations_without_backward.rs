//! Forward passes that keep activations for a backward pass that never comes.

use rustc_hash::FxHashSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth};
use super::{declare_rule, measure, place};
use crate::facts::{Facts, Trained, UnusedGraph};
use crate::finding::{Finding, Quantity, Severity};
use crate::unit::{AllocationId, Bytes, Confidence, count, percent, shown_name};

declare_rule! {
    /// Autograd keeps activations although no backward pass follows.
    ActivationsWithoutBackward = "activations-without-backward", Peak, Warning,
    needs: [History, Stacks],
    summary: "autograd keeps activations although no backward pass follows",
}

impl ActivationsWithoutBackward {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let retained = facts.kept_graphs().iter().filter(|graph| !graph.for_nothing);
        let kept = retained.flat_map(|graph| graph.kept.iter().chain(&graph.along));
        let kept: FxHashSet<AllocationId> = kept.copied().collect();
        let unused = facts.unused_graphs().iter();
        unused.filter(|graph| !is_retained(facts, graph, &kept)).map(|graph| claim(facts, graph)).collect()
    }
}

/// Whether most of it is kept over iterations, and is among what kept graphs hold: `retained-graph` says so, and what to do.
fn is_retained(facts: &Facts, graph: &UnusedGraph, kept: &FxHashSet<AllocationId>) -> bool {
    let stays =
        |id: &&AllocationId| facts.timeline.allocation(**id).is_some_and(|one| facts.ends_held(one) > 1);
    graph.kept.iter().filter(|id| kept.contains(id)).filter(stays).count() * 2 > graph.kept.len()
}

fn claim<'f>(facts: &'f Facts<'f>, graph: &'f UnusedGraph) -> Claim<'f> {
    let about = graph.kept.iter().copied();
    let mending = Mending::lives(graph.changes.clone());
    let told = move |worth: &Worth| tell(facts, graph, worth);
    let claim = Claim::new(&ActivationsWithoutBackward::META, about, mending, told);
    let claim = claim.holding(stands(facts, graph)).by_itself();
    match graph.sure {
        true if graph.calls >= 2 => claim.sure(Confidence::High),
        true => claim.sure(Confidence::Medium),
        // Its backward pass may come after the recording.
        false => claim.sure(Confidence::Low).at_most(Severity::Info),
    }
}

/// The most that stands at one time: of one pass, or of all that are kept side by side.
fn stands(facts: &Facts, graph: &UnusedGraph) -> Bytes {
    graph.changes.at_once(facts.timeline).max(graph.most)
}

/// Where autograd can be switched off without taking it from training: a decorator reaches all passes of its function. (What
/// `inference_mode` computes, no backward pass takes for its input.)
fn remedy(facts: &Facts, graph: &UnusedGraph) -> String {
    let function = place(facts, graph.line).map(|place| place.function).unwrap_or_default();
    let is_named = !function.is_empty() && !function.starts_with('<');
    match graph.trained {
        Trained::Nowhere if is_named => {
            "run it without autograd: with torch.inference_mode(): (or @torch.no_grad() on the function)".to_owned()
        }
        Trained::Nowhere => "run it without autograd: with torch.inference_mode():".to_owned(),
        Trained::AtLine if is_named => format!(
            "run it without autograd where nothing is trained: with torch.no_grad(): around those \
             calls of {}() (training uses this line, too)",
            shown_name(&function)
        ),
        Trained::AtLine => "run it without autograd where nothing is trained: with torch.no_grad(): (training uses this line, too)".to_owned(),
        Trained::InFunction if is_named => {
            "run it without autograd: with torch.no_grad(): around this line alone (its function trains, too)".to_owned()
        }
        Trained::InFunction => "run it without autograd: with torch.no_grad(): around this line alone".to_owned(),
    }
}

fn tell(facts: &Facts, graph: &UnusedGraph, worth: &Worth) -> Finding {
    let first = graph.kept.first().and_then(|id| facts.timeline.allocation(*id)?.alloc);
    let stands = stands(facts, graph);
    let telling = Telling {
        message: format!("{stands} of activations are kept, but no backward follows"),
        help: remedy(facts, graph),
        place: Anchor::At(graph.line, graph.stack, first),
        label: format!("autograd saves {} in one pass here", graph.most),
        related: Vec::new(),
        evidence: vec![
            measure(
                "passes",
                Quantity::Count(graph.calls as u64),
                format!("{} kept {} in all", count(graph.calls, "pass"), count(graph.kept.len(), "tensor")),
            ),
            measure(
                "kept-by-one-pass",
                Quantity::Bytes(graph.most),
                format!("up to {} of one pass", graph.most),
            ),
            measure(
                "share-of-peak",
                Quantity::Ratio(worth.share),
                format!("{} of the peak", percent(worth.share)),
            ),
        ],
    };
    telling.told(facts, &ActivationsWithoutBackward::META, worth)
}
