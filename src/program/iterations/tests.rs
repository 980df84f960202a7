//! Hand-made traces: where iterations of several loops part, and where the last one ends.

use super::super::{Program, tape::Tape};
use crate::snapshot::Action;
use crate::unit::Index;

fn starts(program: &Program) -> Vec<usize> {
    program.iterations.iter().map(|one| one.start.position()).collect()
}

/// Turns of a loop that trains; where each begins.
fn turns(tape: &mut Tape, many: usize, (function, line): (&str, u32)) -> Vec<usize> {
    let turn = |_| {
        let at = tape.recorder.events.len();
        tape.train("main:3", function, line);
        at
    };
    (0..many).map(turn).collect()
}

#[test]
fn a_loop_behind_another_begins_an_iteration_of_its_own() {
    let mut tape = Tape::default();
    let mut begins = turns(&mut tape, 4, ("warm", 10));
    begins.extend(turns(&mut tape, 4, ("tune", 30)));
    begins.extend(turns(&mut tape, 4, ("last", 50)));
    assert_eq!(starts(&tape.program()), begins);
}

#[test]
fn a_loop_below_another_in_one_function_begins_with_its_first_turn() {
    let mut tape = Tape::default();
    let mut begins = turns(&mut tape, 14, ("main", 10));
    tape.alloc("main:3 main:25 picture:7 @module forward:5");
    begins.extend(turns(&mut tape, 14, ("main", 30)));
    assert_eq!(starts(&tape.program()), begins);
}

#[test]
fn a_loop_over_two_stages_is_not_the_loop_of_what_follows_them() {
    let mut tape = Tape::default();
    let mut begins = Vec::new();
    for stage in [10, 30] {
        begins.extend(turns(&mut tape, 3, ("main", stage)));
    }
    begins.extend(turns(&mut tape, 8, ("finetune", 60)));
    let found = starts(&tape.program());
    let of_the_last = begins.iter().filter(|begin| found.contains(begin)).count();
    assert!(of_the_last * 10 >= begins.len() * 9, "{found:?} of {begins:?}");
}

/// Four turns that let go of one tensor at their end, and what is left behind the last; nothing tells a free from its allocation by its stack.
fn torn_down(left: usize) -> (usize, Option<usize>) {
    let mut tape = Tape::default();
    for _ in 0..4 {
        tape.alloc("main:10");
        tape.alloc("main:11 @module forward:5");
        tape.step("main:12");
        tape.push(Action::FreeRequested, None, 4096);
    }
    let end = tape.recorder.events.len();
    for _ in 0..left {
        tape.push(Action::FreeRequested, None, 4096);
    }
    (end, tape.program().iterations.last().map(|one| one.end.position()))
}

#[test]
fn what_a_loop_held_goes_behind_its_last_iteration() {
    for left in [0, 1, 40] {
        let (end, found) = torn_down(left);
        assert_eq!(found, Some(end), "{left} tensors that the loop held");
    }
}

#[test]
fn a_loop_over_optimizers_that_shows_where_they_make_their_state_parts_no_turn() {
    let mut tape = Tape::default();
    let mut begins = Vec::new();
    for turn in 0..8 {
        begins.push(tape.recorder.events.len());
        tape.alloc("main:3 fit:42");
        tape.alloc("main:3 fit:45 @module forward:5");
        tape.alloc("main:3 fit:47 @backward");
        tape.alloc("");
        for _ in 0..2 {
            tape.annotate("Optimizer.step#Adam.step", true);
            if turn == 0 {
                tape.alloc("main:3 fit:50 @hook @adam");
            }
            tape.annotate("Optimizer.step#Adam.step", false);
            tape.free("main:3 fit:51 @zero");
        }
        tape.free("main:3");
    }
    let program = tape.program();
    assert_eq!((starts(&program), program.steps.len()), (begins, 16));
}

/// Turns that end in a solver of three rounds, each with a pass of its own; a pass comes before the solver, or none does.
fn solved(passes_first: bool) -> (Vec<usize>, Vec<usize>) {
    let mut tape = Tape::default();
    let mut begins = Vec::new();
    for _ in 0..5 {
        begins.push(tape.recorder.events.len());
        tape.alloc("main:10");
        if passes_first {
            tape.alloc("main:11 @module forward:5");
            tape.alloc("main:12 @backward");
        }
        for _ in 0..3 {
            tape.alloc("main:14 solve:30");
            tape.alloc("main:14 solve:31 @module forward:5");
            tape.alloc("main:14 solve:32 @backward");
            tape.alloc("main:14 solve:33");
        }
        tape.alloc("main:15");
    }
    (starts(&tape.program()), begins)
}

#[test]
fn the_rounds_of_a_solver_are_no_iterations() {
    let (found, begins) = solved(true);
    assert_eq!(found, begins);
    // Epochs, and batches in them.
    let (found, _) = solved(false);
    assert_eq!(found.len(), 15);
}
