//! Which blocks take the place of which.
//!
//! In: the lines that make blocks of the model's sizes, and what is settled. Out: for each line the role of what goes as its blocks
//! come. What a program binds anew goes in the order in which its successors came, the last one first: one by one (`m = b * m + g`),
//! or all at once, when the list that held them is dropped. So every block that goes is held against the youngest of the same
//! turn whose place is not taken.

use super::super::scene::{Life, Scene};
use super::super::{Role, RoleVerdict, Verdicts};
use super::Lines;
use crate::unit::Bytes;

/// What a block is for the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party {
    /// A line made it, and its role is open.
    Line(usize),
    /// A parameter or a state.
    Settled(Role),
}

/// Something of the model's sizes comes or goes.
struct Transition {
    at: usize,
    comes: bool,
    kind: Party,
    bytes: Bytes,
}

/// How many bytes of each line take the place of weights, of states, and of blocks of an older line.
#[derive(Default)]
struct ReplacedBytes {
    weights: Bytes,
    states: Bytes,
    older: Vec<(usize, Bytes)>,
}

/// The role of what each line's blocks take the place of, where most of it has one.
pub(super) fn find(scene: &Scene<'_>, verdicts: &Verdicts, lines: &Lines) -> Vec<Option<Role>> {
    let mut replaced: Vec<ReplacedBytes> = lines.all.iter().map(|_| ReplacedBytes::default()).collect();
    let mut open: Vec<(usize, Transition)> = Vec::new();
    for change in transitions(scene, verdicts, lines) {
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

/// All that comes at work and lasts, and all that goes, in the order of the recording.
fn transitions(scene: &Scene<'_>, verdicts: &Verdicts, lines: &Lines) -> Vec<Transition> {
    let mut found = Vec::new();
    for (life, verdict) in scene.lives().zip(&verdicts.0) {
        let Some(kind) = verdict.and_then(|verdict| party(&life, verdict, lines)) else { continue };
        let bytes = life.bytes();
        let born = life.born().filter(|_| !life.is_from_setup());
        found.extend(born.map(|at| Transition { at, comes: true, kind, bytes }));
        found.extend(life.died().map(|at| Transition { at, comes: false, kind, bytes }));
    }
    found.sort_by_key(|change| change.at);
    found
}

fn party(life: &Life<'_>, verdict: RoleVerdict, lines: &Lines) -> Option<Party> {
    let role = verdict.0;
    match lines.of_life(life, verdict) {
        Some(line) if !(life.is_from_setup() && role == Role::Parameter) => Some(Party::Line(line)),
        _ if matches!(role, Role::Parameter | Role::OptimizerState) => Some(Party::Settled(role)),
        _ => None,
    }
}
