//! What a folder is known by: files of PyTorch, functions of Python's library and of frameworks.
//!
//! Paths are those inside the package, without the ending. Read off the sources of PyTorch 2.1 to 2.15, CPython 3.8 to 3.14,
//! transformers 5, accelerate 1.15 and Lightning 2.6.

/// Files that every PyTorch has and that stand in stacks.
#[rustfmt::skip]
pub(super) const TORCH_FILES: [&str; 33] = [
    "torch/_compile", "torch/_dynamo/eval_frame", "torch/_jit_internal", "torch/_ops", "torch/_tensor",
    "torch/_utils", "torch/amp/autocast_mode", "torch/amp/grad_scaler", "torch/autograd/__init__",
    "torch/autograd/function", "torch/autograd/graph", "torch/cuda/__init__", "torch/cuda/amp/autocast_mode",
    "torch/cuda/amp/grad_scaler", "torch/cuda/graphs", "torch/cuda/memory", "torch/functional",
    "torch/multiprocessing/spawn", "torch/nn/functional", "torch/nn/init", "torch/nn/modules/module",
    "torch/nn/parameter", "torch/nn/utils/clip_grad", "torch/optim/lr_scheduler", "torch/optim/optimizer",
    "torch/overrides", "torch/profiler/profiler", "torch/random", "torch/serialization", "torch/storage",
    "torch/utils/_contextlib", "torch/utils/checkpoint", "torch/utils/data/dataloader",
];

/// Folders that every PyTorch has, and few others: they count where none of its files is seen.
#[rustfmt::skip]
pub(super) const TORCH_FOLDERS: [&str; 9] = [
    "torch/_dynamo/", "torch/_functorch/", "torch/_inductor/", "torch/autograd/", "torch/distributed/",
    "torch/nn/modules/", "torch/nn/parallel/", "torch/optim/", "torch/utils/data/",
];

/// Functions of the standard library that stand in stacks, by module.
#[rustfmt::skip]
pub(super) const STANDARD: [(&str, &[&str]); 16] = [
    ("_weakrefset", &["_remove"]),
    ("asyncio/base_events", &["_run_once", "run_forever", "run_until_complete"]),
    ("asyncio/events", &["_run"]),
    ("asyncio/runners", &["run"]),
    ("cProfile", &["main", "run", "runctx"]),
    ("concurrent/futures/process", &["_process_worker"]),
    ("concurrent/futures/thread", &["_worker", "run"]),
    ("contextlib", &["__enter__", "__exit__", "close", "inner"]),
    ("copy", &["_deepcopy_dict", "_deepcopy_list", "_deepcopy_method", "_deepcopy_tuple", "_reconstruct", "deepcopy"]),
    ("functools", &["__get__", "_method", "wrapper"]),
    ("multiprocessing/process", &["_bootstrap", "run"]),
    ("multiprocessing/spawn", &["_main", "spawn_main"]),
    ("runpy", &["_run_code", "_run_module_as_main", "_run_module_code", "_run_path", "run_module", "run_path"]),
    ("threading", &["_bootstrap", "_bootstrap_inner", "run"]),
    ("unittest/case", &["_callTestMethod", "run"]),
    ("weakref", &["__call__", "_remove"]),
];

/// Functions of frameworks that are often run from a checkout of their sources, by module.
#[rustfmt::skip]
pub(super) const CHECKOUTS: [(&str, &[&str]); 17] = [
    ("accelerate/accelerator", &["_prepare_one", "accumulate", "backward", "clip_grad_norm_", "prepare", "prepare_model"]),
    ("accelerate/data_loader", &["__iter__"]),
    ("accelerate/optimizer", &["step", "zero_grad"]),
    ("accelerate/utils/operations", &["_convert_to_fp32", "convert_to_fp32", "recursively_apply", "send_to_device"]),
    ("lightning/pytorch/loops/evaluation_loop", &["_evaluation_step", "run"]),
    ("lightning/pytorch/loops/fit_loop", &["advance", "run"]),
    ("lightning/pytorch/loops/training_epoch_loop", &["advance", "run"]),
    ("lightning/pytorch/trainer/call", &["_call_and_handle_interrupt", "_call_lightning_module_hook", "_call_strategy_hook"]),
    ("lightning/pytorch/trainer/trainer", &["_fit_impl", "_run", "_run_stage", "fit"]),
    ("pytorch_lightning/loops/fit_loop", &["advance", "run"]),
    ("pytorch_lightning/trainer/call", &["_call_and_handle_interrupt", "_call_lightning_module_hook", "_call_strategy_hook"]),
    ("pytorch_lightning/trainer/trainer", &["_fit_impl", "_run", "_run_stage", "fit"]),
    ("transformers/cache_utils", &["lazy_initialization", "update"]),
    ("transformers/generation/utils", &["_prefill", "_sample", "generate"]),
    ("transformers/modeling_utils", &["cuda", "from_pretrained", "to"]),
    ("transformers/pytorch_utils", &["apply_chunking_to_forward", "forward"]),
    ("transformers/trainer", &["_inner_training_loop", "compute_loss", "evaluation_loop", "prediction_step", "train", "training_step"]),
];
