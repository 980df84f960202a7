//! What people know allocations by, on hand-made traces.

use super::Familiar;
use crate::program::Phase::{self, Backward, Forward, OptimizerStep, Recomputation};
use crate::testing::by_hand::{ADAM, ENGINE, HandTrace, MODULE, USER};

type Frames = &'static [(&'static str, &'static str)];

const FUNCTIONAL: &str = "/site-packages/torch/nn/functional.py";
const HEAD: Frames = &[
    ("", "at::_ops::addmm::call(at::Tensor const&)"),
    ("", "at::_ops::linear::call(at::Tensor const&)"),
    (MODULE, "_call_impl"),
    ("train.py", "main"),
];
const CAST: Frames = &[
    ("", "at::_ops::_to_copy::call(at::Tensor const&)"),
    ("", "at::_ops::to_dtype::call(at::Tensor const&)"),
    ("train.py", "loss"),
];
const RELU: Frames =
    &[("", "at::_ops::relu::call(at::Tensor const&)"), (MODULE, "_call_impl"), ("train.py", "main")];
const LOG_SOFTMAX: Frames = &[
    ("", "at::_ops::_log_softmax::call(at::Tensor const&, long, bool)"),
    ("", "at::_ops::cross_entropy_loss::call(at::Tensor const&)"),
    (FUNCTIONAL, "cross_entropy"),
    ("train.py", "main"),
];
const LOSS_BACKWARD: Frames = &[
    ("", "at::_ops::_log_softmax_backward_data::call(at::Tensor const&)"),
    ("", "torch::autograd::generated::LogSoftmaxBackward0::apply(std::vector<at::Tensor>&&)"),
];
const SOFTMAX: Frames = &[
    ("", "at::_ops::_softmax::call(at::Tensor const&, long, bool)"),
    (MODULE, "_call_impl"),
    ("train.py", "main"),
];
const ATTENTION: Frames = &[
    ("", "at::_ops::_softmax::call(at::Tensor const&, long, bool)"),
    ("", "at::_ops::_scaled_dot_product_attention_math::call(at::Tensor const&)"),
    ("", "at::_ops::scaled_dot_product_attention::call(at::Tensor const&)"),
    (MODULE, "_call_impl"),
    ("train.py", "main"),
];
const PRODUCT: Frames = &[
    ("", "at::_ops::bmm::call(at::Tensor const&)"),
    ("", "at::_ops::scaled_dot_product_attention::call(at::Tensor const&)"),
    (MODULE, "_call_impl"),
    ("train.py", "main"),
];
/// Cross entropy as Python stacks show it.
const LOSS_IN_PYTHON: Frames = &[(FUNCTIONAL, "cross_entropy"), ("train.py", "main")];

/// What is asked for in a forward pass that a backward pass follows, with what each is called.
fn forward(made: &[(u64, Frames)]) -> Vec<Option<Familiar>> {
    let mut trace = HandTrace::default();
    trace.iteration();
    let all: Vec<u64> = made.iter().map(|(mib, frames)| trace.alloc(Forward, *mib, frames)).collect();
    for one in &all {
        trace.free(Backward, *one, ENGINE);
    }
    let name = trace.familiars();
    all.into_iter().map(name).collect()
}

#[test]
fn logits_are_what_a_cross_entropy_reads() {
    let (logits, inside) = (Some(Familiar::Logits), Some(Familiar::CrossEntropy));
    assert_eq!(forward(&[(64, RELU), (64, HEAD), (64, LOG_SOFTMAX)]), [None, logits, inside]);
    // The head is cast, a part of it is copied; what is smaller (labels, the loss of another head) is not looked at.
    let cast = [(16, RELU), (33, HEAD), (66, CAST), (64, CAST), (1, CAST), (64, LOG_SOFTMAX)];
    assert_eq!(forward(&cast), [None, logits, logits, logits, None, inside]);
    // Half of the width, cast by the loss itself.
    assert_eq!(forward(&[(32, HEAD), (64, LOG_SOFTMAX), (64, LOG_SOFTMAX)]), [logits, inside, inside]);
    assert_eq!(forward(&[(64, USER), (64, LOSS_IN_PYTHON)]), [logits, inside]);
}

#[test]
fn where_nothing_fits_there_is_no_name() {
    let inside = Some(Familiar::CrossEntropy);
    // What a loss reads is a view of something larger.
    assert_eq!(forward(&[(64, HEAD), (640, HEAD), (64, LOG_SOFTMAX)]), [None, None, inside]);
    assert_eq!(forward(&[(64, HEAD), (48, RELU), (64, LOG_SOFTMAX)]), [None, None, inside]);
    assert_eq!(forward(&[(64, HEAD), (64, RELU)]), [None, None], "nobody makes a loss of it");
    // It is gone when the loss is computed.
    let mut trace = HandTrace::default();
    trace.iteration();
    let gone = trace.alloc(Forward, 64, HEAD);
    trace.free(Forward, gone, USER);
    trace.alloc(Forward, 64, LOG_SOFTMAX);
    assert_eq!(trace.familiars()(gone), None);
}

