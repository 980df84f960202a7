//! The table of what is computed: what a function says of the numbers under it, and not of who holds them.
//!
//! Python functions by module and name, operators of PyTorch and nodes of the autograd graph by the names that C++ frames give them.
//! Operators as recordings of PyTorch 2.1 to 2.15 show them; what no recording of the corpus has (flat parameters, attention of
//! transformers) as it stands in the sources.

use super::cpp;
use super::signs::WorkSign;
use super::table::fits;

/// Functions of Python: the first row that fits decides.
#[rustfmt::skip]
const FUNCTIONS: [(&str, &[&str], WorkSign); 10] = [
    ("torch/nn/functional", &["cross_entropy", "log_softmax"], WorkSign::CrossEntropy),
    ("torch/nn/functional", &["softmax"], WorkSign::Softmax),
    ("torch/nn/functional", &["multi_head_attention_forward"], WorkSign::Attention),
    ("transformers/*", &["eager_attention_forward"], WorkSign::Attention),
    ("torch/nn/modules/linear", &["forward"], WorkSign::Multiplies),
    ("torch/optim/*", &["_multi_tensor_*"], WorkSign::Foreach),
    ("torch/optim/*", &["_fused_*"], WorkSign::Fused),
    ("torch/nn/parallel/distributed", &["_ddp_init_helper"], WorkSign::Buckets),
    // FSDP of `fully_shard`, and of flat parameters.
    ("torch/distributed/*", &["foreach_all_gather", "foreach_all_gather_copy_out", "_all_gather_flat_param", "_alloc_padded_unsharded_flat_param"], WorkSign::Gathers),
    ("torch/distributed/*", &["foreach_reduce", "_reduce_grad"], WorkSign::Reduces),
];

/// Operators and nodes: the first row that fits decides.
#[rustfmt::skip]
const OPERATORS: [(&[&str], WorkSign); 9] = [
    (&["cross_entropy_loss", "log_softmax_*", "_log_softmax", "special_log_softmax"], WorkSign::CrossEntropy),
    (&["LogSoftmaxBackward*", "NllLoss*"], WorkSign::CrossEntropyBackward),
    (&["softmax_*", "_softmax", "_safe_softmax", "special_softmax"], WorkSign::Softmax),
    (&["SoftmaxBackward*"], WorkSign::SoftmaxBackward),
    (&["scaled_dot_product_attention", "_scaled_dot_product_attention_math"], WorkSign::Attention),
    (&["_foreach_*"], WorkSign::Foreach),
    (&["_fused_adam*", "_fused_sgd*", "_fused_adagrad*"], WorkSign::Fused),
    (&["to_*", "_to_copy", "clone", "contiguous", "reshape"], WorkSign::Copies),
    (&["linear", "addmm", "mm", "matmul", "bmm", "baddbmm", "einsum", "conv*"], WorkSign::Multiplies),
];

/// Functions of C++ that are no operators: by the beginning of their names.
const REDUCER: [&str; 3] =
    ["c10d::Reducer::Reducer(", "c10d::Reducer::initialize_buckets(", "c10d::Reducer::rebuild_buckets("];

/// What a function of Python says, by its module.
pub(super) fn of_function(module: &str, name: &str) -> WorkSign {
    let fitting = FUNCTIONS.iter().find(|(modules, names, _)| fits(modules, module) && any(names, name));
    fitting.map_or(WorkSign::Nothing, |(.., sign)| *sign)
}

/// What a function of C++ says.
pub(super) fn of_native(name: &str) -> WorkSign {
    if REDUCER.iter().any(|beginning| name.starts_with(beginning)) {
        return WorkSign::Buckets;
    }
    let Some(operator) = cpp::operator(name) else { return WorkSign::Nothing };
    let fitting = OPERATORS.iter().find(|(operators, _)| any(operators, operator));
    fitting.map_or(WorkSign::Other, |(_, sign)| *sign)
}

fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_told_from_those_that_only_begin_like_them() {
        for (name, sign) in [
            ("at::_ops::log_softmax_int::call(at::Tensor const&, long)", WorkSign::CrossEntropy),
            (
                "at::_ops::_log_softmax::redispatch(c10::DispatchKeySet, at::Tensor const&)",
                WorkSign::CrossEntropy,
            ),
            ("at::_ops::_log_softmax_backward_data::call(at::Tensor const&)", WorkSign::Other),
            (
                "torch::autograd::generated::LogSoftmaxBackward0::apply(std::vector<at::Tensor>&&)",
                WorkSign::CrossEntropyBackward,
            ),
            (
                "torch::autograd::generated::NllLoss2DBackward0::apply(std::vector<at::Tensor>&&)",
                WorkSign::CrossEntropyBackward,
            ),
            ("at::_ops::_softmax::call(at::Tensor const&, long, bool)", WorkSign::Softmax),
            ("at::_ops::_softmax_backward_data::call(at::Tensor const&)", WorkSign::Other),
            (
                "torch::autograd::generated::SoftmaxBackward0::apply(std::vector<at::Tensor>&&)",
                WorkSign::SoftmaxBackward,
            ),
            ("at::_ops::_foreach_sqrt::call(c10::ArrayRef<at::Tensor>)", WorkSign::Foreach),
            ("at::_ops::_fused_adamw_::call(c10::ArrayRef<at::Tensor>)", WorkSign::Fused),
            ("at::_ops::_fused_dropout::call(at::Tensor const&, double)", WorkSign::Other),
            ("at::_ops::to_dtype::call(at::Tensor const&, c10::ScalarType)", WorkSign::Copies),
            ("at::_ops::conv2d::call(at::Tensor const&, at::Tensor const&)", WorkSign::Multiplies),
            ("c10d::Reducer::rebuild_buckets()", WorkSign::Buckets),
            ("c10d::Reducer::run_comm_hook(c10d::GradBucket&)", WorkSign::Nothing),
            ("at::native::log_softmax(at::Tensor const&, long)", WorkSign::Nothing),
        ] {
            assert_eq!(of_native(name), sign, "{name}");
        }
    }

    #[test]
    fn functions_say_something_in_their_own_modules_alone() {
        assert_eq!(of_function("torch/nn/functional", "cross_entropy"), WorkSign::CrossEntropy);
        assert_eq!(of_function("/home/me/losses", "cross_entropy"), WorkSign::Nothing);
        assert_eq!(of_function("torch/optim/adamw", "_multi_tensor_adamw"), WorkSign::Foreach);
        assert_eq!(of_function("torch/optim/adam", "_single_tensor_adam"), WorkSign::Nothing);
        let collectives = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives";
        assert_eq!(of_function(collectives, "foreach_all_gather"), WorkSign::Gathers);
        assert_eq!(of_function(collectives, "foreach_reduce"), WorkSign::Reduces);
        assert_eq!(
            of_function("transformers/models/bert/modeling_bert", "eager_attention_forward"),
            WorkSign::Attention
        );
    }
}
