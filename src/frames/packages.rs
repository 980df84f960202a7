//! Packages by name: what is public, and what runs a training loop for its user.

/// Packages of the Python package index that programs with GPU memory use. A package that is not here is nobody's whom a
/// reader would know.
#[rustfmt::skip]
const PACKAGES: &[&str] = &[
    "IPython", "PIL", "_pytest", "absl", "accelerate", "adabelief_pytorch", "albumentations", "apex",
    "attr", "axolotl", "bitsandbytes", "botorch", "came_pytorch", "captum", "catalyst", "click", "clip",
    "colossalai", "composer", "coverage", "cuda", "cupy", "cv2", "dask", "datasets", "debugpy", "decord",
    "deepspeed", "detectron2", "dgl", "diffusers", "e3nn", "einops", "ema_pytorch", "escnn", "evaluate",
    "fairscale", "fairseq", "faiss", "fastai", "fire", "flash_attn", "fsspec", "functorch", "gpytorch",
    "grad_cache", "gradcache", "gymnasium", "heavyball", "huggingface_hub", "hydra", "ignite", "ipykernel",
    "jax", "joblib", "kornia", "librosa", "liger_kernel", "lightning", "lightning_fabric",
    "lightning_utilities", "linear_operator", "lion_pytorch", "lpips", "mamba_ssm", "marimo", "matplotlib",
    "megatron", "mlflow", "mmcv", "mmdet", "mmengine", "monai", "nbclient", "nemo", "networkx", "nltk",
    "numba", "numpy", "nvidia", "omegaconf", "opacus", "open_clip", "optimum", "pandas", "papermill",
    "peft", "pluggy", "prodigyopt", "pydantic", "pyg_lib", "pyro", "pytest", "pytorch3d",
    "pytorch_forecasting", "pytorch_lightning", "pytorch_metric_learning", "pytorch_optimizer",
    "pytorch_tabnet", "ray", "safetensors", "schedulefree", "scipy", "segment_anything",
    "sentence_transformers", "sglang", "sklearn", "skorch", "spacy", "stable_baselines3", "streaming",
    "sympy", "tensorboard", "tensordict", "timm", "tokenizers", "torch", "torch_cluster", "torch_ema",
    "torch_geometric", "torch_optimizer", "torch_scatter", "torch_sparse", "torchao", "torchaudio",
    "torchcde", "torchdata", "torchdiffeq", "torchgen", "torchmetrics", "torchrl", "torchsde", "torchtext",
    "torchtune", "torchvision", "tornado", "tqdm", "traitlets", "transformers", "triton", "trl", "typer",
    "typing_extensions", "ultralytics", "unsloth", "vllm", "wandb", "xformers", "zmq",
];

/// Of these, packages that run the loop in which the user's code trains.
#[rustfmt::skip]
const FRAMEWORKS: &[&str] = &[
    "accelerate", "axolotl", "catalyst", "colossalai", "composer", "deepspeed", "detectron2", "fairseq", "fastai",
    "ignite", "lightning", "lightning_fabric", "mmengine", "nemo", "pytorch_lightning", "ray", "sentence_transformers",
    "skorch", "stable_baselines3", "torchtune", "transformers", "trl", "ultralytics", "unsloth",
];

/// Whether a package is one that readers know by its name.
pub(super) fn is_public(package: &str) -> bool {
    PACKAGES.contains(&package)
}

/// Whether a package runs the user's training loop.
pub(super) fn is_framework(package: &str) -> bool {
    FRAMEWORKS.contains(&package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_are_packages() {
        assert!(FRAMEWORKS.iter().all(|one| is_public(one)));
    }
}
