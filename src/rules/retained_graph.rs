//! Forward passes whose activations stay, because something keeps their autograd graph.

mod place;

use rustc_hash::FxHashSet;

use super::claim::{Anchor, Claim, Mending, Telling, Worth, related};
use super::{declare_rule, measure};
use crate::facts::{Facts, KeptGraph};
use crate::finding::{Finding, Measure, Quantity, Related, Severity};
use crate::lives::{Change, Changes, Curve};
use crate::program::Phase;
use crate::threshold::Threshold;
use crate::unit::{AllocationId, Bytes, Confidence, EventIndex, FrameId, Index, count, grouped};

declare_rule! {
    /// Every forward pass leaves its activations behind.
    RetainedGraph = "retained-graph", Leak, Error,
    needs: [History, Stacks],
    summary: "every forward pass leaves its activations behind",
}

/// So many passes that keep what autograd saved prove it: fewer may be meant.
static MANY: Threshold<usize> = Threshold::new("rules::retained_graph::MANY", 4);

impl RetainedGraph {
    fn claims<'f>(facts: &'f Facts<'f>) -> Vec<Claim<'f>> {
        let seen = facts.bursts().iter().filter(|burst| burst.seen.is_some());
        let garbage: FxHashSet<AllocationId> = seen.flat_map(|burst| &burst.past).copied().collect();
        let graphs = facts.kept_graphs().iter().filter(|graph| !is_collected(facts, graph, &garbage));
        // What is recorded for nothing `activations-without-backward` tells.
        graphs.filter(|graph| !graph.for_nothing).map(|graph| claim(facts, graph)).collect()
    }
}

/// Whether most of what goes of it goes with the garbage collector: nobody keeps that, as `delayed-free-cycle` says.
fn is_collected(facts: &Facts, graph: &KeptGraph, garbage: &FxHashSet<AllocationId>) -> bool {
    let goes = |id: &&AllocationId| facts.timeline.given_back(**id).is_some();
    let gone = graph.kept.iter().filter(goes).count();
    gone > 0 && graph.kept.iter().filter(|id| garbage.contains(id)).count() * 2 > gone
}

fn claim<'f>(facts: &'f Facts<'f>, graph: &'f KeptGraph) -> Claim<'f> {
    let about = graph.kept.iter().chain(&graph.along).copied();
    let mending = Mending::lives(freed_with_their_pass(facts, graph));
    let mut claim = Claim::new(&RetainedGraph::META, about, mending, move |worth| tell(facts, graph, worth));
    claim.pace = graph.growth.as_ref().map(|growth| Bytes::rounded(growth.slope));
    claim.held = Some(held(facts, graph));
    // One pass that is kept does not grow, and may be meant; what comes to a result and passes fills no device.
    claim.at_most = if graph.others > 0 || graph.passing { Severity::Warning } else { Severity::Error };
    claim.sure(if graph.passes >= MANY.get() { Confidence::High } else { Confidence::Medium })
}

/// The most that is kept at one time.
fn held(facts: &Facts, graph: &KeptGraph) -> Bytes {
    let mut curve = Curve::default();
    for one in graph.kept.iter().filter_map(|id| facts.timeline.allocation(*id)) {
        curve.add(one.alloc.map_or(0, Index::position), one.given_back().map(Index::position), one.bytes);
    }
    curve.highest().0
}

fn tell(facts: &Facts, graph: &KeptGraph, worth: &Worth) -> Finding {
    let held = held(facts, graph);
    let each = Bytes(facts.bytes(&graph.kept).get() / graph.passes.max(1) as u64);
    let backward = ran_backward(facts, graph);
    let nodes = facts.savers(&graph.kept);
    // Where a backward pass frees tensors like them, nobody asked it to retain the graph.
    let help = match (backward, nodes.is_empty()) {
        _ if graph.others > 0 => {
            "keep what outlives the step without its graph: self.first = loss.detach() (or loss.item())"
        }
        (true, true) if graph.retaining => {
            "drop retain_graph=True where it is set, and keep numbers or detached tensors: log.append(loss.item()); \
             h = h.detach()"
        }
        (true, true) => {
            "keep what outlives the step without its graph: store x.detach(), log loss.item(); run a pass that no backward pass \
             needs under `with torch.no_grad():`"
        }
        (true, false) => "keep what outlives the step without its graph: store x.detach(), log loss.item()",
        (false, _) => {
            "keep numbers: total += loss.item(); run passes without a backward under `with torch.no_grad():`"
        }
    };
    let through = graph.kept.iter().filter_map(|id| facts.timeline.allocation(*id));
    let first = through.min_by_key(|one| one.alloc);
    let line = place::keeping_line(facts, graph);
    let place = Anchor::At(line, first.and_then(|one| one.stack), first.and_then(|one| one.alloc));
    let telling = Telling {
        message: message(graph, each, held),
        help: help.to_owned(),
        label: match graph.others {
            0 => "the graph of every pass made here is kept".to_owned(),
            _ => "the graph of one pass made here is kept for good".to_owned(),
        },
        related: beside(facts, graph, &place),
        evidence: evidence(graph, (each, held), backward, &nodes),
        place,
    };
    telling.told(facts, &RetainedGraph::META, worth)
}

