//! Hand-made traces: one situation each.

use super::tape::Tape;
use super::{FoundBy, Phase, Program};
use crate::snapshot::Action;
use crate::unit::{Confidence, Index};

fn starts(program: &Program) -> Vec<usize> {
    program.iterations.iter().map(|one| one.start.position()).collect()
}

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
fn phases_follow_one_another_in_an_iteration() {
    let mut tape = Tape::default();
    tape.alloc("main:3 build:40");
    tape.train("", "main", 10);
    tape.train("", "main", 10);
    let program = tape.program();
    let iteration = [
        Phase::Input,
        Phase::Forward,
        Phase::Backward,
        Phase::Backward,
        Phase::OptimizerStep,
        Phase::ZeroGrad,
    ];
    assert_eq!(program.phases.first(), Some(&Phase::Setup));
    assert_eq!(program.phases.get(1..7), Some(&iteration[..]));
    assert_eq!(program.phases.get(7..13), Some(&iteration[..]));
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
fn a_closure_inside_an_optimizer_is_what_it_runs() {
    let mut tape = Tape::default();
    let forward = tape.alloc("fit:9 @hook @adam closure:30 @module forward:5");
    let loss = tape.alloc("fit:9 @hook @adam closure:31");
    let backward = tape.alloc("fit:9 @hook @adam closure:32 @backward");
    let state = tape.alloc("fit:9 @hook @adam");
    let own = tape.alloc("fit:9 @hook @decorator step:50 orthogonalize:70");
    let program = tape.program();
    let phase = |at: usize| program.phases.get(at).copied().unwrap();
    assert_eq!([phase(forward), phase(loss)], [Phase::Forward; 2]);
    assert_eq!(phase(backward), Phase::Backward);
    assert_eq!([phase(state), phase(own)], [Phase::OptimizerStep; 2], "PyTorch's optimizer, and the user's");
}

#[test]
fn recomputation_is_told_from_the_forward_that_it_repeats() {
    let mut tape = Tape::default();
    let first = tape.alloc("main:4 @module forward:5");
    let again = tape.alloc("@recompute @module forward:5");
    let program = tape.program();
    assert_eq!(program.phases.get(first), Some(&Phase::Forward));
    assert_eq!(program.phases.get(again), Some(&Phase::Recomputation));
}

#[test]
fn hooks_on_the_engines_thread_belong_to_the_backward() {
    let mut tape = Tape::default();
    tape.train("<module>:90", "main", 10);
    let hook = tape.alloc("reduce:60 scatter:70");
    tape.train("<module>:90", "main", 10);
    assert_eq!(tape.program().phases.get(hook), Some(&Phase::Backward));
}

#[test]
fn what_goes_right_after_an_annotated_step_is_no_part_of_it() {
    let mut tape = Tape::default();
    tape.annotate("Optimizer.step#Adam.step", true);
    let (old, state) = (tape.alloc("main:9 @hook @adam"), tape.alloc("main:9 @hook @adam"));
    let within = tape.free("main:9 @hook @adam");
    tape.annotate("Optimizer.step#Adam.step", false);
    let behind = tape.free("main:9 @hook @adam");
    for (freed, made) in [(within, old), (behind, state)] {
        tape.recorder.events[freed].address = tape.recorder.events[made].address;
    }
    let program = tape.program();
    let phase = |at: usize| program.phases.get(at).copied().unwrap();
    assert_eq!([phase(state), phase(within)], [Phase::OptimizerStep; 2]);
    assert_eq!(phase(behind), Phase::Other, "its stack is that of the allocation");
}

#[test]
fn what_a_program_lets_go_of_when_no_python_is_left_is_no_backward_pass() {
    let trained = |behind: &[Action]| {
        let mut tape = Tape::default();
        let made = tape.alloc("main:5 @module");
        tape.alloc("");
        let freed = tape.free("main:9 @hook @adam");
        tape.recorder.events[freed].address = tape.recorder.events[made].address;
        let last: Vec<usize> = behind.iter().map(|action| tape.event(*action, "", 4096)).collect();
        let program = tape.program();
        last.into_iter().map(|at| program.phases[at]).collect::<Vec<_>>()
    };
    assert_eq!(trained(&[Action::FreeRequested; 2]), [Phase::Other; 2]);
    let engine = trained(&[Action::Alloc, Action::FreeRequested]);
    assert_eq!(engine, [Phase::Backward; 2], "a pass makes gradients");
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
