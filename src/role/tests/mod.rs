//! Hand-made traces: one program a test, as short as the rule allows.

mod ties;

use super::*;
use crate::frames::Frames;
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
fn a_librarys_scratch_is_no_gradient_though_the_backward_pass_keeps_it() {
    let mut trace = HandTrace::default();
    let convolution = trace.alloc(Phase::Backward, 9, CUDNN);
    let gradient = trace.alloc(Phase::Backward, 9, TENSOR);
    let role = trace.roles();
    assert_eq!(role(convolution), Role::Workspace);
    assert_eq!(role(gradient), Role::Gradient);
}

#[test]
fn a_forward_inside_of_the_optimizers_closure_makes_no_state() {
    let closure =
        &[(MODULE, "_call_impl"), ("train.py", "training_step"), (ADAM, "step"), ("train.py", "main")];
    let mut trace = HandTrace::default();
    let output = trace.alloc(Phase::Forward, 5, closure);
    let loss = trace.alloc(Phase::Forward, 2, &closure[1..]);
    trace.alloc(Phase::Backward, 1, ENGINE);
    let role = trace.roles();
    assert_eq!((role(output), role(loss)), (Role::Activation, Role::Activation));
}

#[test]
fn an_optimizer_of_the_users_own_keeps_state() {
    let wrapper = ("/site-packages/torch/optim/optimizer.py", "wrapper");
    let own =
        &[("lion.py", "step"), ("/site-packages/torch/utils/_contextlib.py", "decorate_context"), wrapper];
    let closure = &[("train.py", "training_step"), (ADAM, "step"), wrapper];
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Forward, 2, USER);
    trace.alloc(Phase::Backward, 2, ENGINE);
    let state = trace.alloc(Phase::Other, 4, own);
    let metric = trace.alloc(Phase::Other, 4, closure);
    let role = trace.roles();
    assert_eq!(role(state), Role::OptimizerState);
    assert_ne!(role(metric), Role::OptimizerState);
}

#[test]
fn what_is_kept_from_setup_depends_on_who_made_it() {
    let mut trace = HandTrace::default();
    let loaded =
        trace.alloc(Phase::Setup, 4, &[("/x/site-packages/loader/load.py", "read"), ("train.py", "main")]);
    let mask = trace.alloc(Phase::Setup, 5, &[("model.py", "__init__"), ("train.py", "main")]);
    let data = trace.alloc(Phase::Setup, 6, USER);
    let weight = trace.alloc(Phase::Setup, 7, USER);
    trace.alloc(Phase::Forward, 2, USER);
    trace.alloc(Phase::Backward, 7, ENGINE);
    let role = trace.roles();
    assert_eq!([loaded, mask, data].map(&role), [Role::Parameter, Role::Buffer, Role::Input]);
    assert_eq!(role(weight), Role::Parameter, "a gradient has its size");
}

