//! What a backward pass makes and leaves, and what is as large.

use super::super::*;
use crate::program::Phase;
use crate::testing::by_hand::{ADAM, CUDNN, ENGINE, HandTrace, MODULE, MOVE, TENSOR, USER};

#[test]
fn what_a_backward_pass_makes_and_leaves_behind_is_a_gradient() {
    let mut trace = HandTrace::default();
    let weight = trace.alloc(Phase::Setup, 4, MOVE);
    let saved = trace.alloc(Phase::Forward, 8, USER);
    let brief = trace.alloc(Phase::Backward, 6, ENGINE);
    let gradient = trace.alloc(Phase::Backward, 4, ENGINE);
    trace.free(Phase::Backward, brief, ENGINE);
    trace.free(Phase::Backward, saved, ENGINE);
    let state = trace.alloc(Phase::OptimizerStep, 4, &[(ADAM, "_init_group"), ("train.py", "main")]);
    let scratch = trace.alloc(Phase::OptimizerStep, 4, &[(ADAM, "_multi_tensor_adam"), ("train.py", "main")]);
    trace.free(Phase::OptimizerStep, scratch, USER);
    let role = trace.roles();
    assert_eq!(role(weight), Role::Parameter);
    assert_eq!(role(saved), Role::Activation);
    assert_eq!(role(brief), Role::Temporary);
    assert_eq!(role(gradient), Role::Gradient);
    assert_eq!(role(state), Role::OptimizerState);
    assert_eq!(role(scratch), Role::Temporary);
}

#[test]
fn a_librarys_scratch_is_no_gradient_though_the_backward_pass_keeps_it() {
    let mut trace = HandTrace::default();
    let convolution = trace.alloc(Phase::Backward, 9, CUDNN);
    let gradient = trace.alloc(Phase::Backward, 9, TENSOR);
    let role = trace.roles();
    assert_eq!(role(convolution), Role::Workspace);
    assert_eq!(role(gradient), Role::Gradient);
}

#[test]
fn a_blas_workspace_is_the_one_block_more_than_the_gradients_of_its_size() {
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 32, MOVE);
    trace.alloc(Phase::Forward, 1, USER);
    let workspace = trace.alloc(Phase::Backward, 32, ENGINE);
    let gradient = trace.alloc(Phase::Backward, 32, ENGINE);
    let role = trace.roles();
    assert_eq!((role(workspace), role(gradient)), (Role::Workspace, Role::Gradient));

    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 32, MOVE);
    trace.alloc(Phase::Forward, 1, USER);
    let gradient = trace.alloc(Phase::Backward, 32, ENGINE);
    assert_eq!(trace.roles()(gradient), Role::Gradient);

    // What is as large and older than the recording is no parameter where modules are seen to be made and a line outside of them computed it.
    let mut trace = HandTrace::default();
    trace.standing(5, MOVE);
    trace.standing(32, USER);
    trace.alloc(Phase::Forward, 1, USER);
    let workspace = trace.alloc(Phase::Backward, 32, ENGINE);
    assert_eq!(trace.roles()(workspace), Role::Workspace);

    // A sharded model's gradients are parts of larger blocks: no pass makes one of a parameter's size. The forward pass made its handle.
    let mut trace = HandTrace::default();
    for _ in 0..2 {
        trace.alloc(Phase::Setup, 32, MOVE);
    }
    let of_forward = trace.alloc(Phase::Forward, 32, USER);
    let of_backward = trace.alloc(Phase::Backward, 32, ENGINE);
    let gradient = trace.alloc(Phase::Backward, 32, ENGINE);
    let role = trace.roles();
    let roles = [of_forward, of_backward, gradient].map(role);
    assert_eq!(roles, [Role::Workspace, Role::Workspace, Role::Gradient]);
}

#[test]
fn the_gradient_of_an_input_is_told_by_its_size() {
    let mut trace = HandTrace::default();
    for mib in [40, 41] {
        trace.alloc(Phase::Setup, mib, MOVE);
    }
    trace.alloc(Phase::Forward, 1, USER);
    let gradients = [40, 41].map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
    let of_input = trace.alloc(Phase::Backward, 3, ENGINE);
    trace.free(Phase::Forward, of_input, USER);
    let role = trace.roles();
    assert_eq!(gradients.map(&role), [Role::Gradient, Role::Gradient]);
    assert_eq!(role(of_input), Role::Temporary);
}

