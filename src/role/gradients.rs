//! How many gradients there are of each size.
//!
//! In: the scene and what is settled already. Out: counts by size, which say how many parameters of that size are trained.

use rustc_hash::FxHashMap;

use super::scene::Scene;
use super::sizes::Sizes;
use super::{Role, Verdicts};
use crate::unit::Bytes;

/// How many gradients of each size a backward pass deals with.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    /// The most that one pass makes and leaves behind.
    made: Sizes,
    /// The most that one pass adds to gradients that are there, as C++ frames show.
    added: Sizes,
    /// The bytes of what each pass makes and leaves behind.
    passes: FxHashMap<usize, Bytes>,
}

impl Gradients {
    /// Counts those that are settled.
    pub(super) fn of(scene: &Scene<'_>, verdicts: &Verdicts) -> Gradients {
        let mut gradients = Gradients::default();
        let mut passes: FxHashMap<(usize, Bytes, bool), usize> = FxHashMap::default();
        for (life, role) in verdicts.lives(scene) {
            let made = role == Some(Role::Gradient);
            if made || (life.was_added() && life.born().is_some()) {
                let stretch = life.born().map_or(0, |born| scene.stretch(born) + 1);
                let count = passes.entry((stretch, life.bytes(), made)).or_default();
                *count += 1;
                let most = if made { &mut gradients.made } else { &mut gradients.added };
                most.raise(life.bytes(), *count);
                if made && life.born().is_some() {
                    *gradients.passes.entry(stretch).or_default() += life.bytes();
                }
            }
        }
        gradients
    }

    /// Whether a pass makes gradients of a size.
    pub(super) fn makes(&self, bytes: Bytes) -> bool {
        self.made.has(bytes)
    }

    /// How many gradients there are of a size, and so parameters that are trained.
    pub(super) fn of_size(&self, bytes: Bytes) -> usize {
        self.made.of(bytes).max(self.added.of(bytes))
    }

    /// How many gradients of a size stand from before the recording: a pass that clears them makes them anew.
    pub(super) fn standing(&self, bytes: Bytes) -> usize {
        if self.made.has(bytes) { 0 } else { self.added.of(bytes) }
    }

    /// The bytes of what each pass makes and leaves behind, from the least up.
    pub(super) fn passes(&self) -> Vec<Bytes> {
        let mut passes: Vec<Bytes> = self.passes.values().copied().collect();
        passes.sort_unstable();
        passes.dedup();
        passes
    }
}
