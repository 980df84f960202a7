//! Which turns, steps and evaluations make one iteration.

use super::starts;
use crate::program::Phase;
use crate::program::tape::Tape;

#[test]
fn two_updates_by_one_call_and_a_third_are_one_iteration() {
    let mut tape = Tape::default();
    let mut begins = Vec::new();
    for _ in 0..4 {
        begins.push(tape.recorder.events.len());
        for _ in 0..2 {
            tape.alloc("main:12");
            tape.train("main:12", "critic", 40);
            tape.free("main:12");
        }
        tape.train("main:13", "generator", 60);
        tape.free("main:13");
    }
    assert_eq!(starts(&tape.program()), begins);
}

#[test]
fn an_evaluation_between_epochs_belongs_to_the_iteration_before() {
    let mut tape = Tape::default();
    for _ in 0..2 {
        tape.train("", "main", 10);
        tape.train("", "main", 10);
        for _ in 0..3 {
            tape.alloc("main:20 @module forward:5");
            tape.alloc("main:21");
        }
    }
    let program = tape.program();
    assert_eq!(starts(&program), [0, 6, 18, 24]);
    assert!(program.phases.get(12..18).unwrap().iter().all(|phase| *phase == Phase::Evaluation));
    assert!(program.phases.get(30..36).unwrap().iter().all(|phase| *phase == Phase::Evaluation));
    assert_eq!(program.phases.get(19), Some(&Phase::Forward));
}

#[test]
fn an_evaluation_at_the_head_of_some_iterations_is_told_by_its_rarity() {
    let mut tape = Tape::default();
    for at in 0..6 {
        if at % 3 == 0 {
            tape.alloc("main:9 estimate:70 @module forward:5");
        }
        tape.train("", "main", 10);
    }
    let program = tape.program();
    assert_eq!(program.iterations.len(), 6);
    assert_eq!(program.phases.first(), Some(&Phase::Evaluation));
    assert_eq!(program.phases.get(2), Some(&Phase::Forward));
}

#[test]
fn micro_batches_are_joined_into_optimizer_periods() {
    let mut tape = Tape::default();
    for at in 1..=9 {
        tape.alloc("main:10");
        tape.alloc("main:11 @module forward:5");
        tape.alloc("main:12 @backward");
        tape.alloc("");
        if at % 3 == 0 {
            tape.step("main:14");
            tape.free("main:15 @zero");
        }
    }
    let program = tape.program();
    assert_eq!(starts(&program), [0, 14, 28]);
    assert_eq!(program.micro_batches.len(), 9);
    assert_eq!(program.steps.len(), 3);
}

#[test]
fn skipped_batches_are_no_micro_batches() {
    let mut tape = Tape::default();
    for at in 1..=9 {
        tape.alloc("main:10");
        tape.alloc("main:11 @module forward:5");
        if at % 3 == 0 {
            tape.alloc("main:12 @backward");
            tape.alloc("");
            tape.step("main:14");
            tape.free("main:15 @zero");
        }
    }
    let program = tape.program();
    assert_eq!((program.iterations.len(), program.micro_batches.len()), (9, 0));
}

#[test]
fn skipped_steps_are_no_micro_batches() {
    let mut tape = Tape::default();
    for at in 1..=9 {
        tape.alloc("main:10");
        tape.alloc("main:11 @module forward:5");
        tape.alloc("main:12 @backward");
        tape.alloc("");
        if at % 3 == 0 {
            tape.step("main:14");
        }
        tape.free("main:15 @zero");
    }
    let program = tape.program();
    assert_eq!((program.iterations.len(), program.micro_batches.len()), (9, 0));
}

#[test]
fn two_optimizers_make_one_iteration() {
    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.train("", "main", 10);
        tape.train("", "main", 20);
    }
    let program = tape.program();
    assert_eq!(starts(&program), [0, 12, 24]);
    assert_eq!(program.steps.len(), 6);
}

#[test]
fn a_critic_trained_in_a_loop_of_its_own_belongs_to_the_outer_iteration() {
    let mut tape = Tape::default();
    for _ in 0..4 {
        tape.alloc("main:8");
        for _ in 0..3 {
            tape.train("", "main", 10);
        }
        tape.train("", "main", 20);
    }
    let program = tape.program();
    assert_eq!(starts(&program), [0, 25, 50, 75]);
}
