//! What the program is doing at each event.

use crate::program::Phase;
use crate::program::tape::Tape;
use crate::snapshot::Action;

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
