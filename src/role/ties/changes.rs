//! What comes and goes of the model's sizes.
//!
//! In: the lines that make blocks of the model's sizes, and what is settled. Out: all that comes at work and lasts, and all that goes,
//! in the order of the recording: what [`super::kin`] and [`super::returns`] look at.

use super::super::scene::{Life, Scene};
use super::super::{Role, RoleVerdict, Verdicts};
use super::Lines;
use crate::unit::Bytes;

/// What a block is for the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// A line made it, and its role is open.
    Line(usize),
    /// A parameter or a state.
    Settled(Role),
}

/// Something comes or goes.
pub(super) struct Transition {
    pub(super) at: usize,
    pub(super) comes: bool,
    pub(super) kind: Party,
    pub(super) bytes: Bytes,
}

/// All that comes at work and lasts, and all that goes, in the order of the recording.
pub(super) fn changes(scene: &Scene<'_>, verdicts: &Verdicts, lines: &Lines) -> Vec<Transition> {
    let mut changes = Vec::new();
    for (life, verdict) in scene.lives().zip(&verdicts.0) {
        let Some(kind) = verdict.and_then(|verdict| kind(&life, verdict, lines)) else { continue };
        let bytes = life.bytes();
        let born = life.born().filter(|_| !life.is_from_setup());
        changes.extend(born.map(|at| Transition { at, comes: true, kind, bytes }));
        changes.extend(life.died().map(|at| Transition { at, comes: false, kind, bytes }));
    }
    changes.sort_by_key(|change| change.at);
    changes
}

fn kind(life: &Life<'_>, verdict: RoleVerdict, lines: &Lines) -> Option<Party> {
    let role = verdict.0;
    match lines.of_life(life, verdict) {
        Some(line) if !(life.is_from_setup() && role == Role::Parameter) => Some(Party::Line(line)),
        _ if matches!(role, Role::Parameter | Role::OptimizerState) => Some(Party::Settled(role)),
        _ => None,
    }
}
