//! What everybody knows: names that say nothing of the user and without which nobody could read a stack.
//!
//! In: a path, a function's name, an annotation's name. Out: which part of it is public. Always: only what stands in a table
//! here is kept, so a package or a folder that nobody thought of is replaced and not betrayed.

/// Folders that most machines have.
#[rustfmt::skip]
const FOLDERS: &[&str] = &[
    "", ".", "..", ".bootstrap", ".cache", ".ipykernel", ".local", ".venv", "AppData", "Lib", "Local", "Scripts",
    "Temp", "Users", "Windows", "__pycache__", "anaconda3", "bin", "conda", "content", "data", "dev",
    "dist-packages", "envs", "folders", "home", "lib", "lib64", "local", "miniconda3", "mnt", "opt", "private",
    "root", "share", "shm", "site-packages", "src", "srv", "tmp", "usr", "var", "venv", "workspace", "~",
];

/// Optimizers of PyTorch and of what comes with it, and the iterators of its data loader.
#[rustfmt::skip]
const CLASSES: &[&str] = &[
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "FusedAdam", "LBFGS", "Lion",
    "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "ZeroRedundancyOptimizer",
    "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter",
];

/// Ranges that PyTorch records for DDP and both FSDPs (`torch/nn/parallel/distributed.py`, `torch/distributed/fsdp/`).
#[rustfmt::skip]
const RANGES: &[&str] = &[
    "DistributedDataParallel.forward", "FSDP::all_gather", "FSDP::all_gather_copy_out",
    "FSDP::backward_prefetch", "FSDP::cast_forward_inputs", "FSDP::cast_forward_outputs",
    "FSDP::inputs_to_device", "FSDP::inputs_to_gpu", "FSDP::post_backward", "FSDP::post_backward_accumulate",
    "FSDP::post_backward_reduce", "FSDP::post_backward_reshard", "FSDP::post_backward_rs_wait",
    "FSDP::post_forward", "FSDP::pre_backward", "FSDP::pre_forward", "FSDP::root_post_backward",
    "FSDP::root_post_backward_callback", "FSDP::root_pre_forward",
    "FullyShardedDataParallel._post_backward_final_callback",
    "FullyShardedDataParallel._post_backward_hook", "FullyShardedDataParallel._post_backward_prefetch",
    "FullyShardedDataParallel._post_forward", "FullyShardedDataParallel._pre_backward_hook",
    "FullyShardedDataParallel._pre_backward_prefetch", "FullyShardedDataParallel._pre_forward",
    "FullyShardedDataParallel._pre_forward_prefetch", "FullyShardedDataParallel._root_pre_forward",
    "FullyShardedDataParallel._to_kwargs", "FullyShardedDataParallel.forward",
    "FullyShardedDataParallel.rate_limiter",
];

/// Actions of the trace that move no memory (`torch.cuda.memory._snapshot`).
const ACTIONS: &[&str] = &["annotate", "snapshot", "user_defined", "workspace_snapshot"];

/// What PyTorch itself writes as `internal_metadata` (2.15).
const INTERNAL: &[&str] = &["mallocWithAddress"];

/// Options of `PYTORCH_ALLOC_CONF` and their values that are words (PyTorch 2.1 to 2.15).
#[rustfmt::skip]
const SETTINGS: &[&str] = &[
    "False", "True", "backend", "cudaMallocAsync", "expandable_segments", "expandable_segments_reserve",
    "expandable_segments_reserve_by_class", "garbage_collection_threshold",
    "graph_capture_record_stream_reuse", "hipMallocAsync", "large_segment_size_mb", "max_non_split_rounding_mb",
    "max_split_size_mb", "native", "per_process_memory_fraction", "pinned_free_catch_all",
    "pinned_max_cached_size_mb", "pinned_max_round_threshold_mb", "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb", "pinned_use_background_threads", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "release_lock_on_cudamalloc", "release_lock_on_hipmalloc",
    "roundup_power2_divisions", "throw_on_cudamalloc_oom",
];

/// Files that are no files. A number may follow.
#[rustfmt::skip]
const UNREAL: &[&str] = &[
    "<eval_with_key>", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>", "<frozen runpy>",
    "<stdin>", "<string>",
];

/// Libraries and sources of PyTorch, CUDA, Python and the C library, without version, number and ending.
#[rustfmt::skip]
const NATIVE_FILES: &[&str] = &[
    "CUDACachingAllocator", "RegisterBackendSelect", "RegisterCPU", "RegisterCUDA",
    "RegisterCompositeExplicitAutograd", "RegisterCompositeImplicitAutograd", "VariableType", "libaten",
    "libc", "libc10_cuda", "libcublas", "libcublasLt", "libcuda", "libcudart", "libcudnn", "libcudnn_adv",
    "libcudnn_adv_infer", "libcudnn_adv_train", "libcudnn_cnn", "libcudnn_cnn_infer", "libcudnn_cnn_train",
    "libcudnn_engines_precompiled", "libcudnn_engines_runtime_compiled", "libcudnn_graph",
    "libcudnn_heuristic", "libcudnn_ops", "libcudnn_ops_infer", "libcudnn_ops_train", "libcufft", "libcupti",
    "libcurand", "libcusolver", "libcusparse", "libcusparseLt", "libgcc_s", "libgomp", "libm", "libnccl",
    "libnvJitLink", "libnvToolsExt", "libnvrtc", "libpthread", "libpython", "libstdc++", "libtorch",
    "libtorch_cpu", "libtorch_cuda", "libtorch_cuda_linalg", "libtorch_python", "memory_snapshot", "python",
    "python_nn_functions", "python_torch_functions", "python_variable", "python_variable_indexing",
    "python_variable_methods",
];