#[test]
fn a_weight_of_the_size_of_the_logits_is_none() {
    let mut trace = HandTrace::default();
    let weight = trace.alloc(Phase::Setup, 64, &[(MODULE, "convert"), (MODULE, "to"), ("train.py", "main")]);
    trace.iteration();
    let inside = trace.alloc(Forward, 64, LOG_SOFTMAX);
    trace.free(Backward, inside, ENGINE);
    assert_eq!(trace.familiars()(weight), None);
}

#[test]
fn a_softmax_is_that_of_scores_within_an_attention_alone() {
    let scores = Some(Familiar::Scores);
    assert_eq!(forward(&[(16, RELU), (64, PRODUCT), (64, ATTENTION)]), [None, scores, scores]);
    assert_eq!(forward(&[(64, PRODUCT), (64, SOFTMAX)]), [None, Some(Familiar::Softmax)]);
}

#[test]
fn the_backward_pass_and_the_step_have_names_of_their_own() {
    let mut trace = HandTrace::default();
    trace.iteration();
    let kept = trace.alloc(Forward, 8, RELU);
    let of_loss = trace.alloc(Backward, 64, LOSS_BACKWARD);
    trace.free(Backward, of_loss, ENGINE);
    let again = trace.alloc(Recomputation, 8, RELU);
    let softmax_again = trace.alloc(Recomputation, 8, SOFTMAX);
    for one in [softmax_again, again, kept] {
        trace.free(Backward, one, ENGINE);
    }
    let gradient = trace.alloc(Backward, 8, ENGINE);
    let each = trace.alloc(OptimizerStep, 8, &[(ADAM, "_multi_tensor_adam"), ("train.py", "main")]);
    let single = trace.alloc(OptimizerStep, 8, &[(ADAM, "_single_tensor_adam"), ("train.py", "main")]);
    let state = trace.alloc(OptimizerStep, 8, &[(ADAM, "_init_group"), ("train.py", "main")]);
    trace.free(OptimizerStep, each, USER);
    trace.free(OptimizerStep, single, USER);
    let name = trace.familiars();
    assert_eq!(name(of_loss), Some(Familiar::CrossEntropyBackward));
    assert_eq!([again, softmax_again].map(&name), [Some(Familiar::Recomputed); 2]);
    assert_eq!(name(each), Some(Familiar::Foreach));
    assert_eq!([kept, gradient, single, state].map(&name), [None; 4]);
}

#[test]
fn wrappers_for_several_ranks_make_buckets_and_gather() {
    const FSDP: &str = "/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py";
    const DDP: &str = "/site-packages/torch/nn/parallel/distributed.py";
    let mut trace = HandTrace::default();
    let buckets =
        trace.alloc(Phase::Setup, 24, &[(DDP, "_ddp_init_helper"), (DDP, "__init__"), ("train.py", "main")]);
    let rebuilt = [("", "c10d::Reducer::rebuild_buckets()"), (DDP, "_pre_forward"), ("train.py", "main")];
    trace.iteration();
    let rebuilt = trace.alloc(Forward, 24, &rebuilt);
    let moved = trace.alloc(Forward, 1, &[(DDP, "_pre_forward"), ("train.py", "main")]);
    let gathered =
        trace.alloc(Forward, 8, &[(FSDP, "foreach_all_gather"), (MODULE, "inner"), ("train.py", "main")]);
    let reduced = trace.alloc(Backward, 8, &[(FSDP, "foreach_reduce")]);
    trace.free(Backward, gathered, ENGINE);
    trace.free(Backward, reduced, ENGINE);
    let name = trace.familiars();
    assert_eq!([buckets, rebuilt].map(&name), [Some(Familiar::Buckets); 2]);
    assert_eq!(
        [moved, gathered, reduced].map(&name),
        [None, Some(Familiar::Gathered), Some(Familiar::Reduced)]
    );
}

#[test]
fn every_name_is_one_of_its_own() {
    let names: std::collections::BTreeSet<&str> =
        Familiar::ALL.iter().flat_map(|one| [one.name(), one.words()]).collect();
    assert_eq!(
        names.len(),
        2 * Familiar::ALL.len() - 2,
        "two are called alike for people and in JSON: logits, softmax"
    );
}
