//! Findings that only moved: a file or a function has another name, and all else is as it was.
//!
//! In: what both recordings show of the program. Out: pairs of findings that have another fingerprint for their names alone.
//! Always: the old name is gone and the new one was not there before; a function's lines lie as far apart as they did, so that
//! one that was written anew is not taken for it; what has grown is no pair, and neither is a second one.

use super::measured::Measured;
use super::names::{NameMatches, PlacesByFile};
use crate::finding::{Finding, Location, Mark, Pairing, Tolerance, as_written};

/// What has another name in the head than in the base.
#[derive(Debug, Clone, Default)]
pub struct Moves {
    names: NameMatches,
}

impl Moves {
    /// Compares what the recordings of both show.
    pub fn of<'a>(
        base: impl IntoIterator<Item = &'a Measured>,
        head: impl IntoIterator<Item = &'a Measured>,
    ) -> Moves {
        Moves { names: NameMatches::of(&places(base), &places(head)) }
    }

    /// Takes the pairs that only moved, and are no worse, out of what is new and what has gone; as (known, found).
    pub fn take(
        &self,
        pairing: &mut Pairing,
        known: &[Finding],
        found: &[Finding],
        tolerance: &Tolerance,
    ) -> Vec<(usize, usize)> {
        let mut moved = Vec::new();
        let Pairing { gone, new, .. } = pairing;
        new.retain(|&now| {
            let Some(head) = found.get(now) else { return true };
            let is_same = |old: &usize| {
                let no_worse =
                    |base: &Finding| Mark::of(head).worse_than(&Mark::of(base), tolerance).is_none();
                known.get(*old).is_some_and(|base| self.only_moved(base, head) && no_worse(base))
            };
            let taken = gone.iter().position(is_same).map(|place| gone.remove(place));
            moved.extend(taken.map(|old| (old, now)));
            taken.is_none()
        });
        moved
    }

    /// Whether two findings of one rule are made of the same lines under other names.
    fn only_moved(&self, base: &Finding, head: &Finding) -> bool {
        let (old, now) = (base.known_by(), head.known_by());
        base.rule == head.rule
            && !old.is_empty()
            && old.len() == now.len()
            && old.iter().zip(&now).all(|(old, now)| self.is_same_function(old, now))
    }

    fn is_same_function(&self, old: &Location, now: &Location) -> bool {
        let (file, function) = self.names.in_base(now);
        self.names.file_alone(&now.file).is_some()
            && file == old.file
            && function == as_written(&old.function)
    }
}

fn places<'a>(of: impl IntoIterator<Item = &'a Measured>) -> PlacesByFile {
    let devices = of.into_iter().flat_map(|measured| &measured.devices);
    PlacesByFile::of(devices.flat_map(|device| &device.sites))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Line = (&'static str, &'static str, u32);

    fn location((file, function, line): Line) -> Location {
        Location { file: file.to_owned(), line, function: function.to_owned() }
    }

    /// Whether the first line of the base is the first of the head.
    fn same(base: &[Line], head: &[Line]) -> bool {
        let places = |lines: &[Line]| {
            let mut places = PlacesByFile::default();
            for line in lines {
                places.add(&location(*line));
            }
            places
        };
        let moves = Moves { names: NameMatches::of(&places(base), &places(head)) };
        moves.is_same_function(&location(base[0]), &location(head[0]))
    }

    #[test]
    fn a_function_with_another_name_is_the_same_where_its_lines_are() {
        let base = [("/a/t.py", "train", 10), ("/a/t.py", "train", 12)];
        assert!(same(&base, &[("/b/t.py", "fit", 14), ("/b/t.py", "fit", 16)]), "moved down");
        assert!(!same(&base, &[("/b/t.py", "fit", 10), ("/b/t.py", "fit", 13)]), "edited");
        assert!(
            !same(&base, &[("/b/t.py", "fit", 10), ("/b/t.py", "fit", 12), ("/b/t.py", "train", 30)]),
            "still there"
        );
        assert!(!same(&base[..1], &[("/a/t.py", "fit", 11)]), "one line alone may be any");
        assert!(same(&base[..1], &[("/a/t.py", "fit", 10)]));
        let both = [("/a/t.py", "train", 10), ("/a/t.py", "train", 12), ("/a/t.py", "fit", 30)];
        assert!(!same(&both, &[("/a/t.py", "fit", 10), ("/a/t.py", "fit", 12)]), "it was there before");
    }

    #[test]
    fn a_file_that_two_are_taken_for_is_neither() {
        let base = [("/a/x/__init__.py", "run", 1), ("/a/x/__init__.py", "run", 2)];
        let moved = [("/a/y/__init__.py", "run", 1), ("/a/y/__init__.py", "run", 2)];
        assert!(same(&base, &moved));
        assert!(!same(&base, &[moved[0], moved[1], base[0], base[1]]));
    }

    #[test]
    fn a_file_with_another_name_is_the_same_where_all_its_lines_are() {
        let base = [("/a/train.py", "run", 10), ("/a/train.py", "main", 22)];
        assert!(same(&base, &[("/a/trainer.py", "run", 11), ("/a/trainer.py", "main", 23)]));
        assert!(!same(&base, &[("/a/trainer.py", "run", 11), ("/a/trainer.py", "main", 24)]));
    }
}
