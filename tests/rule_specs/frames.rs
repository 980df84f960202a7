//! The frames of recordings: PyTorch's own in each phase, and the user's.
//!
//! In: a phase, or a place of a script. Out: frames as PyTorch writes them, innermost first.

use crate::language::{Phase, Place};
use crate::shape::Frame;

pub(crate) const TORCH: &str = "/usr/lib/python3/site-packages/torch";
const PACKAGES: &str = "/usr/lib/python3/site-packages";
const STANDARD: &str = "/usr/lib/python3.12";
const PROJECT: &str = "/home/user/project";

pub(crate) const SETUP: [(&str, u32, &str); 3] = [
    ("nn/modules/module.py", 1097, "<lambda>"),
    ("nn/modules/module.py", 965, "_apply"),
    ("nn/modules/module.py", 1097, "cuda"),
];
pub(crate) const FORWARD: [(&str, u32, &str); 3] = [
    ("nn/modules/linear.py", 134, "forward"),
    ("nn/modules/module.py", 1790, "_call_impl"),
    ("nn/modules/module.py", 1779, "_wrapped_call_impl"),
];
const BACKWARD: [(&str, u32, &str); 2] =
    [("autograd/__init__.py", 364, "backward"), ("_tensor.py", 630, "backward")];
const PER_SAMPLE: [(&str, u32, &str); 3] = [
    ("autograd/__init__.py", 505, "grad"),
    ("_functorch/eager_transforms.py", 1483, "grad_and_value_impl"),
    ("_functorch/vmap.py", 316, "vmap_impl"),
];
pub(crate) const UNSCALE: [(&str, u32, &str); 3] = [
    ("amp/grad_scaler.py", 296, "_unscale_grads_"),
    ("amp/grad_scaler.py", 358, "unscale_"),
    ("amp/grad_scaler.py", 473, "step"),
];
pub(crate) const STEP: [(&str, u32, &str); 3] = [
    ("optim/adam.py", 610, "_multi_tensor_adam"),
    ("optim/adam.py", 226, "step"),
    ("optim/optimizer.py", 533, "wrapper"),
];

/// The frames of PyTorch's that run the autograd engine in a phase, innermost first.
pub(crate) fn calls_the_engine(phase: Phase) -> Option<&'static [(&'static str, u32, &'static str)]> {
    match phase {
        Phase::Backward => Some(&BACKWARD),
        Phase::PerSample => Some(&PER_SAMPLE),
        _ => None,
    }
}

pub(crate) fn torch_frame((file, line, name): &(&str, u32, &str)) -> Frame {
    Frame { name: (*name).to_owned(), filename: format!("{TORCH}/{file}"), line: *line }
}

pub(crate) fn user_frame(place: &Place, name: &str, line: u32) -> Frame {
    let packaged = ["torch/", "safetensors/", "peft/", "transformers/", "torchmetrics/"]
        .iter()
        .any(|start| place.file.starts_with(start));
    let folder = match place.file.as_str() {
        "copy.py" => STANDARD,
        _ if packaged => PACKAGES,
        _ => PROJECT,
    };
    Frame { name: name.to_owned(), filename: format!("{folder}/{}", place.file), line }
}
