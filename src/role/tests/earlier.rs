//! What is older than the recording, or has no stacks.

use super::super::*;
use crate::program::Phase;
use crate::testing::by_hand::{ADAM, ENGINE, HandTrace, MODULE, MOVE, TENSOR, USER};

#[test]
fn zero_grad_shows_gradients_from_before_the_recording() {
    let mut trace = HandTrace::default();
    let gradient = 1 << 60;
    trace.free(
        Phase::Other,
        gradient,
        &[("/site-packages/torch/optim/optimizer.py", "zero_grad"), ("train.py", "main")],
    );
    assert_eq!(trace.roles()(gradient), Role::Gradient);
}

#[test]
fn what_a_step_lets_go_of_that_was_running_already_is_no_old_gradient() {
    let of_first = |phase: Phase, frames: &[(&str, &str)]| {
        let mut trace = HandTrace::default();
        let older = 7 << 40;
        trace.free(phase, older, frames);
        for _ in 0..3 {
            trace.iteration();
            let out = trace.alloc(Phase::Forward, 12, &[(MODULE, "_call_impl"), USER[0]]);
            let gradient = trace.alloc(Phase::Backward, 1, ENGINE);
            trace.free(Phase::Backward, out, ENGINE);
            trace.free(Phase::ZeroGrad, gradient, USER);
        }
        trace.roles()(older)
    };
    let temporaries = &[(ADAM, "_multi_tensor_adam"), USER[0]];
    assert_eq!(of_first(Phase::OptimizerStep, temporaries), Role::Unknown);
    assert_eq!(of_first(Phase::ZeroGrad, USER), Role::Gradient);
}

#[test]
fn blocks_from_before_the_recording_are_counted_against_the_gradients() {
    let mut trace = HandTrace::default();
    let blocks = [10, 10, 10, 6].map(|mib| trace.earlier(mib));
    trace.alloc(Phase::Forward, 1, USER);
    trace.alloc(Phase::Backward, 10, ENGINE);
    let role = trace.roles();
    let found = blocks.map(&role);
    assert_eq!(found.iter().filter(|&&role| role == Role::OptimizerState).count(), 2);
    assert_eq!(found[3], Role::Parameter);
}

#[test]
fn gradients_from_before_the_recording_are_those_that_a_pass_adds_to() {
    let adds = &[
        ("", "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::free(Block*)"),
        ("", "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)"),
    ];
    let mut trace = HandTrace::default();
    let blocks = [10; 4].map(|mib| trace.earlier(mib));
    trace.alloc(Phase::Forward, 2, TENSOR);
    let added = trace.alloc(Phase::Backward, 10, TENSOR);
    trace.free(Phase::Backward, added, adds);
    let role = trace.roles();
    let count = |wanted| blocks.iter().filter(|&&block| role(block) == wanted).count();
    assert_eq!(role(added), Role::Temporary);
    assert_eq!((count(Role::Parameter), count(Role::Gradient), count(Role::OptimizerState)), (1, 1, 2));
}

#[test]
fn without_stacks_steps_and_sizes_remain() {
    let mut trace = HandTrace::default();
    let weights = [4, 5].map(|mib| trace.alloc(Phase::Other, mib, ENGINE));
    for event in &mut trace.recorder.events {
        event.stack = None;
    }
    let brief = trace.alloc(Phase::Other, 2, ENGINE);
    trace.free(Phase::Other, brief, ENGINE);
    let gradients = [5, 4].map(|mib| trace.alloc(Phase::Other, mib, ENGINE));
    let state = trace.alloc(Phase::OptimizerStep, 4, ENGINE);
    for gradient in gradients {
        trace.free(Phase::ZeroGrad, gradient, ENGINE);
    }
    let role = trace.roles();
    assert_eq!(weights.map(&role), [Role::Parameter; 2]);
    assert_eq!(gradients.map(&role), [Role::Gradient; 2]);
    assert_eq!(role(state), Role::OptimizerState);
}

/// A training program of two weights whose checkpoint holds these sizes in MiB, in this order: which of them are optimizer state.
fn loaded_state(sizes: &[u64], makes_state: bool) -> Vec<bool> {
    const LOAD: &[(&str, &str)] =
        &[("/site-packages/torch/_weights_only_unpickler.py", "load"), ("train.py", "main")];
    let mut trace = HandTrace::default();
    let loaded: Vec<u64> = sizes.iter().map(|mib| trace.alloc(Phase::Setup, *mib, LOAD)).collect();
    for mib in [5, 3] {
        trace.alloc(Phase::Setup, mib, MOVE);
    }
    for turn in 0..3 {
        trace.iteration();
        let saved = trace.alloc(Phase::Forward, 8, USER);
        let gradients = [5, 3].map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
        trace.free(Phase::Backward, saved, ENGINE);
        let scratch =
            trace.alloc(Phase::OptimizerStep, 1, &[(ADAM, "_multi_tensor_adam"), ("train.py", "main")]);
        for mib in [5, 3, 5, 3] {
            if makes_state && turn == 0 {
                trace.alloc(Phase::OptimizerStep, mib, &[(ADAM, "_init_group"), ("train.py", "main")]);
            }
        }
        trace.free(Phase::OptimizerStep, scratch, USER);
        for gradient in gradients {
            trace.free(Phase::ZeroGrad, gradient, USER);
        }
    }
    let role = trace.roles();
    loaded.into_iter().map(|address| role(address) == Role::OptimizerState).collect()
}

#[test]
fn a_checkpoint_brings_the_state_of_an_optimizer_that_makes_none() {
    assert_eq!(
        loaded_state(&[5, 3, 5, 5, 3, 3], false),
        [false, false, true, true, true, true],
        "weights first"
    );
    assert_eq!(
        loaded_state(&[5, 5, 3, 3, 5, 3], false),
        [true, true, true, true, false, false],
        "weights last"
    );
    assert_eq!(loaded_state(&[5, 3, 5, 5, 3, 3], true), [false; 6], "the optimizer makes its own");
    assert_eq!(loaded_state(&[5, 3], false), [false; 2], "weights alone");
}

#[test]
fn where_frees_have_no_stacks_of_their_own_what_a_forward_pass_lets_go_of_is_a_weight() {
    const MODEL: &[(&str, &str)] = &[("model.py", "forward"), (MODULE, "_call_impl"), ("train.py", "main")];
    // A key encoder whose older weights are bound anew in its forward; each free carries the stack of its allocation.
    let mut trace = HandTrace::default();
    let (trained, key) = (trace.earlier(1), 1 << 60);
    for turn in 0..3 {
        trace.iteration();
        let saved = trace.alloc(Phase::Forward, 8, MODEL);
        if turn == 0 {
            trace.free(Phase::Forward, key, ENGINE);
        }
        let gradient = trace.alloc(Phase::Backward, 1, ENGINE);
        trace.free(Phase::Backward, saved, MODEL);
        trace.free(Phase::ZeroGrad, gradient, ENGINE);
    }
    let role = trace.roles();
    assert_eq!((role(trained), role(key)), (Role::Parameter, Role::Parameter));
}
