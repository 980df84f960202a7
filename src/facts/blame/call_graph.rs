//! The calls between the frames that carry enough of a weight, and the innermost that all of it passes.
//!
//! In: paths of frames, outermost first. Out: the frame that dominates the ends of all paths.

use petgraph::algo::{dominators::simple_fast, tarjan_scc};
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

use crate::unit::FrameId;

/// The call graph of the frames that carry enough.
pub(super) struct CallGraph {
    graph: DiGraph<Option<FrameId>, ()>,
    nodes: FxHashMap<FrameId, NodeIndex>,
    root: NodeIndex,
}

impl CallGraph {
    pub(super) fn new() -> CallGraph {
        let mut graph = DiGraph::new();
        let root = graph.add_node(None);
        CallGraph { graph, nodes: FxHashMap::default(), root }
    }

    /// Adds the calls of a stack, outermost first.
    pub(super) fn add(&mut self, path: &[FrameId]) {
        let mut from = self.root;
        for frame in path {
            let graph = &mut self.graph;
            let node = *self.nodes.entry(*frame).or_insert_with(|| graph.add_node(Some(*frame)));
            graph.update_edge(from, node, ());
            from = node;
        }
    }

    /// The innermost frame through which every way to an end goes. What calls only one another in turns is an end together.
    pub(super) fn dominating_the_ends(mut self) -> Option<FrameId> {
        let components = tarjan_scc(&self.graph);
        let mut component_of = vec![0; self.graph.node_count()];
        for (number, component) in components.iter().enumerate() {
            for node in component {
                if let Some(of) = component_of.get_mut(node.index()) {
                    *of = number;
                }
            }
        }
        let is_within =
            |from: NodeIndex, to: NodeIndex| component_of.get(from.index()) == component_of.get(to.index());
        let calls_no_other = |component: &Vec<NodeIndex>| {
            component.iter().all(|node| self.graph.neighbors(*node).all(|next| is_within(*node, next)))
        };
        let ends: Vec<NodeIndex> = components.into_iter().filter(calls_no_other).flatten().collect();
        let sink = self.graph.add_node(None);
        for end in ends {
            self.graph.update_edge(end, sink, ());
        }
        let dominators = simple_fast(&self.graph, self.root);
        dominators.dominators(sink)?.find_map(|node| self.graph.node_weight(node).copied().flatten())
    }
}
