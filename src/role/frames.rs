//! What one frame says about memory: a table of names of PyTorch and of the libraries under it.
//!
//! In: a frame's function and file. Out: its [`FrameKind`]. Files are matched by their tail, since the place of
//! `site-packages` differs; C++ frames are those whose file is no Python file (`torch/csrc/profiler/combined_traceback.cpp`
//! puts both kinds into one stack). Names were read off recordings of PyTorch 2.11; those of other versions and of
//! DeepSpeed and FSDP1 come from their sources' documentation and were not recorded.

/// What one frame says about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// C++: the caching allocator itself, or the recorder above it.
    Allocator,
    /// C++: makes a tensor's storage.
    Storage,
    /// C++: cuDNN, cuBLAS and the like.
    Vendor,
    /// C++: device-wide algorithms that need scratch memory (reductions, sorts, scans).
    Algorithm,
    /// C++: collectives.
    Collective,
    /// C++: a saved tensor is let go by the autograd graph.
    SavedVariable,
    /// C++: a gradient is added to the one that is there.
    Accumulation,
    /// C++: anything else.
    Native,
    /// Python: `zero_grad`.
    ZeroGrad,
    /// Python: code of `torch.optim`.
    Optimizer,
    /// Python: a module is called.
    ModuleCall,
    /// Python: a module's parameters and buffers are moved or cast.
    ModuleMove,
    /// Python: a layer makes or initialises its parameters.
    ModuleBuild,
    /// Python: `copy.deepcopy`.
    Copy,
    /// Python: a checkpoint is read.
    Load,
    /// Python: a wrapper for several ranks that keeps whole replicas (DDP).
    Replicated,
    /// Python: a wrapper for several ranks that shards parameters (FSDP, `DeepSpeed`).
    Sharded,
    /// Python: PyTorch's wrapper of every optimizer's `step`.
    StepWrapper,
    /// Python: the rest of PyTorch, and code that it generated.
    Torch,
    /// Python: `__init__` outside PyTorch.
    Constructor,
    /// Python: a function `step` outside PyTorch.
    Step,
    /// Python: any other code of an installed package.
    Package,
    /// Python: any other code.
    User,
}

/// The kind of a frame.
pub(super) fn classify(file: &str, name: &str) -> FrameKind {
    let python = std::path::Path::new(file).extension().is_some_and(|suffix| suffix == "py");
    if python || file.starts_with('<') { python_kind(file, name) } else { native_kind(name) }
}

fn native_kind(name: &str) -> FrameKind {
    let any = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if any(&["CachingAllocator", "torch::unwind", "CapturedTraceback", "gather_with_cpp"]) {
        FrameKind::Allocator
    } else if any(&["SavedVariable::reset_data", "~SavedVariable", "release_variables"]) {
        FrameKind::SavedVariable
    } else if name.contains("AccumulateGrad") {
        FrameKind::Accumulation
    } else if any(&["c10d::", "nccl", "NCCL"]) {
        FrameKind::Collective
    } else if any(&["gpu_reduce_kernel", "cub::", "thrust::", "segmented_sort", "nonzero_cuda"]) {
        FrameKind::Algorithm
    } else if any(&["empty_", "empty(", "torage", "resize_bytes"]) {
        FrameKind::Storage
    } else if any(&[
        "cudnn",
        "cublas",
        "BlasHandle",
        "CUDABlas",
        "cusparse",
        "cusolver",
        "cufft",
        "miopen",
        "hipblas",
    ]) {
        FrameKind::Vendor
    } else {
        FrameKind::Native
    }
}

fn python_kind(file: &str, name: &str) -> FrameKind {
    if let Some(kind) = torch_kind(file, name) {
        return kind;
    }
    let loads = file.contains("/safetensors/")
        || file.ends_with("accelerate/utils/modeling.py")
        || (file.contains("/transformers/")
            && (name.contains("load_state_dict") || file.ends_with("core_model_loading.py")));
    if file.contains("/deepspeed/") {
        if name.contains("optimizer_state") { FrameKind::Optimizer } else { FrameKind::Sharded }
    } else if file.contains("/torchinductor_") || file.starts_with("<eval_with_key>") {
        FrameKind::Torch
    } else if file.ends_with("/copy.py")
        && (name.starts_with("_deepcopy") || matches!(name, "deepcopy" | "_reconstruct"))
    {
        FrameKind::Copy
    } else if loads {
        FrameKind::Load
    } else {
        match name {
            "__init__" => FrameKind::Constructor,
            "step" => FrameKind::Step,
            _ if file.contains("-packages/") => FrameKind::Package,
            _ => FrameKind::User,
        }
    }
}

/// A file's path inside the `torch` package. Where packages are installed, only the one called `torch` counts: an
/// environment may lie in a folder of that name (`/opt/torch/.venv`).
fn torch_tail(file: &str) -> Option<&str> {
    match file.rfind("-packages/") {
        Some(installed) => file.get(installed + "-packages/".len()..)?.strip_prefix("torch/"),
        None => file.get(file.rfind("/torch/")? + "/torch/".len()..),
    }
}

/// The kind of a frame of the `torch` package; `None` for other files.
fn torch_kind(file: &str, name: &str) -> Option<FrameKind> {
    let tail = torch_tail(file)?;
    let kind = match tail {
        "nn/modules/module.py" => module_kind(name),
        "serialization.py" | "_weights_only_unpickler.py" => FrameKind::Load,
        "nn/init.py" => FrameKind::ModuleBuild,
        "nn/parallel/distributed.py" => FrameKind::Replicated,
        "optim/lr_scheduler.py" | "optim/swa_utils.py" => FrameKind::Torch,
        "optim/optimizer.py" if matches!(name, "wrapper" | "profile_hook_step") => FrameKind::StepWrapper,
        _ if tail.starts_with("optim/") && name == "zero_grad" => FrameKind::ZeroGrad,
        _ if tail.starts_with("optim/") => FrameKind::Optimizer,
        _ if tail.starts_with("nn/modules/")
            && matches!(name, "__init__" | "reset_parameters" | "_reset_parameters") =>
        {
            FrameKind::ModuleBuild
        }
        // DTensor's dispatch stands inside of whatever uses it.
        _ if tail.starts_with("distributed/") && !tail.starts_with("distributed/tensor/") => {
            FrameKind::Sharded
        }
        _ => FrameKind::Torch,
    };
    Some(kind)
}

fn module_kind(name: &str) -> FrameKind {
    match name {
        "zero_grad" => FrameKind::ZeroGrad,
        "_call_impl" | "_wrapped_call_impl" | "inner" => FrameKind::ModuleCall,
        "_apply" | "to" | "cuda" | "half" | "bfloat16" | "float" | "double" | "to_empty" | "convert"
        | "<lambda>" => FrameKind::ModuleMove,
        "load_state_dict" | "_load_from_state_dict" | "load" => FrameKind::Load,
        _ => FrameKind::Torch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_in_a_folder_called_torch_makes_nothing_pytorch() {
        let venv = "/opt/torch/.venv/lib/python3.12/site-packages";
        assert_eq!(torch_tail(&format!("{venv}/torch/optim/adam.py")), Some("optim/adam.py"));
        assert_eq!(torch_tail(&format!("{venv}/transformers/cache_utils.py")), None);
        assert_eq!(torch_tail("/home/me/src/torch/nn/init.py"), Some("nn/init.py"));
    }
}
