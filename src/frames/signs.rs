//! What a frame can say: the words of the table.

/// Whose code a frame runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The user's own; also whatever nothing tells from it.
    User,
    /// An installed package that runs the user's training loop (transformers, Lightning, accelerate).
    Framework,
    /// Any other installed package.
    Library,
    /// PyTorch.
    Torch,
    /// Python that a program wrote (Inductor, FX, templates): nobody edits it.
    Generated,
    /// Python itself: its standard library, and what starts programs (console scripts, `runpy`).
    Python,
    /// C++.
    Native,
}

impl Owner {
    /// Whether it is an installed package other than PyTorch.
    pub const fn is_package(self) -> bool {
        matches!(self, Owner::Library | Owner::Framework)
    }
}

/// What a frame says about what the program is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PhaseSign {
    /// A module is being called.
    ModuleCall,
    /// A functional operator of `torch.nn`.
    Functional,
    /// A module is moved, cast or filled (`to`, `cuda`, `load_state_dict`), a checkpoint read, weights initialised.
    Building,
    /// `__init__` of the user's code or of a package.
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
    /// The wrappers that PyTorch puts around every optimizer's `step`.
    OptimizerHook,
    /// An optimizer is built or loaded.
    OptimizerSetup,
    /// A batch is fetched or moved to the device.
    Input,
    /// A framework's evaluation or prediction loop.
    Evaluation,
    /// A decorator or a launcher: it calls what it wraps, and says nothing itself.
    Wrapper,
    /// A thread that Python started.
    Thread,
    /// Nothing in particular.
    #[default]
    Nothing,
}

/// What a frame says about the memory that is asked for, or let go, under it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MemorySign {
    /// C++: the caching allocator itself, or the recorder above it.
    Allocator,
    /// C++: makes a tensor's storage.
    Storage,
    /// C++: cuDNN, cuBLAS and the like.
    Vendor,
    /// C++: a tensor's Python object lets go of its tensor.
    Empties,
    /// C++: Python's garbage collector.
    Collector,
    /// C++: a tensor's Python object dies, since nothing refers to it.
    Dies,
    /// C++: collectives.
    Collective,
    /// A module's parameters and buffers are moved or cast.
    Move,
    /// A layer makes or initialises its parameters.
    Build,
    /// A module is filled from a state dict.
    Fill,
    /// A file of weights is read into tensors.
    Read,
    /// `copy.deepcopy`, walking.
    Copy,
    /// `copy.deepcopy` of a plain tensor.
    CopyTensor,
    /// `copy.deepcopy` of a parameter.
    CopyParameter,
    /// A moving average of weights.
    Average,
    /// A metric takes in a batch, or is computed: with autograd off, unless its `forward` is called (`Metric._wrap_update` of torchmetrics).
    Measures,
    /// Adapters are put into a model whose own weights are frozen.
    Adapts,
    /// An optimizer that keeps a history of directions and gradients, up to a bound (L-BFGS).
    History,
    /// A wrapper for several ranks that keeps whole replicas (DDP).
    Replicated,
    /// A wrapper for several ranks that shards parameters (FSDP, `DeepSpeed`).
    Sharded,
    /// Weights are computed from others before each pass, and put in their place (pruning, weight normalisation).
    Reparametrizes,
    /// Parameters that are sharded over ranks are put together, for whoever asked.
    Gathers,
    /// A loss, as a module or a function of PyTorch.
    Loss,
    /// A function of one sample is computed for all samples at once, or for a chunk of them (`torch.func.vmap`).
    Vectorizes,
    /// The allocator's cache is emptied.
    EmptyCache,
    /// A CUDA graph is about to be captured, before which PyTorch empties the allocator's cache by itself.
    Captures,
    /// CUDA graphs are captured into a pool whose handle PyTorch asks for itself, unless it is given one.
    CapturesApart,
    /// Nothing in particular.
    #[default]
    Nothing,
}

impl MemorySign {
    /// Whether frames with these signs, innermost first, are Python's garbage collector at work: by its own frames, or because it alone empties an object that something
    /// refers to (`tp_clear`); any other is emptied where it dies (`torch/csrc/autograd/python_variable.cpp`).
    pub fn collects(mut signs: impl Iterator<Item = MemorySign>) -> bool {
        match signs.find(|sign| matches!(sign, MemorySign::Empties | MemorySign::Collector)) {
            Some(MemorySign::Collector) => true,
            Some(_) => {
                let caller = signs.next();
                caller.is_some_and(|caller| caller != MemorySign::Dies)
                    || signs.any(|sign| sign == MemorySign::Collector)
            }
            None => false,
        }
    }
}

