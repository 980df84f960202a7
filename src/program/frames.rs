//! The vocabulary of frames: what a Python function says about the moment, and whose code it is.
//!
//! In: the distinct frames of a snapshot. Out: for each its [`Origin`] and its [`Meaning`]. Files are matched by the end
//! of their path, since every installation has another prefix; names are bare `co_name`s. The entries were read off
//! the sources of PyTorch 2.1 to 2.15, transformers 5, accelerate 1.15 and Lightning 2.6; only recordings of PyTorch 2.11
//! test them.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::snapshot::{Frame, Snapshot};
use crate::unit::{FrameId, Index, StringId};

/// Whose code a frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The user's own.
    User,
    /// An installed package other than PyTorch, or Python's standard library.
    Library,
    /// PyTorch.
    Torch,
    /// Python that a compiler wrote (Inductor, FX): nobody edits it.
    Generated,
    /// C++.
    Native,
}

/// What a frame says about what the program is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// A module is being called.
    ModuleCall,
    /// A functional operator of `torch.nn`.
    Functional,
    /// A module is moved, cast or filled (`to`, `cuda`, `load_state_dict`), a checkpoint read, weights initialised.
    Building,
    /// `__init__` of code outside PyTorch.
    Constructor,
    /// Gradients are cleared.
    ZeroGrad,
    /// The forward runs again for the backward.
    Recompute,
    /// The backward of a reentrant checkpoint: recomputes first, then differentiates.
    CheckpointBackward,
    /// The backward pass was entered from Python.
    Backward,
    /// `torch.autograd.Function.apply`: of a forward, or of a backward on the engine's thread.
    FunctionApply,
    /// Gradients are clipped or unscaled.
    Clip,
    /// The gradient scaler decides whether to step.
    ScalerStep,
    /// Inside an optimizer.
    Optimizer,
    /// The wrapper that PyTorch puts around every optimizer's `step`.
    OptimizerHook,
    /// An optimizer is built or loaded.
    OptimizerSetup,
    /// A batch is fetched or moved to the device.
    Input,
    /// A framework's evaluation or prediction loop.
    Evaluation,
    /// A decorator: it calls the function that it wraps, and says nothing itself.
    Wrapper,
    /// C++ of the autograd engine.
    Engine,
    /// Nothing in particular.
    Plain,
}

/// A Python function: a name in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FunctionId(u32);

/// What is known of one distinct frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) origin: Origin,
    pub(super) meaning: Meaning,
    pub(super) function: FunctionId,
    pub(super) line: u32,
}

/// Origin and meaning of every distinct frame.
#[derive(Debug)]
pub struct Vocabulary {
    entries: Vec<Entry>,
}

impl Vocabulary {
    /// Looks up every frame of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Vocabulary {
        let mut functions: FxHashMap<(StringId, StringId), FunctionId> = FxHashMap::default();
        let mut entries = Vec::with_capacity(snapshot.stacks.frame_count());
        for id in snapshot.stacks.frame_ids() {
            let Some(frame) = snapshot.stacks.frame(id) else { break };
            let next = FunctionId(u32::try_from(functions.len()).unwrap_or(u32::MAX));
            let function = *functions.entry((frame.file, frame.name)).or_insert(next);
            let (origin, meaning) = look_up(snapshot, frame);
            entries.push(Entry { origin, meaning, function, line: frame.line });
        }
        Vocabulary { entries }
    }

    /// Whose code a frame runs.
    pub fn origin(&self, frame: FrameId) -> Origin {
        self.entry(frame).map_or(Origin::Native, |entry| entry.origin)
    }

    /// What a frame says about the moment.
    pub fn meaning(&self, frame: FrameId) -> Meaning {
        self.entry(frame).map_or(Meaning::Plain, |entry| entry.meaning)
    }

    pub(super) fn entry(&self, frame: FrameId) -> Option<&Entry> {
        self.entries.get(frame.position())
    }
}

fn look_up(snapshot: &Snapshot, frame: Frame) -> (Origin, Meaning) {
    let (file, name) = (snapshot.text(frame.file), snapshot.text(frame.name));
    if file.contains('\\') {
        let file = file.replace('\\', "/");
        return (origin_of(&file), meaning_of(&file, name));
    }
    (origin_of(file), meaning_of(file, name))
}

/// Folders that packages are installed to, and the standard library's.
const INSTALLED: [&str; 4] = ["site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3"];

/// Folders of PyTorch that also tell a checkout of its sources.
const TORCH: [&str; 9] = [
    "-packages/torch/",
    "/torch/nn/modules/",
    "/torch/optim/",
    "/torch/autograd/",
    "/torch/_dynamo/",
    "/torch/_inductor/",
    "/torch/_functorch/",
    "/torch/utils/data/",
    "/torch/distributed/",
];

/// How files of Python code end. (Cython's own frames look like Python's.)
const PYTHON: [&str; 2] = [".py", ".pyx"];