#[test]
fn a_checkpointed_activation_is_made_and_let_go_by_the_backward_pass() {
    let recomputed = &[(MODULE, "_call_impl"), ("/site-packages/torch/utils/checkpoint.py", "recompute_fn")];
    let mut trace = HandTrace::default();
    let activation = trace.alloc(Phase::Recomputation, 5, recomputed);
    let brief = trace.alloc(Phase::Recomputation, 5, recomputed);
    trace.free(Phase::Recomputation, brief, recomputed);
    trace.free(Phase::Backward, activation, ENGINE);
    let role = trace.roles();
    assert_eq!((role(activation), role(brief)), (Role::Activation, Role::Temporary));
}

#[test]
fn a_workspace_that_a_recomputed_forward_pass_asks_for_is_no_gradient() {
    let linear = &[
        ("/site-packages/torch/nn/modules/linear.py", "forward"),
        (MODULE, "_call_impl"),
        ("/site-packages/torch/utils/checkpoint.py", "recompute_fn"),
    ];
    let mut trace = HandTrace::default();
    let weight = trace.alloc(Phase::Setup, 1, MOVE);
    let (mut workspace, mut gradients) = (0, Vec::new());
    for turn in 0..3 {
        trace.iteration();
        let out = trace.alloc(Phase::Forward, 12, &[(MODULE, "_call_impl"), USER[0]]);
        // A hook steps as soon as a gradient is there, and the backward pass goes on.
        let gradient = trace.alloc(Phase::Backward, 1, ENGINE);
        let temporary = trace.alloc(Phase::OptimizerStep, 3, &[(ADAM, "_single_tensor_adam"), USER[0]]);
        trace.free(Phase::OptimizerStep, temporary, &[(ADAM, "_single_tensor_adam"), USER[0]]);
        trace.free(Phase::ZeroGrad, gradient, USER);
        if turn == 0 {
            workspace = trace.alloc(Phase::Recomputation, 1, linear);
        }
        trace.free(Phase::Backward, out, ENGINE);
        gradients.push(gradient);
    }
    let role = trace.roles();
    assert_eq!((role(weight), role(workspace)), (Role::Parameter, Role::Workspace));
    assert!(gradients.into_iter().all(|gradient| role(gradient) == Role::Gradient));
}

#[test]
fn sharded_wrappers_make_communication_shards_and_reduced_gradients() {
    let gathers = &[
        ("/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_param.py", "alloc_storage"),
        ("train.py", "main"),
    ];
    let reduces = &[("/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py", "allocate")];
    let mut trace = HandTrace::default();
    let shard = trace.alloc(Phase::Setup, 2, gathers);
    let gathered = trace.alloc(Phase::Forward, 8, gathers);
    trace.free(Phase::Backward, gathered, ENGINE);
    let summed = trace.alloc(Phase::Backward, 2, reduces);
    trace.free(Phase::OptimizerStep, summed, USER);
    let role = trace.roles();
    assert_eq!(role(shard), Role::Parameter);
    assert_eq!(role(gathered), Role::Communication);
    assert_eq!(role(summed), Role::Gradient);
}

#[test]
fn buckets_are_gradients_where_the_backward_pass_leaves_none_of_its_own() {
    let wraps =
        &[("/site-packages/torch/nn/parallel/distributed.py", "_ddp_init_helper"), ("train.py", "main")];
    for views in [false, true] {
        let mut trace = HandTrace::default();
        trace.alloc(Phase::Setup, 20, MOVE);
        let bucket = trace.alloc(Phase::Setup, 20, wraps);
        trace.alloc(Phase::Forward, 2, USER);
        let made = trace.alloc(Phase::Backward, 20, ENGINE);
        if views {
            trace.free(Phase::Backward, made, ENGINE);
        }
        let expected = if views { Role::Gradient } else { Role::Communication };
        assert_eq!(trace.roles()(bucket), expected);
    }
}

#[test]
fn what_no_sync_adds_up_before_the_buckets_are_rebuilt_says_nothing_of_views() {
    let wraps = &[("/site-packages/torch/nn/parallel/distributed.py", "_pre_forward"), ("train.py", "main")];
    for views in [false, true] {
        let mut trace = HandTrace::default();
        trace.alloc(Phase::Setup, 20, MOVE);
        trace.iteration();
        trace.alloc(Phase::Forward, 2, USER);
        let apart = trace.alloc(Phase::Backward, 20, ENGINE);
        trace.iteration();
        if views {
            trace.free(Phase::Other, apart, USER);
        }
        let bucket = trace.alloc(Phase::Forward, 20, wraps);
        trace.alloc(Phase::Forward, 2, USER);
        trace.alloc(Phase::Backward, 1, ENGINE);
        let expected = if views { Role::Gradient } else { Role::Communication };
        assert_eq!(trace.roles()(bucket), expected);
    }
}

