//! Hand-made traces: one program a test, as short as the rule allows.

mod earlier;
mod gradients;
mod ties;

use super::*;
use crate::frames::Frames;
use crate::program::Phase;
use crate::testing::by_hand::{ADAM, ENGINE, HandTrace, MODULE, MOVE, USER};

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
fn what_a_constructor_computes_before_the_loop_is_a_buffer() {
    let functional = "/x/site-packages/torch/nn/functional.py";
    let mut trace = HandTrace::default();
    let queue = trace.alloc(
        Phase::Forward,
        64,
        &[(functional, "normalize"), ("moco.py", "__init__"), ("train.py", "main")],
    );
    let trial = trace.alloc(
        Phase::Forward,
        8,
        &[("moco.py", "__init__"), (MODULE, "_call_impl"), ("train.py", "main")],
    );
    trace.alloc(Phase::Setup, 7, MOVE);
    for _ in 0..2 {
        trace.iteration();
        trace.alloc(Phase::Forward, 2, USER);
        trace.alloc(Phase::Backward, 7, ENGINE);
    }
    let role = trace.roles();
    assert_eq!(role(queue), Role::Buffer, "F.normalize(torch.randn(...))");
    assert_eq!(role(trial), Role::Activation, "a module's pass");
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

#[test]
fn what_an_adapter_is_merged_into_is_a_parameter() {
    const PEFT: &str = "/v/site-packages/peft/tuners/ia3/layer.py";
    let mut trace = HandTrace::default();
    trace.alloc(Phase::Setup, 4, MOVE);
    trace.alloc(Phase::Forward, 8, USER);
    let merged = trace.alloc(Phase::Evaluation, 2, &[(PEFT, "merge"), ("probe.py", "on_step_end")]);
    let out = trace.alloc(Phase::Forward, 6, USER);
    trace.free(Phase::Forward, out, USER);
    assert_eq!(trace.roles()(merged), Role::Parameter);
}
