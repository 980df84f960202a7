//! What a call gives, as far as its name tells: what PyTorch and its tensors have, and what no backward pass reaches through.

use ruff_python_ast::ExprCall;

use super::tree::{callee, method};

/// Methods whose result no backward pass reaches through.
const CUTS: [&str; 9] =
    ["item", "detach", "tolist", "numpy", "argmax", "argmin", "size", "numel", "requires_grad_"];
/// Functions of Python whose result is no tensor.
const NUMBERS: [&str; 6] = ["float", "int", "len", "bool", "str", "print"];

/// What tensors have, as far as programs ask for it of outputs and losses.
pub(super) const TENSORS: [&str; 46] = [
    "argmax",
    "argmin",
    "backward",
    "bfloat16",
    "clamp",
    "clone",
    "contiguous",
    "cpu",
    "cuda",
    "data",
    "detach",
    "device",
    "dim",
    "double",
    "dtype",
    "eq",
    "exp",
    "flatten",
    "float",
    "grad_fn",
    "half",
    "item",
    "log",
    "log_softmax",
    "long",
    "max",
    "mean",
    "min",
    "norm",
    "numel",
    "numpy",
    "permute",
    "pow",
    "reshape",
    "shape",
    "sigmoid",
    "size",
    "softmax",
    "sqrt",
    "squeeze",
    "std",
    "sum",
    "to",
    "transpose",
    "unsqueeze",
    "view",
];

/// Whether this is a function of PyTorch, by its path.
pub(super) fn makes_tensors(path: &str) -> bool {
    ["torch.", "F.", "nn.functional."].iter().any(|from| path.starts_with(from))
}

/// Whether no backward pass reaches through a call.
pub(super) fn is_cut(call: &ExprCall) -> bool {
    match method(call) {
        Some((_, name)) => CUTS.contains(&name),
        None => callee(call).is_some_and(|name| NUMBERS.contains(&name)),
    }
}
