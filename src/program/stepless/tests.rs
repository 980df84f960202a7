//! Hand-made traces: whose loop is the main one where nothing trains.

use super::super::tape::Tape;
use crate::unit::Index;

/// A trainer's evaluation of so many batches, and a loop of the user's own function behind it, which a trainer's metric calls.
fn evaluated(batches: usize, own: &str) -> (Vec<usize>, Vec<usize>) {
    let mut tape = Tape::default();
    let mut begins = Vec::new();
    for _ in 0..batches {
        begins.push(tape.recorder.events.len());
        tape.alloc("main:3 @trainer:10");
        tape.alloc("main:3 @trainer:12 @module forward:5");
    }
    for _ in 0..2 * batches {
        tape.alloc("main:3 @trainer:20 compute:40");
        tape.alloc(&format!("main:3 @trainer:20 compute:41 {own}"));
    }
    let program = tape.program();
    (begins, program.iterations.iter().map(|one| one.start.position()).collect())
}

#[test]
fn a_trainer_that_runs_the_model_iterates_and_not_what_goes_through_its_results() {
    let (begins, found) = evaluated(6, "");
    assert_eq!(found, begins);
}

#[test]
fn the_users_loop_iterates_where_it_runs_a_model_too() {
    let (begins, found) = evaluated(6, "@module forward:5");
    assert!(found.len() == 12 && found.iter().all(|start| !begins.contains(start)), "{found:?}");
}