#[test]
fn buckets_of_one_model_are_gradients_beside_the_weights_of_others() {
    let wraps =
        &[("/site-packages/torch/nn/parallel/distributed.py", "_ddp_init_helper"), ("train.py", "main")];
    let mut trace = HandTrace::default();
    for mib in [20, 20, 20] {
        trace.alloc(Phase::Setup, mib, MOVE);
    }
    let bucket = trace.alloc(Phase::Setup, 20, wraps);
    for _ in 0..2 {
        trace.iteration();
        let saved = trace.alloc(Phase::Forward, 2, USER);
        // What `no_sync` adds up goes in the pass that is reduced.
        let apart = trace.alloc(Phase::Backward, 20, ENGINE);
        trace.free(Phase::Backward, saved, ENGINE);
        trace.free(Phase::Other, apart, USER);
        trace.step();
    }
    assert_eq!(trace.roles()(bucket), Role::Gradient);
}

#[test]
fn masters_have_gradients_where_a_fused_step_leaves_no_event() {
    // The model's gradients are cast for masters of another size; the first step makes their state, later ones nothing.
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    let mut cast = Vec::new();
    for turn in 0..3 {
        trace.iteration();
        let saved = trace.alloc(Phase::Forward, 9, USER);
        let gradient = trace.alloc(Phase::Backward, 4, ENGINE);
        trace.free(Phase::Backward, saved, ENGINE);
        let next = trace.alloc(Phase::Other, 8, USER);
        if let Some(last) = cast.last() {
            trace.free(Phase::Other, *last, USER);
        }
        cast.push(next);
        if turn == 0 {
            trace.alloc(Phase::OptimizerStep, 8, &[(ADAM, "_init_group"), ("train.py", "main")]);
        } else {
            trace.step();
        }
        trace.free(Phase::ZeroGrad, gradient, USER);
    }
    let role = trace.roles();
    assert!(cast.into_iter().all(|address| role(address) == Role::Gradient));
}

#[test]
fn what_a_model_makes_that_a_custom_backward_runs_is_no_gradient() {
    const MODEL: &[(&str, &str)] =
        &[("model.py", "forward"), (MODULE, "_call_impl"), ("adjoint.py", "backward")];
    const INNER: &[(&str, &str)] = &[
        ("/site-packages/torch/autograd/graph.py", "_engine_run_backward"),
        ("model.py", "forward"),
        (MODULE, "_call_impl"),
        ("adjoint.py", "backward"),
    ];
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    let saved = trace.alloc(Phase::Forward, 8, USER);
    let output = trace.alloc(Phase::Backward, 4, MODEL);
    let inner = trace.alloc(Phase::Backward, 4, INNER);
    trace.free(Phase::Backward, saved, ENGINE);
    let role = trace.roles();
    assert_ne!(role(output), Role::Gradient, "the monitor of an adjoint solver keeps what the field gives");
    assert_eq!(role(inner), Role::Gradient, "the engine runs inside of the model");
}

#[test]
fn what_a_hook_keeps_beside_bucket_views_is_no_gradient() {
    let wraps = &[("/site-packages/torch/nn/parallel/distributed.py", "_pre_forward"), ("train.py", "main")];
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 20, MOVE);
    let bucket = trace.alloc(Phase::Setup, 21, wraps);
    trace.alloc(Phase::Forward, 2, USER);
    let error = trace.alloc(Phase::Backward, 21, ENGINE);
    let role = trace.roles();
    assert_eq!((role(bucket), role(error)), (Role::Gradient, Role::Unknown));
}

#[test]
fn what_a_backward_pass_with_a_graph_makes_is_part_of_it() {
    // The parameters have gradients of their own; what the double backward leaves is larger, and goes with the loss.
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    let saved = trace.alloc(Phase::Forward, 9, USER);
    let (first, second) =
        (trace.alloc(Phase::Backward, 70, ENGINE), trace.alloc(Phase::Backward, 70, ENGINE));
    let loss = trace.alloc(Phase::Forward, 1, USER);
    let gradient = trace.alloc(Phase::Backward, 4, ENGINE);
    for one in [saved, first, second, loss] {
        trace.free(Phase::Other, one, USER);
    }
    let role = trace.roles();
    assert_eq!(
        (role(first), role(second), role(gradient)),
        (Role::Activation, Role::Activation, Role::Gradient)
    );
}
