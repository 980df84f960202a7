//! What the program itself keeps in sizes of its model's, and snapshots without events.

use super::super::Role;
use crate::program::Phase;
use crate::testing::by_hand::{ADAM, ENGINE, HandTrace, MODULE, MOVE, USER};

const STEP: &[(&str, &str)] = &[("adam.py", "update"), ("train.py", "main")];
const COMPREHENSION: &[(&str, &str)] =
    &[("adam.py", "<listcomp>"), ("adam.py", "update"), ("train.py", "main")];

/// Turns of a program with a model of four weights, and what it does after each backward pass.
fn turns(trace: &mut HandTrace, mut after: impl FnMut(&mut HandTrace, usize)) -> [u64; 4] {
    let weights = [4, 5, 6, 7].map(|mib| trace.alloc(Phase::Setup, mib, MOVE));
    for turn in 0..4 {
        trace.iteration();
        trace.alloc(Phase::Forward, 1, USER);
        let gradients = [7, 6, 5, 4].map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
        after(trace, turn);
        for gradient in gradients {
            trace.free(Phase::Other, gradient, USER);
        }
    }
    weights
}

#[test]
fn moments_of_the_programs_own_that_are_bound_anew_are_state() {
    let mut trace = HandTrace::default();
    let mut moments: Option<[u64; 4]> = None;
    turns(&mut trace, |trace, _| {
        let new = [4, 5, 6, 7].map(|mib| trace.alloc(Phase::Other, mib, COMPREHENSION));
        for old in moments.replace(new).into_iter().flatten().rev() {
            trace.free(Phase::Other, old, STEP);
        }
    });
    assert_eq!(moments.unwrap().map(trace.roles()), [Role::OptimizerState; 4]);
}

#[test]
fn what_takes_the_place_of_weights_is_weights() {
    let mut trace = HandTrace::default();
    let mut current: Option<[u64; 4]> = None;
    let mut first = Vec::new();
    turns(&mut trace, |trace, turn| {
        if turn == 0 {
            first = trace.recorder.events.iter().take(4).map(|event| event.address).collect();
        }
        let old = current.take().unwrap_or_else(|| [first[0], first[1], first[2], first[3]]);
        let mut new = [0; 4];
        for (at, mib) in [4, 5, 6, 7].into_iter().enumerate() {
            new[at] = trace.alloc(Phase::Other, mib, STEP);
            trace.free(Phase::Other, old[at], USER);
        }
        current = Some(new);
    });
    assert_eq!(current.unwrap().map(trace.roles()), [Role::Parameter; 4]);
}

#[test]
fn weights_that_a_model_binds_anew_are_weights_though_the_first_are_older() {
    let inside = &[(MODULE, "_call_impl"), ("train.py", "momentum"), ("train.py", "main")];
    let roles = |frames: &[(&str, &str)]| {
        let mut trace = HandTrace::default();
        let first = [1, 2, 3, 4].map(|at| (100 + at) << 40);
        let mut current = first;
        for _ in 0..4 {
            trace.iteration();
            for slot in &mut current {
                let new = trace.alloc(Phase::Forward, 1, frames);
                trace.free(Phase::Forward, std::mem::replace(slot, new), frames);
            }
            let gradients = [1; 4].map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
            for gradient in gradients {
                trace.free(Phase::ZeroGrad, gradient, USER);
            }
        }
        let role = trace.roles();
        (first.map(&role), current.map(&role))
    };
    let (older, newest) = roles(inside);
    assert_eq!(older, [Role::Parameter; 4]);
    assert_eq!(newest[1..], [Role::Parameter; 3], "(a mebibyte may be a workspace)");
    let (outside, _) = roles(USER);
    assert_eq!(outside, [Role::Gradient; 4], "old gradients go outside of the model");
}

#[test]
fn joined_weights_and_moments_follow_what_they_replace() {
    joined(Phase::Other);
}

/// A functional call without autograd looks like an evaluation.
#[test]
fn resized_weights_and_moments_follow_what_they_replace() {
    joined(Phase::Evaluation);
}