/// What a frame says about the autograd graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GraphSign {
    /// C++: the engine runs the backward pass.
    Engine,
    /// C++: a saved tensor is let go.
    Releases,
    /// C++: a node of the graph dies, and what it holds with it: saved tensors, or, of a parameter's node, the parameter.
    Destroys,
    /// C++: what the program has set is called to pack a tensor that is saved (`torch/csrc/autograd/python_saved_variable_hooks.cpp`).
    Packs,
    /// C++: a gradient is added to the one that is there.
    Accumulates,
    /// `GradScaler` divides gradients by the scale and looks for infinities.
    Unscales,
    /// `GradScaler` calls the optimizer.
    Steps,
    /// C++: an operator makes a tensor of one value: it copies nothing.
    Blank,
    /// C++: an operator joins tensors into a larger one, or enlarges one.
    Joins,
    /// Nothing in particular.
    #[default]
    Nothing,
}

impl GraphSign {
    /// Whether frames with these signs let go of a tensor that was saved for the backward pass. (PyTorch 2.13 inlines what tells so within
    /// the destructor of a node.)
    pub fn release(mut signs: impl Iterator<Item = GraphSign> + Clone) -> bool {
        let mut dies = signs.clone();
        signs.clone().any(|sign| sign == GraphSign::Releases)
            || dies.any(|sign| sign == GraphSign::Destroys)
                && !signs.any(|sign| sign == GraphSign::Accumulates)
    }
}

/// What a frame says about the numbers that are computed under it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WorkSign {
    /// A cross entropy or a log-softmax.
    CrossEntropy,
    /// The backward of one.
    CrossEntropyBackward,
    /// A softmax.
    Softmax,
    /// The backward of one.
    SoftmaxBackward,
    /// Attention: a softmax in it is that of its scores.
    Attention,
    /// C++: an operator that copies a tensor, or casts it.
    Copies,
    /// Matrices are multiplied, or a convolution.
    Multiplies,
    /// A step for many parameters at once, operator by operator.
    Foreach,
    /// A step for many parameters in one kernel.
    Fused,
    /// DDP makes its buckets.
    Buckets,
    /// FSDP puts parameters together.
    Gathers,
    /// FSDP reduces gradients.
    Reduces,
    /// C++: any other operator of PyTorch, or node of the autograd graph.
    Other,
    /// Nothing in particular.
    #[default]
    Nothing,
}

/// What a Python function's bare name says, whoever wrote it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Method {
    /// `__init__`.
    Constructor,
    /// `forward`, or what stands in its place.
    Forward,
    /// `backward`.
    Backward,
    /// `step`.
    Step,
    /// A name with `zero_grad` in it.
    ZeroGrad,
    /// `from_pretrained`.
    Pretrained,
    /// The code of a file or of a notebook's cell, and of no function.
    Module,
    /// Any other.
    #[default]
    Other,
}

impl Method {
    /// Reads a name.
    pub(super) fn of(name: &str) -> Method {
        match name {
            "__init__" => Method::Constructor,
            "backward" => Method::Backward,
            "step" => Method::Step,
            "from_pretrained" => Method::Pretrained,
            "<module>" => Method::Module,
            // IPython 8.0 to 8.4 name a cell's code by its first line.
            _ if name.starts_with("<cell line:") => Method::Module,
            // Wrappers put in place of a `forward` are called `new_forward` and the like.
            _ if name == "forward" || name.ends_with("_forward") => Method::Forward,
            _ if name.contains("zero_grad") => Method::ZeroGrad,
            _ => Method::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MemorySign::{self, Allocator, Collector, Dies, Empties, Nothing};

    #[test]
    fn the_collector_empties_what_does_not_die() {
        let collects = |signs: &[MemorySign]| MemorySign::collects(signs.iter().copied());
        assert!(collects(&[Allocator, Nothing, Empties, Nothing]));
        assert!(!collects(&[Allocator, Empties, Dies, Nothing]));
        assert!(!collects(&[Allocator, Empties]), "who called it is not seen");
        assert!(!collects(&[Allocator, Nothing]));
        assert!(
            collects(&[Allocator, Empties, Dies, Nothing, Collector]),
            "a dict of the cycle is cleared, and the tensor dies with it"
        );
        assert!(collects(&[Allocator, Nothing, Collector]));
    }
}
