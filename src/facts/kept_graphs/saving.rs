//! What autograd saves of a pass, as other passes show it.
//!
//! In: lives of forward passes. Out: for each whether its line makes what a backward pass lets go of in passes of other callers. A pass
//! that drops what those save, and keeps what they do not, is recorded by no autograd: its results stay because something holds them
//! (the posterior of a Gaussian process under `no_grad`).

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::lives::{GraphEnd, GraphLife, ModelCaller, Saving};
use crate::facts::released::ReleasedShare;
use crate::unit::{Bytes, FrameId};

/// How many callers that a backward pass goes through save what a line makes, and how many do not.
#[derive(Default)]
struct Callers {
    saving: usize,
    dropping: usize,
}

/// Marks what the lines save in passes of other callers.
pub(super) fn mark_saving(lives: &mut [GraphLife]) {
    let mut made: BTreeMap<(FrameId, ModelCaller), ReleasedShare> = BTreeMap::new();
    let mut differentiated: FxHashSet<ModelCaller> = FxHashSet::default();
    for life in lives.iter() {
        let Some(place) = life.innermost.zip(life.caller) else { continue };
        let is_released = life.end == GraphEnd::Released;
        made.entry(place).or_default().note(life.bytes, is_released);
        if is_released {
            differentiated.insert(place.1);
        }
    }
    made.retain(|(_, caller), _| differentiated.contains(caller));
    let mut lines: FxHashMap<FrameId, Callers> = FxHashMap::default();
    for ((line, _), at) in &made {
        let callers = lines.entry(*line).or_default();
        *(if at.saves() { &mut callers.saving } else { &mut callers.dropping }) += 1;
    }
    for life in lives.iter_mut() {
        let Some(place) = life.innermost.zip(life.caller) else { continue };
        let Some(callers) = lines.get(&place.0) else { continue };
        let own = made.get(&place).map(ReleasedShare::saves);
        life.saving = if callers.saving > usize::from(own == Some(true)) {
            Saving::Saved
        } else if callers.dropping > usize::from(own == Some(false)) {
            Saving::Dropped
        } else {
            Saving::Unseen
        };
    }
}

/// What stays of a pass and what goes, by what other passes save.
#[derive(Debug, Default)]
pub(super) struct Weighed {
    /// What stays of what they save, and of what they drop.
    stays: Bytes,
    stays_beside: Bytes,
    /// What goes of what they save, though no backward pass lets go of it.
    goes: Bytes,
}

impl Weighed {
    pub(super) fn note(&mut self, life: &GraphLife, stays: bool) {
        match life.saving {
            Saving::Saved if stays => self.stays += life.bytes,
            Saving::Saved if life.end != GraphEnd::Released => self.goes += life.bytes,
            Saving::Dropped if stays => self.stays_beside += life.bytes,
            _ => {}
        }
    }

    /// Whether no graph is kept: a graph is made of what passes save.
    pub(super) fn is_plain(&self) -> bool {
        self.goes > self.stays && self.stays_beside > self.stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Phase;
    use crate::unit::{AllocationId, Index};

    /// What a line makes for a caller, 1 MiB, how it ends and whether it stays.
    fn life(line: usize, caller: usize, end: GraphEnd, stays: bool) -> GraphLife {
        GraphLife {
            id: AllocationId::at(line).unwrap(),
            bytes: Bytes::MIB,
            born: 0,
            dies: if stays { usize::MAX } else { 1 },
            caller: FrameId::at(caller).map(|frame| ModelCaller { frame, way: caller }),
            in_module: true,
            place: line,
            line,
            operator: None,
            innermost: FrameId::at(line),
            function: None,
            phase: Phase::Forward,
            like_a_weight: false,
            end,
            in_hook: false,
            saving: Saving::Unseen,
        }
    }

    /// Whether a pass of caller 1 is plain, beside a pass of caller 0 that saves what line 0 makes and drops what line 1 does.
    fn is_plain(pass: &[(usize, bool)]) -> bool {
        let mut lives = vec![life(0, 0, GraphEnd::Released, false), life(1, 0, GraphEnd::Scratch, false)];
        lives.extend(pass.iter().map(|(line, stays)| life(*line, 1, GraphEnd::Plain, *stays)));
        mark_saving(&mut lives);
        let mut weighed = Weighed::default();
        lives.iter().skip(2).for_each(|life| weighed.note(life, life.dies == usize::MAX));
        weighed.is_plain()
    }

    #[test]
    fn a_pass_that_drops_what_others_save_keeps_no_graph() {
        assert!(is_plain(&[(0, false), (1, true)]));
        assert!(!is_plain(&[(0, true), (1, true)]), "a graph, and its output");
        assert!(!is_plain(&[(0, true), (0, false), (1, true)]), "a graph of a part of the model");
        assert!(!is_plain(&[(0, false), (2, true)]), "what no other pass makes says nothing");
    }
}