/// Endings that say what kind of file it is.
#[rustfmt::skip]
const ENDINGS: &[&str] = &[
    "c", "cc", "cpp", "cu", "cuh", "dll", "h", "hpp", "o", "py", "pyc", "pyd", "pyo", "pyw", "pyx", "so",
];

/// Whether a file is none (`<stdin>`), and known.
pub(super) fn is_unreal(path: &str) -> bool {
    let is_number = |rest: &str| rest.chars().all(|one| one.is_ascii_digit() || one == '.');
    UNREAL.iter().any(|known| path.strip_prefix(known).is_some_and(is_number))
}

/// Whether a folder is on most machines.
pub(super) fn is_folder(name: &str) -> bool {
    let drive = name.len() == 2 && name.ends_with(':');
    let numbered = |prefix: &str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.chars().all(|one| one.is_ascii_digit() || one == '.'))
    };
    drive || FOLDERS.contains(&name) || numbered("python3") || numbered("ipykernel_")
}

/// The ending of a folder's name by which installers tell what lies in it.
pub(super) fn folder_ending(name: &str) -> Option<&'static str> {
    [".egg", ".runfiles", ".whl", "_pyg"].into_iter().find(|ending| name.ends_with(ending))
}

/// The beginning of a file's name by which programs tell that they wrote it: a notebook's cell, a template.
pub(super) fn file_beginning(name: &str) -> Option<&'static str> {
    let beginnings = ["__marimo__", "fx_generated_", "ipython-input-", "torch_geometric."];
    beginnings.into_iter().find(|beginning| name.starts_with(beginning))
}

/// Whether a name is a hash: of a text that a compiler wrote.
pub(super) fn is_hash(stem: &str) -> bool {
    stem.len() >= 40 && stem.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit())
}

/// Whether a class is PyTorch's.
pub(super) fn is_class(name: &str) -> bool {
    CLASSES.contains(&name)
}

/// Whether a range is one that PyTorch records by itself.
pub(super) fn is_range(name: &str) -> bool {
    RANGES.contains(&name)
}

/// Whether an action that moves no memory is PyTorch's.
pub(super) fn is_action(name: &str) -> bool {
    ACTIONS.contains(&name)
}

/// Whether an event's `internal_metadata` is PyTorch's.
pub(super) fn is_internal(text: &str) -> bool {
    INTERNAL.contains(&text)
}

/// Whether a word of the allocator's settings is PyTorch's, or a number.
pub(super) fn is_setting(word: &str) -> bool {
    SETTINGS.contains(&word)
        || word.parse::<f64>().is_ok_and(|_| word.starts_with(|one: char| one.is_ascii_digit()))
}

/// Whether a library or a source of C++ is public.
pub(super) fn is_native_file(name: &str) -> bool {
    if name == "??" || name == "ld-linux-x86-64.so.2" {
        return true;
    }
    // `libcudart-9335f6a2.so.12`, `RegisterCUDA_0.cpp`, `libpython3.12.so.1.0`, `python3.12`.
    let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
    let (stem, hash) = stem.split_once('-').unwrap_or((stem, ""));
    let stem = stem.trim_end_matches(|one: char| one.is_ascii_digit()).trim_end_matches('_');
    let is_ending = |part: &str| ENDINGS.contains(&part) || part.chars().all(|one| one.is_ascii_digit());
    NATIVE_FILES.contains(&stem)
        && hash.chars().all(|one| one.is_ascii_hexdigit())
        && rest.split('.').all(is_ending)
}

/// A file name's ending, where it says what kind of file it is.
pub(super) fn ending(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, ending)| ending).filter(|ending| ENDINGS.contains(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_files_are_public_by_their_whole_name() {
        let public = [
            "??",
            "libtorch_cuda.so",
            "libcudart-9335f6a2.so.12",
            "RegisterCUDA_0.cpp",
            "libpython3.12.so.1.0",
            "python3.12",
            "libc10.so",
            "libc.so.6",
            "libstdc++.so.6",
            "ld-linux-x86-64.so.2",
        ];
        assert!(public.iter().all(|name| is_native_file(name)));
        let own = ["libtorch_acme.so", "libcuda-acme.so", "libc.acme.so", "python_acme.cpp", "acme.cu"];
        assert!(own.iter().all(|name| !is_native_file(name)));
    }
}
