//! The table of Python functions: what they say, by module and name.
//!
//! Rows are tried in their order, and the first that fits decides. Read off the sources of PyTorch 2.1 to 2.15, transformers
//! 5, accelerate 1.15, Lightning 1.9 to 2.6, timm 1.0 and safetensors 0.6; DeepSpeed's come from its documentation.

use super::evidence::{CHECKOUTS, TORCH_FILES, TORCH_FOLDERS};
use super::signs::{GraphSign, MemorySign, PhaseSign};

/// What a function says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) phase: PhaseSign,
    pub(super) memory: MemorySign,
    pub(super) graph: GraphSign,
}

/// A row: modules, functions, and what they say.
type Row = (&'static str, &'static [&'static str], Said);

const fn phase(phase: PhaseSign) -> Said {
    Said { phase, memory: MemorySign::Nothing, graph: GraphSign::Nothing }
}

const fn memory(memory: MemorySign) -> Said {
    Said { phase: PhaseSign::Nothing, memory, graph: GraphSign::Nothing }
}

const fn both(phase: PhaseSign, memory: MemorySign) -> Said {
    Said { phase, memory, graph: GraphSign::Nothing }
}

const fn scaler(phase: PhaseSign, graph: GraphSign) -> Said {
    Said { phase, memory: MemorySign::Nothing, graph }
}

/// Any function.
const ANY: &[&str] = &["*"];

/// Says nothing: what comes below does not hold for it.
const SILENT: Said = phase(PhaseSign::Nothing);

/// A `*` at an end stands for anything.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    // Modules.
    ("torch/nn/modules/module", &["_call_impl", "_wrapped_call_impl", "inner"], phase(PhaseSign::ModuleCall)),
    // Modules of gpytorch (1.15) call `forward` themselves.
    ("gpytorch/module", &["__call__"], phase(PhaseSign::ModuleCall)),
    ("gpytorch/models/exact_gp", &["__call__"], phase(PhaseSign::ModuleCall)),
    ("torch/nn/modules/module", &["zero_grad"], phase(PhaseSign::ZeroGrad)),
    ("torch/nn/modules/module", &["<lambda>", "_apply", "bfloat16", "convert", "cuda", "double", "float", "half", "to", "to_empty"],
        both(PhaseSign::Building, MemorySign::Move)),
    ("torch/nn/modules/module", &["_load_from_state_dict", "load", "load_state_dict"], both(PhaseSign::Building, MemorySign::Fill)),
    ("torch/nn/modules/loss", ANY, memory(MemorySign::Loss)),
    // A lazy layer makes its parameters when it is first called.
    ("torch/nn/modules/lazy", &["_infer_parameters"], memory(MemorySign::Build)),
    ("torch/nn/parameter", &["materialize"], memory(MemorySign::Build)),
    ("torch/nn/modules/*", &["__init__", "_reset_parameters", "reset_parameters"], memory(MemorySign::Build)),
    // New parameters, computed from those of two layers.
    ("torch/nn/utils/fusion", &["fuse_conv_bn_weights", "fuse_linear_bn_weights"], memory(MemorySign::Build)),
    ("torch/nn/init", ANY, both(PhaseSign::Building, MemorySign::Build)),
    ("torch/nn/functional", &["*_loss", "cross_entropy", "kl_div", "log_softmax"], both(PhaseSign::Functional, MemorySign::Loss)),
    ("torch/nn/functional", ANY, phase(PhaseSign::Functional)),
    ("torch/nn/utils/parametri*", ANY, memory(MemorySign::Reparametrizes)),
    ("torch/nn/utils/prune", ANY, memory(MemorySign::Reparametrizes)),
    ("torch/nn/utils/spectral_norm", ANY, memory(MemorySign::Reparametrizes)),
    ("torch/nn/utils/weight_norm", ANY, memory(MemorySign::Reparametrizes)),
    ("torch/nn/parallel/distributed", ANY, memory(MemorySign::Replicated)),
    // Copies and files.
    ("torch/_tensor", &["__deepcopy__"], memory(MemorySign::CopyTensor)),
    ("torch/nn/parameter", &["__deepcopy__"], memory(MemorySign::CopyParameter)),
    ("python/copy", &["_deepcopy*", "_reconstruct", "deepcopy"], memory(MemorySign::Copy)),
    ("torch/serialization", ANY, both(PhaseSign::Building, MemorySign::Read)),
    ("torch/_weights_only_unpickler", ANY, both(PhaseSign::Building, MemorySign::Read)),
    ("safetensors/*", ANY, memory(MemorySign::Read)),
    ("huggingface_hub/serialization/_torch", &["load*"], memory(MemorySign::Read)),
    ("transformers/core_model_loading", ANY, memory(MemorySign::Read)),
    ("transformers/*", &["*load_state_dict*"], memory(MemorySign::Read)),
    ("accelerate/utils/modeling", ANY, memory(MemorySign::Read)),
    ("torchmetrics/metric", &["wrapped_func"], memory(MemorySign::Measures)),
    ("torch/optim/swa_utils", ANY, memory(MemorySign::Average)),
    ("diffusers/training_utils", ANY, memory(MemorySign::Average)),
    ("ema_pytorch/*", ANY, memory(MemorySign::Average)),
    ("lightning/pytorch/callbacks/weight_averaging", ANY, memory(MemorySign::Average)),
    ("torch_ema/*", ANY, memory(MemorySign::Average)),
    ("timm/utils/model_ema", ANY, memory(MemorySign::Average)),
    // New weights, computed from the old ones and the adapter.
    ("peft/tuners/*", &["merge", "unmerge"], memory(MemorySign::Build)),
    ("peft/tuners/*", &["_create_and_replace", "_move_adapter_to_device_of_base_layer", "cast_adapter_dtype", "inject_adapter", "update_layer"],
        memory(MemorySign::Adapts)),
    // Optimizers.
    ("torch/optim/lr_scheduler", ANY, SILENT),
    ("torch/optim/*", &["zero_grad"], phase(PhaseSign::ZeroGrad)),
    ("torch/optim/*", &["__init__", "__setstate__", "add_param_group", "load_state_dict"], phase(PhaseSign::OptimizerSetup)),
    ("torch/optim/optimizer", ANY, phase(PhaseSign::OptimizerHook)),
    ("torch/optim/lbfgs", ANY, both(PhaseSign::Optimizer, MemorySign::History)),
    ("torch/optim/*", ANY, phase(PhaseSign::Optimizer)),
    ("deepspeed/*", &["*optimizer_state*"], phase(PhaseSign::OptimizerSetup)),
    ("torch/nn/utils/clip_grad", ANY, phase(PhaseSign::Clip)),
    ("torch/amp/grad_scaler", &["unscale_"], scaler(PhaseSign::Clip, GraphSign::Unscales)),
    ("torch/amp/grad_scaler", &["*unscale*"], phase(PhaseSign::Clip)),
    ("torch/amp/grad_scaler", &["_maybe_opt_step"], scaler(PhaseSign::ScalerStep, GraphSign::Steps)),
    ("torch/amp/grad_scaler", &["step", "update"], phase(PhaseSign::ScalerStep)),
    ("torch/cuda/amp/grad_scaler", &["unscale_"], scaler(PhaseSign::Clip, GraphSign::Unscales)),
    ("torch/cuda/amp/grad_scaler", &["*unscale*"], phase(PhaseSign::Clip)),
    ("torch/cuda/amp/grad_scaler", &["_maybe_opt_step"], scaler(PhaseSign::ScalerStep, GraphSign::Steps)),
    ("torch/cuda/amp/grad_scaler", &["step", "update"], phase(PhaseSign::ScalerStep)),
    // The backward pass.
    ("torch/utils/checkpoint", &["recompute_fn", "unpack_hook"], phase(PhaseSign::Recompute)),
    ("torch/utils/checkpoint", &["backward"], phase(PhaseSign::CheckpointBackward)),
    ("torch/autograd/function", &["apply"], phase(PhaseSign::FunctionApply)),
    ("torch/_tensor", &["backward"], phase(PhaseSign::Backward)),
    ("torch/autograd/__init__", &["_make_grads", "backward", "grad"], phase(PhaseSign::Backward)),
    ("torch/autograd/graph", &["_engine_run_backward"], phase(PhaseSign::Backward)),
    // What calls what it wraps, and what starts programs.
    ("python/contextlib", ANY, phase(PhaseSign::Wrapper)),
    ("python/functools", ANY, phase(PhaseSign::Wrapper)),
    ("python/runpy", ANY, phase(PhaseSign::Wrapper)),
    ("python/threading", ANY, phase(PhaseSign::Thread)),
    ("torch/_dynamo/eval_frame", ANY, phase(PhaseSign::Wrapper)),
    // Transforms of functions call the function that they are given.
    ("torch/_functorch/apis", ANY, phase(PhaseSign::Wrapper)),
    ("torch/_functorch/eager_transforms", ANY, phase(PhaseSign::Wrapper)),
    ("torch/_functorch/functional_call", ANY, phase(PhaseSign::Wrapper)),
    ("torch/_functorch/vmap", ANY, both(PhaseSign::Wrapper, MemorySign::Vectorizes)),
    ("torch/nn/utils/stateless", ANY, phase(PhaseSign::Wrapper)),
    ("torch/amp/autocast_mode", ANY, phase(PhaseSign::Wrapper)),
    ("torch/distributed/elastic/*", ANY, phase(PhaseSign::Wrapper)),
    ("torch/distributed/launch", ANY, phase(PhaseSign::Wrapper)),
    ("torch/distributed/launcher/*", ANY, phase(PhaseSign::Wrapper)),
    ("torch/distributed/run", ANY, phase(PhaseSign::Wrapper)),
    ("torch/multiprocessing/*", ANY, phase(PhaseSign::Wrapper)),
    ("torch/profiler/profiler", ANY, phase(PhaseSign::Wrapper)),
    ("torch/utils/_contextlib", ANY, phase(PhaseSign::Wrapper)),
    ("accelerate/commands/*", ANY, phase(PhaseSign::Wrapper)),
    ("accelerate/launchers", ANY, phase(PhaseSign::Wrapper)),
    // Several ranks. DTensor's dispatch stands inside of whatever uses it.
    ("torch/distributed/_state_dict_utils", ANY, memory(MemorySign::Gathers)),
    ("torch/distributed/tensor/_api", &["full_tensor"], memory(MemorySign::Gathers)),
    ("torch/distributed/tensor/*", ANY, SILENT),
    // Hooks by which DDP reduces gradients: what they keep is theirs.
    ("torch/distributed/algorithms/ddp_comm_hooks/*", ANY, memory(MemorySign::Replicated)),
    ("torch/distributed/*", ANY, memory(MemorySign::Sharded)),
    ("deepspeed/*", ANY, memory(MemorySign::Sharded)),
    // Batches and evaluation.
    ("torch/utils/data/dataloader", ANY, phase(PhaseSign::Input)),
    ("torch/utils/data/_utils/pin_memory", ANY, phase(PhaseSign::Input)),
    ("lightning/pytorch/loops/evaluation_loop", ANY, phase(PhaseSign::Evaluation)),
    ("lightning/pytorch/loops/prediction_loop", ANY, phase(PhaseSign::Evaluation)),
    ("pytorch_lightning/loops/evaluation_loop", ANY, phase(PhaseSign::Evaluation)),
    ("pytorch_lightning/loops/prediction_loop", ANY, phase(PhaseSign::Evaluation)),
    ("pytorch_lightning/loops/dataloader/evaluation_loop", ANY, phase(PhaseSign::Evaluation)),
    ("pytorch_lightning/loops/dataloader/prediction_loop", ANY, phase(PhaseSign::Evaluation)),
    ("transformers/trainer", &["evaluate", "evaluation_loop", "predict", "prediction_step"], phase(PhaseSign::Evaluation)),
    // The allocator.
    ("torch/*", &["empty_cache"], memory(MemorySign::EmptyCache)),
    ("torch/cuda/graphs", &["__enter__"], memory(MemorySign::Captures)),
    ("torch/cuda/graphs", &["make_graphed_callables"], memory(MemorySign::CapturesApart)),
];

/// Functions that move batches to the device, in every package.
const MOVERS: [&str; 5] = [
    "_prepare_inputs",
    "batch_to_device",
    "move_data_to_device",
    "send_to_device",
    "transfer_batch_to_device",
];

/// What a function says, by its module.
pub(super) fn said(module: &str, name: &str) -> Said {
    let fitting = ROWS
        .iter()
        .find(|(modules, names, _)| fits(modules, module) && names.iter().any(|pattern| fits(pattern, name)));
    fitting.map_or(SILENT, |(.., said)| *said)
}

/// Whether a function of a package moves batches to the device.
pub(super) fn moves_batches(name: &str) -> bool {
    MOVERS.contains(&name)
}

/// How much of a module's name, in bytes, stands in the table: all of it, or its folders up to the last one that does.
pub(super) fn known(module: &str) -> usize {
    let whole = ROWS.iter().any(|(modules, ..)| *modules == module)
        || TORCH_FILES.contains(&module)
        || CHECKOUTS.iter().any(|(modules, _)| *modules == module);
    if whole {
        return module.len();
    }
    let folders = ROWS.iter().filter_map(|(modules, ..)| modules.strip_suffix('*')).chain(TORCH_FOLDERS);
    let package = module.find('/').map_or(0, |at| at + 1);
    folders.filter(|folder| module.starts_with(folder)).map(str::len).fold(package, usize::max)
}

/// Whether a text fits a pattern: with a `*` at either end.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => pattern == text,
        (None, Some(beginning)) => text.starts_with(beginning),
        (Some(end), None) => text.ends_with(end),
        (Some(_), Some(_)) => text.contains(pattern.trim_matches('*')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_decides() {
        for (module, name, phase) in [
            ("torch/optim/adam", "_init_group", PhaseSign::Optimizer),
            ("torch/optim/adam", "__init__", PhaseSign::OptimizerSetup),
            ("torch/optim/optimizer", "wrapper", PhaseSign::OptimizerHook),
            ("torch/optim/optimizer", "zero_grad", PhaseSign::ZeroGrad),
            ("torch/optim/lr_scheduler", "step", PhaseSign::Nothing),
            ("torch/nn/functional", "relu", PhaseSign::Functional),
            ("torch/cuda/amp/grad_scaler", "_unscale_grads_", PhaseSign::Clip),
            ("torch/distributed/elastic/multiprocessing/errors/__init__", "wrapper", PhaseSign::Wrapper),
            ("/home/me/muon", "step", PhaseSign::Nothing),
        ] {
            assert_eq!(said(module, name).phase, phase, "{module} {name}");
        }
        assert_eq!(said("torch/optim/lbfgs", "step").memory, MemorySign::History);
        assert_eq!(said("torch/nn/functional", "mse_loss").memory, MemorySign::Loss);
        assert_eq!(said("torch/nn/modules/linear", "reset_parameters").memory, MemorySign::Build);
        assert_eq!(said("torch/nn/utils/fusion", "fuse_conv_bn_weights").memory, MemorySign::Build);
        assert_eq!(said("torch/_functorch/eager_transforms", "vjp").phase, PhaseSign::Wrapper);
        assert_eq!(said("torch/distributed/tensor/_dispatch", "dispatch"), SILENT);
        assert_eq!(said("torch/distributed/fsdp/_fully_shard/_fsdp_param", "to").memory, MemorySign::Sharded);
        let hook = said("torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook", "powerSGD_hook");
        assert_eq!(hook.memory, MemorySign::Replicated);
        assert_eq!(said("torch/xpu/memory", "empty_cache").memory, MemorySign::EmptyCache);
        assert_eq!(said("torch/cuda/graphs", "__enter__").memory, MemorySign::Captures);
        assert_eq!(said("torch/cuda/graphs", "make_graphed_callables").memory, MemorySign::CapturesApart);
        assert_eq!(said("timm/utils/model_ema", "__init__").memory, MemorySign::Average);
        assert_eq!(said("torchmetrics/metric", "wrapped_func").memory, MemorySign::Measures);
    }

    #[test]
    fn every_row_can_be_reached() {
        for (at, (module, names, said)) in ROWS.iter().enumerate() {
            let before = ROWS.get(..at).unwrap();
            let covered = |name: &&&str| {
                before.iter().any(|(modules, names, _)| {
                    fits(modules, module) && names.iter().any(|pattern| pattern == *name || *pattern == "*")
                })
            };
            assert!(!names.iter().all(|name| covered(&name)), "{module} {names:?} {said:?} comes too late");
        }
    }
}