fn joined(phase: Phase) {
    let mut trace = HandTrace::default();
    let (mut mib, mut weights, mut moments) = ([4, 5, 6, 7], Vec::new(), Vec::new());
    for turn in 0..5 {
        trace.iteration();
        if turn == 0 {
            weights = mib.iter().map(|mib| trace.alloc(Phase::Setup, *mib, MOVE)).collect();
        }
        trace.alloc(Phase::Forward, 1, USER);
        let gradients = mib.map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
        let step = &[(ADAM, "_init_group"), ("train.py", "main")];
        if turn == 0 {
            moments = mib.iter().map(|mib| trace.alloc(Phase::OptimizerStep, *mib, step)).collect();
        }
        for gradient in gradients {
            trace.free(Phase::ZeroGrad, gradient, USER);
        }
        if turn % 2 == 1 {
            mib = mib.map(|mib| mib + 10);
            for (at, mib) in mib.into_iter().enumerate() {
                let weight = trace.alloc(phase, mib, STEP);
                let moment = trace.alloc(phase, mib, COMPREHENSION);
                trace.free(Phase::Other, moments[at], COMPREHENSION);
                trace.free(Phase::Other, weights[at], USER);
                (weights[at], moments[at]) = (weight, moment);
            }
        }
    }
    let role = trace.roles();
    assert_eq!(weights.iter().map(|at| role(*at)).collect::<Vec<_>>(), [Role::Parameter; 4]);
    assert_eq!(moments.iter().map(|at| role(*at)).collect::<Vec<_>>(), [Role::OptimizerState; 4]);
}

#[test]
fn gradients_of_masters_are_cast_from_those_of_the_weights() {
    let mut trace = HandTrace::default();
    let step = &[(ADAM, "_init_group"), ("train.py", "main")];
    let masters = [8, 10].map(|mib| trace.alloc(Phase::Setup, mib, USER));
    let mut cast = Vec::new();
    for turn in 0..3 {
        trace.iteration();
        trace.alloc(Phase::Forward, 1, USER);
        let gradients = [4, 5].map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
        let new = [8, 10].map(|mib| trace.alloc(Phase::Other, mib, USER));
        if turn == 0 {
            for mib in [8, 10] {
                trace.alloc(Phase::OptimizerStep, mib, step);
            }
        }
        trace.alloc(Phase::OptimizerStep, 1, step);
        for gone in gradients.into_iter().chain(new) {
            trace.free(Phase::Other, gone, USER);
        }
        cast.extend(new);
    }
    let role = trace.roles();
    assert_eq!(masters.map(&role), [Role::Parameter; 2]);
    assert!(cast.iter().all(|at| role(*at) == Role::Gradient));
}

#[test]
fn gradients_of_masters_are_gradients_after_the_last_step_too() {
    let mut trace = HandTrace::default();
    let step = &[(ADAM, "_init_group"), ("train.py", "main")];
    for mib in [4, 5, 6, 7] {
        trace.alloc(Phase::Setup, mib, MOVE);
    }
    let masters = [8, 10, 12, 14].map(|mib| trace.alloc(Phase::Setup, mib, USER));
    let mut cast: Option<[u64; 4]> = None;
    for turn in 0..4 {
        trace.iteration();
        for gone in cast.take().into_iter().flatten() {
            trace.free(Phase::ZeroGrad, gone, USER);
        }
        trace.alloc(Phase::Forward, 1, USER);
        let gradients = [4, 5, 6, 7].map(|mib| trace.alloc(Phase::Backward, mib, ENGINE));
        cast = Some([8, 10, 12, 14].map(|mib| trace.alloc(Phase::Other, mib, COMPREHENSION)));
        if turn == 0 {
            for mib in [8, 10, 12, 14] {
                trace.alloc(Phase::OptimizerStep, mib, step);
            }
        }
        trace.alloc(Phase::OptimizerStep, 1, step);
        for gone in gradients {
            trace.free(Phase::Other, gone, USER);
        }
    }
    let role = trace.roles();
    assert_eq!(masters.map(&role), [Role::Parameter; 4]);
    assert_eq!(cast.unwrap().map(role), [Role::Gradient; 4], "nothing has cleared them yet");
}

#[test]
fn of_what_setup_leaves_the_oldest_are_weights_and_the_rest_the_programs_own_state() {
    let mut trace = HandTrace::default();
    let kept = [USER, STEP, COMPREHENSION].map(|line| trace.alloc(Phase::Setup, 6, line));
    for _ in 0..3 {
        trace.iteration();
        trace.alloc(Phase::Forward, 1, USER);
        let gradient = trace.alloc(Phase::Backward, 6, ENGINE);
        trace.free(Phase::Other, gradient, USER);
    }
    let state = Role::OptimizerState;
    assert_eq!(kept.map(trace.roles()), [Role::Parameter, state, state]);
}

#[test]
fn a_snapshot_without_events_is_read_off_its_own_stacks() {
    let mut trace = HandTrace::default();
    let weight = trace.standing(4, MOVE);
    let gradient = trace.standing(4, ENGINE);
    let state = trace.standing(4, &[(ADAM, "_init_group"), ("train.py", "main")]);
    let output = trace.standing(4, &[("model.py", "forward"), (MODULE, "_call_impl"), ("train.py", "main")]);
    let role = trace.roles();
    assert_eq!([weight, gradient].map(&role), [Role::Parameter, Role::Gradient]);
    assert_eq!([state, output].map(&role), [Role::OptimizerState, Role::Activation]);
}