/// Whose code a file holds. A file counts as the user's unless something says otherwise.
fn origin_of(file: &str) -> Origin {
    if file.starts_with("<eval_with_key>")
        || file.contains("/torchinductor_")
        || file.contains("fx_generated_")
    {
        return Origin::Generated;
    }
    let notebook = file.starts_with("<ipython-input") || file == "<stdin>";
    if file.starts_with('<') && !notebook {
        return Origin::Library;
    }
    let is_python = notebook || PYTHON.iter().any(|ending| file.ends_with(ending));
    if !is_python {
        return Origin::Native;
    }
    if TORCH.iter().any(|folder| file.contains(folder)) {
        return Origin::Torch;
    }
    if INSTALLED.iter().any(|folder| file.contains(folder)) || is_framework(file) {
        return Origin::Library;
    }
    Origin::User
}

/// Frameworks that are often installed from a checkout, where no folder tells them from the user's code.
const FRAMEWORKS: [&str; 5] = [
    "/src/transformers/",
    "/src/accelerate/",
    "/src/lightning/",
    "/lightning/pytorch/",
    "/pytorch_lightning/",
];

fn is_framework(file: &str) -> bool {
    FRAMEWORKS.iter().any(|folder| file.contains(folder))
}

/// Files that every checkout of PyTorch or of a framework has, and by which [`meaning_of`] tells what goes on.
#[rustfmt::skip]
const CHECKED_OUT: [&str; 39] = [
    "/lightning/pytorch/loops/evaluation_loop.py", "/lightning/pytorch/loops/prediction_loop.py",
    "/pytorch_lightning/loops/evaluation_loop.py", "/pytorch_lightning/loops/prediction_loop.py",
    "/src/accelerate/accelerator.py", "/src/accelerate/data_loader.py", "/src/accelerate/utils/operations.py",
    "/src/transformers/trainer.py", "/torch/_dynamo/eval_frame.py", "/torch/_tensor.py",
    "/torch/amp/autocast_mode.py", "/torch/amp/grad_scaler.py", "/torch/autograd/__init__.py",
    "/torch/autograd/function.py", "/torch/autograd/graph.py", "/torch/cuda/amp/grad_scaler.py",
    "/torch/distributed/elastic/multiprocessing/errors/__init__.py", "/torch/distributed/launcher/api.py",
    "/torch/multiprocessing/spawn.py", "/torch/nn/functional.py", "/torch/nn/init.py",
    "/torch/nn/modules/module.py", "/torch/nn/utils/clip_grad.py", "/torch/optim/adagrad.py",
    "/torch/optim/adam.py", "/torch/optim/adamw.py", "/torch/optim/lbfgs.py", "/torch/optim/lr_scheduler.py",
    "/torch/optim/nadam.py", "/torch/optim/optimizer.py", "/torch/optim/radam.py", "/torch/optim/rmsprop.py",
    "/torch/optim/sgd.py", "/torch/profiler/profiler.py", "/torch/serialization.py",
    "/torch/utils/_contextlib.py", "/torch/utils/checkpoint.py", "/torch/utils/data/_utils/pin_memory.py",
    "/torch/utils/data/dataloader.py",
];

/// Where the part of a path begins that is the same in every checkout of PyTorch or of a framework, if the file is one
/// that they are known to have.
pub(crate) fn checkout(file: &str) -> Option<usize> {
    let known = CHECKED_OUT.iter().find(|known| file.ends_with(**known))?;
    Some(file.len() - known.len() + 1)
}

/// The folders in a path by which a checkout of PyTorch or of a framework is told, without what is around them.
pub(crate) fn framework_folders(file: &str) -> Option<Range<usize>> {
    let folders = TORCH.iter().chain(&FRAMEWORKS).filter(|folder| folder.starts_with('/'));
    let found = folders.filter_map(|folder| Some((file.find(folder)?, folder.len())));
    found.min().map(|(start, length)| start + 1..start + length)
}

/// Files whose functions only call what they wrap.
const WRAPPERS: [&str; 9] = [
    "torch/utils/_contextlib.py",
    "torch/_dynamo/eval_frame.py",
    "torch/amp/autocast_mode.py",
    "torch/multiprocessing/spawn.py",
    "torch/distributed/elastic/multiprocessing/errors/__init__.py",
    "torch/distributed/launcher/api.py",
    "torch/profiler/profiler.py",
    "/contextlib.py",
    "/functools.py",
];

fn meaning_of(file: &str, name: &str) -> Meaning {
    if let Some(meaning) = torch_module(file, name).or_else(|| torch_autograd(file, name)) {
        return meaning;
    }
    if file.contains("/torch/optim/") {
        return optimizer(file, name);
    }
    if WRAPPERS.iter().any(|wrapper| file.ends_with(wrapper)) {
        return Meaning::Wrapper;
    }
    if let Some(meaning) = input_or_evaluation(file, name) {
        return meaning;
    }
    if file.ends_with("torch/serialization.py") || file.ends_with("torch/nn/init.py") {
        return Meaning::Building;
    }
    match origin_of(file) {
        Origin::Native if is_engine(name) => Meaning::Engine,
        Origin::User | Origin::Library if name == "__init__" => Meaning::Constructor,
        _ => Meaning::Plain,
    }
}

