//! Hand-made traces: one situation each.

mod loops;
mod periods;
mod phases;
mod stepless;

use super::Program;
use crate::unit::Index;

fn starts(program: &Program) -> Vec<usize> {
    program.iterations.iter().map(|one| one.start.position()).collect()
}