#[test]
fn a_cast_during_setup_replaces_the_first_copy() {
    let mut trace = HandTrace::default();
    let single = trace.alloc(Phase::Setup, 8, MOVE);
    let half = trace.alloc(Phase::Setup, 4, MOVE);
    trace.free(Phase::Setup, single, MOVE);
    trace.alloc(Phase::Forward, 1, USER);
    let role = trace.roles();
    assert_eq!((role(single), role(half)), (Role::Temporary, Role::Parameter));
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
fn batches_outputs_and_caches_differ_by_when_they_live() {
    let mut trace = HandTrace::default();
    let mut last = None;
    let mut cached = Vec::new();
    for _ in 0..4 {
        trace.iteration();
        let batch = trace.alloc(Phase::Other, 3, USER);
        let brief = trace.alloc(Phase::Forward, 2, USER);
        trace.free(Phase::Forward, brief, USER);
        let output = trace.alloc(Phase::Forward, 2, USER);
        cached.push(trace.alloc(Phase::Forward, 7, USER));
        if let Some((batch, output)) = last.replace((batch, output)) {
            trace.free(Phase::Forward, batch, USER);
            trace.free(Phase::Forward, output, USER);
        }
    }
    let (batch, output) = last.unwrap();
    let role = trace.roles();
    assert_eq!(role(batch), Role::Input);
    assert_eq!(role(output), Role::Activation);
    assert_eq!(role(cached[0]), Role::Unknown);
}

#[test]
fn the_end_of_the_program_makes_nothing_temporary() {
    let mut trace = HandTrace::default();
    let mut last = None;
    for _ in 0..3 {
        trace.iteration();
        let output = trace.alloc(Phase::Forward, 5, USER);
        if let Some(before) = last.replace(output) {
            trace.free(Phase::Forward, before, USER);
        }
    }
    trace.free(Phase::Forward, last.unwrap(), USER);
    assert_eq!(trace.roles()(last.unwrap()), Role::Activation);
}

#[test]
fn copies_of_the_weights_in_plain_tensors_are_weights() {
    for trains in [false, true] {
        let mut trace = HandTrace::default();
        let sizes = [3, 5, 7, 11];
        for mib in sizes {
            trace.alloc(Phase::Setup, mib, MOVE);
        }
        let copies = sizes
            .map(|mib| trace.alloc(Phase::Setup, mib, &[("ema.py", "<dictcomp>"), ("train.py", "main")]));
        let data = trace.alloc(Phase::Setup, 5, USER);
        trace.alloc(Phase::Forward, 1, USER);
        for mib in sizes.into_iter().filter(|_| trains) {
            trace.alloc(Phase::Backward, mib, ENGINE);
            trace.alloc(Phase::OptimizerStep, mib, &[(ADAM, "_init_group"), ("train.py", "main")]);
        }
        let role = trace.roles();
        assert_eq!(copies.map(&role), [Role::Parameter; 4], "{trains}");
        assert_eq!(role(data), Role::Input, "{trains}");
    }
}

#[test]
fn what_is_as_large_as_a_weight_is_none_where_all_trained_ones_are_known() {
    for (gradients, role) in [(1, Role::Buffer), (2, Role::Parameter)] {
        let mut trace = HandTrace::default();
        trace.alloc(Phase::Setup, 7, MOVE);
        let kept = trace.alloc(Phase::Setup, 7, &[("bank.py", "__init__"), ("train.py", "main")]);
        trace.alloc(Phase::Forward, 1, USER);
        for _ in 0..gradients {
            trace.alloc(Phase::Backward, 7, ENGINE);
        }
        trace.alloc(Phase::OptimizerStep, 7, &[(ADAM, "_init_group"), ("train.py", "main")]);
        assert_eq!(trace.roles()(kept), role, "{gradients}");
    }
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

#[test]
fn a_composition_accounts_for_every_byte_alive() {
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    let gone = trace.alloc(Phase::Forward, 8, USER);
    trace.free(Phase::Forward, gone, USER);
    trace.alloc(Phase::Forward, 2, USER);
    let program = Program { phases: trace.phases, ..Program::default() };
    let (snapshot, timeline) = trace.recorder.ended();
    let roles = Roles::infer(&snapshot, &timeline, &program, &Frames::of(&snapshot));
    let total = |at| roles.composition(&timeline, at).iter().map(|&(_, bytes)| bytes).sum::<Bytes>();
    assert_eq!(total(timeline.peak_requested.event), timeline.peak_requested.bytes);
    assert_eq!(total(EventIndex::at(4)), timeline.requested_at_end);
    assert_eq!(total(None), timeline.requested_at_start);
}

#[test]
fn every_role_says_what_it_rests_on() {
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    trace.alloc(Phase::Forward, 8, USER);
    trace.alloc(Phase::Backward, 4, ENGINE);
    let program = Program { phases: trace.phases, ..Program::default() };
    let (snapshot, timeline) = trace.recorder.ended();
    let roles = Roles::infer(&snapshot, &timeline, &program, &Frames::of(&snapshot));
    let ground = |at: usize| roles.ground(AllocationId::at(at).unwrap());
    let found = [0, 1, 2].map(|at| ground(at).evidence);
    assert_eq!(found, [RoleGround::Frames, RoleGround::Lifetime, RoleGround::Lifetime]);
    assert_eq!(ground(0).because, "a module was built, moved, copied or loaded");
}

#[test]
fn what_is_built_where_batches_are_fetched_is_a_parameter_and_what_is_read_there_a_batch() {
    const PEFT: &str = "/v/site-packages/peft/tuners/tuners_utils.py";
    const TORCH_LOAD: &str = "/v/site-packages/torch/serialization.py";
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    trace.alloc(Phase::Forward, 8, USER);
    let adapter = trace.alloc(Phase::Input, 2, &[(PEFT, "cast_adapter_dtype"), ("serve.py", "activate")]);
    let module = trace.alloc(Phase::Input, 3, MOVE);
    let batch = trace.alloc(Phase::Input, 5, &[(TORCH_LOAD, "_load"), ("serve.py", "main")]);
    let out = trace.alloc(Phase::Forward, 6, USER);
    trace.free(Phase::Forward, out, USER);
    let role = trace.roles();
    assert_eq!((role(adapter), role(module)), (Role::Parameter, Role::Parameter));
    assert_eq!(role(batch), Role::Input);
}
