//! Which blocks take the place of which.
//!
//! In: the lines that make blocks of the model's sizes, and what is settled. Out: for each line the role of what goes as its blocks
//! come. What a program binds anew goes in the order in which its successors came, the last one first: one by one (`m = b * m + g`),
//! or all at once, when the list that held them is dropped. So every block that goes is held against the youngest of the same
//! turn whose place is not taken.

use super::super::Role;
use super::super::scene::Scene;
use super::Lines;
use super::changes::{Party, Transition};
use crate::unit::Bytes;

/// How many bytes of each line take the place of weights, of states, and of blocks of an older line.
#[derive(Default)]
struct ReplacedBytes {
    weights: Bytes,
    states: Bytes,
    older: Vec<(usize, Bytes)>,
}

/// The role of what each line's blocks take the place of, where most of it has one.
pub(super) fn find(scene: &Scene<'_>, changes: &[Transition], lines: &Lines) -> Vec<Option<Role>> {
    let mut replaced: Vec<ReplacedBytes> = lines.all.iter().map(|_| ReplacedBytes::default()).collect();
    let mut open: Vec<(usize, &Transition)> = Vec::new();
    for change in changes {
        let turn = scene.turn(change.at);
        if change.comes {
            open.push((turn, change));
            continue;
        }
        // What goes after the last backward pass makes room for nothing that is trained.
        if scene.last_backward.is_some_and(|last| change.at > last) {
            break;
        }
        let Some((_, successor)) = open.pop_if(|(since, _)| *since == turn) else { continue };
        let Party::Line(line) = successor.kind else { continue };
        let Some(replaced) = replaced.get_mut(line) else { continue };
        match change.kind {
            Party::Settled(Role::Parameter) => replaced.weights += successor.bytes,
            Party::Settled(_) => replaced.states += successor.bytes,
            Party::Line(older) if older < line => replaced.older.push((older, successor.bytes)),
            Party::Line(_) => {}
        }
    }
    let mut kinds: Vec<Option<Role>> = Vec::new();
    for (line, mut replaced) in lines.all.iter().zip(replaced) {
        for (older, bytes) in replaced.older {
            match kinds.get(older).copied().flatten() {
                Some(Role::Parameter) => replaced.weights += bytes,
                Some(Role::OptimizerState) => replaced.states += bytes,
                _ => {}
            }
        }
        let (role, most) = if replaced.weights >= replaced.states {
            (Role::Parameter, replaced.weights)
        } else {
            (Role::OptimizerState, replaced.states)
        };
        // In one turn at least: afterwards it takes the place of what it made itself.
        let mostly = most.times(2 * line.turns.len() as u64) >= line.bytes;
        kinds.push(mostly.then_some(role));
    }
    kinds
}
