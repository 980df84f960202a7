//! Iterations where nothing steps, or where no stack shows a loop.

use super::starts;
use crate::program::tape::Tape;
use crate::program::{FoundBy, Phase};
use crate::snapshot::Action;
use crate::unit::Confidence;

#[test]
fn without_steps_requests_iterate_and_not_their_tokens() {
    let mut tape = Tape::default();
    for _ in 0..3 {
        tape.event(Action::Alloc, "serve:10", 1 << 20);
        tape.event(Action::Alloc, "serve:11 chat:30 @module forward:5", 1 << 24);
        for _ in 0..4 {
            tape.alloc("serve:11 chat:33 @module forward:5");
            tape.alloc("serve:11 chat:34");
        }
    }
    assert_eq!(starts(&tape.program()), [0, 10, 20]);
}

#[test]
fn what_is_encoded_first_iterates_and_not_the_steps_of_the_search_that_follows() {
    for [encoding, input, step] in [
        ["main:9 run:30 @module forward:5", "main:9 run:32", "main:9 run:33 @module forward:6"],
        ["main:9 @module forward:5", "main:11", "main:12 @module forward:6"],
    ] {
        let mut tape = Tape::default();
        for _ in 0..4 {
            tape.alloc("main:8");
            tape.alloc(encoding);
            for _ in 0..20 {
                tape.alloc(input);
                tape.alloc(step);
            }
        }
        assert_eq!(starts(&tape.program()), [0, 42, 84, 126], "{input}");
    }
}

#[test]
fn without_steps_batches_iterate_and_not_their_epochs() {
    let mut tape = Tape::default();
    for _ in 0..2 {
        for _ in 0..5 {
            tape.alloc("main:8 run:30");
            tape.alloc("main:8 run:31 @module forward:5");
        }
        tape.free("main:9");
    }
    assert_eq!(tape.program().iterations.len(), 10);
}

#[test]
fn a_loop_in_a_constructor_is_no_main_loop() {
    let mut tape = Tape::default();
    for _ in 0..40 {
        tape.alloc("main:4 __init__:20");
        tape.alloc("main:4 __init__:21");
    }
    let first = tape.recorder.events.len();
    for _ in 0..3 {
        tape.alloc("main:8");
        tape.alloc("main:9");
    }
    assert_eq!(starts(&tape.program()), [first, first + 2, first + 4]);
}

#[test]
fn annotations_alone_give_iterations_and_steps() {
    let mut tape = Tape::default();
    for _ in 0..4 {
        for size in [100, 200, 300] {
            tape.push(Action::Alloc, None, size);
        }
        tape.annotate("Optimizer.step#SGD.step", true);
        tape.push(Action::Alloc, None, 400);
        tape.annotate("Optimizer.step#SGD.step", false);
    }
    let program = tape.program();
    assert_eq!(starts(&program), [0, 4, 8, 12]);
    assert_eq!((program.found_by, program.confidence), (FoundBy::OptimizerSteps, Confidence::Medium));
    assert_eq!(program.phases.get(3), Some(&Phase::OptimizerStep));
}

#[test]
fn profiler_steps_come_before_optimizer_steps() {
    let mut tape = Tape::default();
    for at in 0..3 {
        let name = format!("ProfilerStep#{at}");
        tape.annotate(&name, true);
        tape.push(Action::Alloc, None, 100);
        tape.annotate("Optimizer.step#SGD.step", true);
        tape.push(Action::Alloc, None, 400);
        tape.annotate("Optimizer.step#SGD.step", false);
        tape.push(Action::Alloc, None, 50);
        tape.annotate(&name, false);
    }
    let program = tape.program();
    assert_eq!((starts(&program), program.found_by), (vec![0, 3, 6], FoundBy::ProfilerSteps));
}

#[test]
fn sizes_alone_give_a_period_of_low_confidence() {
    let mut tape = Tape::default();
    tape.push(Action::Alloc, None, 7);
    for _ in 0..6 {
        let held: Vec<usize> = (1..=20).map(|size| tape.push(Action::Alloc, None, size * 512)).collect();
        for at in held {
            let mut event = tape.recorder.events[at];
            event.action = Action::FreeCompleted;
            tape.recorder.events.push(event);
        }
    }
    let program = tape.program();
    assert_eq!((program.iterations.len(), program.found_by), (6, FoundBy::Periodicity));
    assert_eq!(program.confidence, Confidence::Low);
}

#[test]
fn nothing_that_repeats_means_no_iterations() {
    let mut tape = Tape::default();
    for size in 1..60 {
        tape.push(Action::Alloc, None, size * size * 512);
    }
    let program = tape.program();
    assert_eq!((program.iterations.len(), program.found_by), (0, FoundBy::Nothing));
    assert_eq!(program.phases.len(), 59);
}

#[test]
fn an_empty_trace_is_no_program() {
    let program = Tape::default().program();
    assert!(program.iterations.is_empty() && program.phases.is_empty());
}
