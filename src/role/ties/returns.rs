//! What was taken out and comes back.
//!
//! In: what comes and goes of the model's sizes. Out: for each line the role of what was missing when its blocks came in the same
//! sizes: states that sleep in host memory while a policy generates, weights that wait there for their turn. What comes back may go
//! and come back again.

use rustc_hash::FxHashMap;

use super::super::Role;
use super::changes::{Party, Transition};
use super::{Lines, is_nearly_all};
use crate::unit::Bytes;

/// The roles of which blocks are missed: states first, since other evidence tells weights as well.
const MISSED: [Role; 2] = [Role::OptimizerState, Role::Parameter];

/// By line and size: in which roles it brought what is still there.
type Back = FxHashMap<(usize, Bytes), Vec<Role>>;

/// The role of what each line brings back, where nearly all that it makes was missed.
pub(super) fn find(changes: &[Transition], lines: &Lines) -> Vec<Option<Role>> {
    let mut missing: FxHashMap<(Role, Bytes), usize> = FxHashMap::default();
    let mut back = Back::default();
    let mut brought: FxHashMap<(usize, Role), Bytes> = FxHashMap::default();
    for Transition { comes, kind, bytes, .. } in changes {
        let is_missed = |role: &Role| missing.get(&(*role, *bytes)).is_some_and(|missing| *missing > 0);
        let role = match kind {
            Party::Settled(role) => {
                // What is made though it is not missed was not back: what came before it was something else.
                if *comes && MISSED.contains(role) && !is_missed(role) {
                    take_back(&mut back, &mut brought, *role, *bytes);
                }
                Some(*role)
            }
            Party::Line(line) if *comes => MISSED.into_iter().find(is_missed).inspect(|role| {
                back.entry((*line, *bytes)).or_default().push(*role);
                *brought.entry((*line, *role)).or_default() += *bytes;
            }),
            Party::Line(line) => back.get_mut(&(*line, *bytes)).and_then(Vec::pop),
        };
        let Some(role) = role else { continue };
        let missing = missing.entry((role, *bytes)).or_default();
        *missing = if *comes { missing.saturating_sub(1) } else { *missing + 1 };
    }
    let brings = |at: usize, all: Bytes| {
        let nearly_all =
            |role: &Role| brought.get(&(at, *role)).is_some_and(|part| is_nearly_all(*part, all));
        MISSED.into_iter().find(nearly_all)
    };
    lines.all.iter().enumerate().map(|(at, line)| brings(at, line.bytes)).collect()
}

/// Counts one block less as brought back in a role, if any line brought one of that size.
fn take_back(back: &mut Back, brought: &mut FxHashMap<(usize, Role), Bytes>, role: Role, bytes: Bytes) {
    let lines = back.iter_mut().filter(|((_, size), roles)| *size == bytes && roles.contains(&role));
    let Some((&(line, _), roles)) = lines.min_by_key(|((line, _), _)| *line) else { return };
    if let Some(at) = roles.iter().rposition(|one| *one == role) {
        roles.remove(at);
    }
    if let Some(part) = brought.get_mut(&(line, role)) {
        *part -= bytes;
    }
}