fn message(graph: &KeptGraph, each: Bytes, held: Bytes) -> String {
    match graph.others {
        0 => format!("{each} of activations stay after every forward pass, up to {held} at once"),
        others => {
            let (passes, all) = (graph.passes, count(graph.passes + others, "forward pass"));
            format!("{held} of activations stay of {passes} of {all}")
        }
    }
}

/// Whether a backward pass was entered under the functions that ran these forward passes, between the first and the last.
fn ran_backward(facts: &Facts, graph: &KeptGraph) -> bool {
    let births = || graph.kept.iter().filter_map(|id| facts.timeline.allocation(*id)?.alloc);
    let Some((first, last)) = births().min().zip(births().max()) else { return false };
    let caller = facts.frames.function(graph.caller);
    let same = |frame: &FrameId| caller.is_some() && facts.frames.function(*frame) == caller;
    let entered = facts.calls.backward_before(last).filter(|_| first < last);
    let phases = facts.program.phases.get(first.position()..last.position()).unwrap_or_default();
    phases.contains(&Phase::Backward)
        && entered.is_some_and(|stack| facts.frames.python(stack).iter().any(same))
}

/// The places of the model that hold most, and where their like goes.
fn beside(facts: &Facts, graph: &KeptGraph, place: &Anchor) -> Vec<Related> {
    let inner = facts.blame().narrowest(&facts.guilty(graph.kept.iter().copied()));
    let healthy = facts.siblings_go(&graph.kept);
    let inner = related(facts, inner, place, "most of what is kept is made under this line");
    let healthy = related(facts, healthy, place, "what other passes made at the same places is freed here");
    inner.into_iter().chain(healthy).collect()
}

fn evidence(
    graph: &KeptGraph,
    (each, held): (Bytes, Bytes),
    backward: bool,
    nodes: &[String],
) -> Vec<Measure> {
    let holder = if !nodes.is_empty() {
        format!(
            "held by the autograd graph: {}, which in other passes frees tensors like them",
            nodes.join(", ")
        )
    } else if backward && graph.retaining {
        "held by the autograd graph, or by what else holds its tensors: backward passes let go of nothing"
            .to_owned()
    } else {
        "held by the autograd graph: no backward pass lets go of them".to_owned()
    };
    let tensors = tensors(graph);
    let mut measures = vec![
        measure("kept-per-pass", Quantity::Bytes(each), format!("{each} a pass")),
        measure("kept", Quantity::Bytes(held), format!("up to {held} at once, {tensors}")),
        measure("passes", Quantity::Count(graph.passes as u64), String::new()),
        measure("held-by", Quantity::Text(holder.clone()), holder),
    ];
    if graph.others > 0 {
        let text = format!("{} others let go of theirs", graph.others);
        measures.push(measure("others", Quantity::Count(graph.others as u64), text));
    }
    measures
}

/// How many tensors it is about: as many as a picture lights up, so what stays beside the activations is told, too.
fn tensors(graph: &KeptGraph) -> String {
    let (kept, passes) = (graph.kept.len(), count(graph.passes, "forward pass"));
    match graph.along.len() {
        0 => format!("{} of {passes} in all", count(kept, "tensor")),
        beside => {
            let all = count(kept + beside, "tensor");
            format!("{all}: {} made in {passes}, {} beside them", grouped(kept), grouped(beside))
        }
    }
}

/// The lifetimes as they would be if each pass's activations went with the turn that made them.
fn freed_with_their_pass(facts: &Facts, graph: &KeptGraph) -> Changes {
    let runs = facts.program.loops.iter();
    let mut ends: Vec<usize> =
        runs.flat_map(|run| (0..run.starts.len()).map(|turn| run.end_of(turn).position())).collect();
    ends.sort_unstable();
    let mut changes = Changes::default();
    let mut end = |id: &AllocationId| {
        let one = facts.timeline.allocation(*id)?;
        let born = one.alloc.map_or(0, Index::position);
        let end = *ends.get(ends.partition_point(|end| *end <= born))?;
        let sooner = one.free.is_none_or(|freed| freed.position() > end);
        changes.set(*id, Change::EndAt(EventIndex::at(end.checked_sub(1)?).filter(|_| sooner)?));
        Some(())
    };
    graph.kept.iter().chain(&graph.along).for_each(|id| _ = end(id));
    changes
}