fn torch_module(file: &str, name: &str) -> Option<Meaning> {
    if file.ends_with("torch/nn/modules/module.py") {
        return match name {
            "_call_impl" | "_wrapped_call_impl" => Some(Meaning::ModuleCall),
            "zero_grad" => Some(Meaning::ZeroGrad),
            "to" | "cuda" | "half" | "bfloat16" | "float" | "_apply" | "load_state_dict" => {
                Some(Meaning::Building)
            }
            _ => Some(Meaning::Plain),
        };
    }
    file.ends_with("torch/nn/functional.py").then_some(Meaning::Functional)
}

fn torch_autograd(file: &str, name: &str) -> Option<Meaning> {
    if file.ends_with("torch/utils/checkpoint.py") {
        return match name {
            "recompute_fn" | "unpack_hook" => Some(Meaning::Recompute),
            "backward" => Some(Meaning::CheckpointBackward),
            _ => Some(Meaning::Plain),
        };
    }
    if file.ends_with("torch/autograd/function.py") {
        return Some(if name == "apply" { Meaning::FunctionApply } else { Meaning::Plain });
    }
    let entry = ["torch/_tensor.py", "torch/autograd/__init__.py", "torch/autograd/graph.py"];
    if entry.iter().any(|one| file.ends_with(one)) {
        let backward = matches!(name, "backward" | "grad" | "_make_grads" | "_engine_run_backward");
        return Some(if backward { Meaning::Backward } else { Meaning::Plain });
    }
    if file.ends_with("torch/nn/utils/clip_grad.py") {
        return Some(Meaning::Clip);
    }
    if file.ends_with("amp/grad_scaler.py") {
        return match name {
            _ if name.contains("unscale") => Some(Meaning::Clip),
            "step" | "_maybe_opt_step" | "update" => Some(Meaning::ScalerStep),
            _ => Some(Meaning::Plain),
        };
    }
    None
}

fn optimizer(file: &str, name: &str) -> Meaning {
    if file.ends_with("lr_scheduler.py") {
        return Meaning::Plain;
    }
    match name {
        "zero_grad" => Meaning::ZeroGrad,
        "__init__" | "add_param_group" | "load_state_dict" | "__setstate__" => Meaning::OptimizerSetup,
        _ if file.ends_with("optimizer.py") => Meaning::OptimizerHook,
        _ => Meaning::Optimizer,
    }
}

fn input_or_evaluation(file: &str, name: &str) -> Option<Meaning> {
    if file.ends_with("torch/utils/data/dataloader.py")
        || file.ends_with("torch/utils/data/_utils/pin_memory.py")
    {
        return Some(Meaning::Input);
    }
    let moves = [
        "send_to_device",
        "_prepare_inputs",
        "batch_to_device",
        "move_data_to_device",
        "transfer_batch_to_device",
    ];
    if moves.contains(&name) && origin_of(file) == Origin::Library {
        return Some(Meaning::Input);
    }
    let trainer = file.ends_with("transformers/trainer.py")
        && matches!(name, "evaluate" | "evaluation_loop" | "prediction_step" | "predict");
    let lightning = file.contains("lightning")
        && (file.ends_with("/evaluation_loop.py") || file.ends_with("/prediction_loop.py"));
    (trainer || lightning).then_some(Meaning::Evaluation)
}

/// C++ functions below which only the backward pass runs.
fn is_engine(name: &str) -> bool {
    name.contains("torch::autograd::Engine") || name.contains("torch::autograd::Node::operator")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_where_they_lie() {
        assert_eq!(origin_of("/home/me/train.py"), Origin::User);
        assert_eq!(origin_of("<ipython-input-3-0123>"), Origin::User);
        assert_eq!(origin_of("/opt/venv/lib/python3.12/site-packages/timm/models/vit.py"), Origin::Library);
        assert_eq!(origin_of("/usr/lib/python3.12/copy.py"), Origin::Library);
        assert_eq!(origin_of("<frozen runpy>"), Origin::Library);
        assert_eq!(origin_of("/opt/venv/lib/python3.12/site-packages/torch/_tensor.py"), Origin::Torch);
        assert_eq!(origin_of("/tmp/torchinductor_me/ql/cqlct.py"), Origin::Generated);
        assert_eq!(
            origin_of("/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so"),
            Origin::Native
        );
        assert_eq!(origin_of("??"), Origin::Native);
    }

    #[test]
    fn a_custom_optimizer_and_a_scheduler_are_no_optimizer_frames_of_torch() {
        assert_eq!(meaning_of("/x/site-packages/torch/optim/adam.py", "_init_group"), Meaning::Optimizer);
        assert_eq!(
            meaning_of("/x/site-packages/torch/optim/optimizer.py", "wrapper"),
            Meaning::OptimizerHook
        );
        assert_eq!(meaning_of("/x/site-packages/torch/optim/lr_scheduler.py", "step"), Meaning::Plain);
        assert_eq!(meaning_of("/home/me/muon.py", "step"), Meaning::Plain);
    }
}
