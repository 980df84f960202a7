//! Where a loop stands, and what looks like one.

use super::starts;
use crate::program::tape::Tape;
use crate::program::{FoundBy, Phase};
use crate::snapshot::Action;
use crate::unit::{Confidence, Index};

#[test]
fn a_training_loop_is_cut_at_its_back_edges() {
    let mut tape = Tape::default();
    tape.alloc("main:3");
    let begins: Vec<usize> = (0..4)
        .map(|_| {
            let at = tape.recorder.events.len();
            tape.train("", "main", 10);
            at
        })
        .collect();
    tape.alloc("main:20");
    let end = tape.recorder.events.len() - 1;
    let (program, snapshot) = tape.read();
    assert_eq!(starts(&program), begins);
    assert_eq!(program.found_by, FoundBy::LoopAndOptimizer);
    assert_eq!(program.confidence, Confidence::High);
    assert_eq!(program.iterations.last().map(|one| one.end.position()), Some(end));
    let looping = program.main_loop.unwrap();
    let frame = snapshot.stacks.frame(looping.frame).unwrap();
    assert_eq!((snapshot.text(frame.name), looping.line, looping.last_line), ("main", 10, 14));
    assert!(program.iterations.iter().all(|one| one.complete));
}

#[test]
fn what_goes_when_a_loop_is_left_is_not_its_last_turns() {
    let mut tape = Tape::default();
    for _ in 0..4 {
        tape.train("", "main", 10);
    }
    let end = tape.recorder.events.len();
    // The iterator goes, and with it all that it kept.
    tape.free("main:10");
    tape.free("main:10");
    tape.alloc("main:20");
    assert_eq!(tape.program().iterations.last().map(|one| one.end.position()), Some(end));

    let mut tape = Tape::default();
    for _ in 0..4 {
        tape.alloc("main:10");
        tape.alloc("main:12 @module forward:5");
    }
    let end = tape.recorder.events.len();
    tape.free("main:10");
    tape.alloc("main:20");
    assert_eq!(
        tape.program().iterations.last().map(|one| one.end.position()),
        Some(end),
        "nor where none trains"
    );

    let mut tape = Tape::default();
    for _ in 0..4 {
        tape.alloc("main:10");
        tape.alloc("main:12 @module forward:5");
        // A `with` block is left, and the turn goes on.
        tape.free("main:11");
        tape.alloc("main:13 @module forward:5");
    }
    let end = tape.recorder.events.len();
    tape.alloc("main:20");
    assert_eq!(tape.program().iterations.last().map(|one| one.end.position()), Some(end));
}

#[test]
fn a_worker_that_does_the_work_is_followed_where_the_main_thread_shows_no_loop() {
    let mut tape = Tape::default();
    tape.alloc("<module>:3 build:40");
    for _ in 0..4 {
        tape.alloc("@thread serve:12");
        tape.alloc("@thread serve:13 @module forward:5");
    }
    let program = tape.program();
    assert_eq!((program.iterations.len(), program.found_by), (4, FoundBy::LoopBackEdges));

    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.train("", "main", 10);
    }
    for _ in 0..9 {
        tape.alloc("@thread serve:12");
        tape.alloc("@thread serve:13 @module forward:5");
    }
    assert_eq!(tape.program().iterations.len(), 3, "the main thread's own loop goes first");
}

#[test]
fn leaving_a_with_block_is_no_loop() {
    let mut tape = Tape::default();
    for _ in 0..2 {
        tape.alloc("main:10");
        tape.alloc("main:12 @module forward:5");
    }
    tape.free("main:10");
    tape.alloc("main:15");
    let looping = tape.program();
    assert_eq!(looping.iterations.len(), 2, "12 to 10 and on to 12 is a loop");

    let mut tape = Tape::default();
    tape.alloc("main:10");
    tape.alloc("main:12 @module forward:5");
    tape.free("main:10");
    tape.alloc("main:15");
    let program = tape.program();
    assert_eq!((program.iterations.len(), program.found_by), (0, FoundBy::Nothing));
}

#[test]
fn a_call_of_several_lines_is_no_loop() {
    let mut tape = Tape::default();
    tape.alloc("main:11 @module forward:5");
    tape.alloc("main:12");
    tape.alloc("main:10 @module loss:7");
    tape.alloc("main:14");
    assert_eq!(tape.program().iterations.len(), 0);
}

#[test]
fn a_body_of_one_call_loops_at_the_caller() {
    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.train("main:8", "step", 20);
        // A local of `step` dies when it returns.
        tape.free("main:8");
    }
    let (program, snapshot) = tape.read();
    assert_eq!(starts(&program), [0, 7, 14]);
    let looping = program.main_loop.unwrap();
    let frame = snapshot.stacks.frame(looping.frame).unwrap();
    assert_eq!((snapshot.text(frame.name), looping.line), ("main", 8));
}

#[test]
fn a_body_of_one_call_that_leaves_no_trace_outside_loops_in_the_callee() {
    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.train("main:8", "step", 20);
    }
    let (program, snapshot) = tape.read();
    assert_eq!(starts(&program), [0, 6, 12]);
    let frame = snapshot.stacks.frame(program.main_loop.unwrap().frame).unwrap();
    assert_eq!(snapshot.text(frame.name), "step");
}

#[test]
fn a_decorated_callee_loops_at_the_caller() {
    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.alloc("serve:39 @decorator handle:33");
        tape.alloc("serve:39 @decorator handle:34 @module forward:5");
        tape.free("serve:39 @decorator");
    }
    let (program, snapshot) = tape.read();
    assert_eq!(program.iterations.len(), 3);
    let frame = snapshot.stacks.frame(program.main_loop.unwrap().frame).unwrap();
    assert_eq!((snapshot.text(frame.name), frame.line), ("serve", 39));
}

#[test]
fn garbage_collected_in_a_callee_is_no_call() {
    let mut tape = Tape::default();
    for at in 0..4 {
        if at % 2 == 1 {
            tape.free("main:8 load:50");
        }
        tape.train("main:8", "step", 20);
        tape.free("main:8");
    }
    assert_eq!(tape.program().iterations.len(), 4);
}

#[test]
fn input_made_on_the_calling_line_belongs_to_the_new_iteration() {
    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.alloc("main:8");
        tape.alloc("main:8 @module forward:5");
        tape.free("main:8");
    }
    assert_eq!(starts(&tape.program()), [0, 3, 6]);
}

#[test]
fn a_line_that_calls_twice_is_one_turn() {
    let mut tape = Tape::default();
    let begins: Vec<usize> = (0..4)
        .map(|_| {
            let at = tape.alloc("main:8 batch:30");
            tape.train("main:8", "step", 20);
            at
        })
        .collect();
    assert_eq!(starts(&tape.program()), begins);
}

#[test]
fn a_recording_that_begins_inside_the_loop_has_an_incomplete_iteration() {
    let mut tape = Tape::default();
    tape.alloc("main:12 @backward");
    tape.step("main:13");
    tape.train("", "main", 10);
    tape.train("", "main", 10);
    let program = tape.program();
    assert_eq!(starts(&program), [0, 2, 8]);
    let complete: Vec<bool> = program.iterations.iter().map(|one| one.complete).collect();
    assert_eq!(complete, [false, true, true]);
}

#[test]
fn running_out_of_memory_leaves_the_last_iteration_incomplete() {
    let mut tape = Tape::default();
    tape.train("", "main", 10);
    tape.train("", "main", 10);
    tape.alloc("main:10");
    tape.event(Action::OutOfMemory, "main:11 @module forward:5", 1 << 30);
    let program = tape.program();
    let complete: Vec<bool> = program.iterations.iter().map(|one| one.complete).collect();
    assert_eq!(complete, [true, true, false]);
    assert_eq!(program.phases.last(), Some(&Phase::Forward));
}
