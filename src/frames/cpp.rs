//! The table of C++ functions: what they say, by parts of their demangled names.
//!
//! Rows are tried in their order, and the first whose part stands in the name decides. Read off the C++ frames of recordings
//! of PyTorch 2.1 to 2.15, with symbols from `addr2line` and from `dladdr`.

use super::signs::{GraphSign, MemorySign};

/// What asks for memory.
#[rustfmt::skip]
const MEMORY: [(&str, MemorySign); 31] = [
    ("CachingAllocator", MemorySign::Allocator),
    ("torch::unwind", MemorySign::Allocator),
    ("CapturedTraceback", MemorySign::Allocator),
    ("gather_with_cpp", MemorySign::Allocator),
    ("THPVariable_clear", MemorySign::Empties),
    ("THPVariable_subclass_clear", MemorySign::Empties),
    ("THPVariable_dealloc", MemorySign::Dies),
    ("THPVariable_subclass_dealloc", MemorySign::Dies),
    // CPython's collector (`Modules/gcmodule.c`, from 3.13 on `Python/gc.c`). Where a build keeps no symbols of static functions, the nearest exported one
    // stands for them: `PyInit_gc` and `PyObject_GC_Del` themselves let go of no tensor.
    ("gc_collect", MemorySign::Collector),
    ("delete_garbage", MemorySign::Collector),
    ("PyGC_Collect", MemorySign::Collector),
    ("_Py_RunGC", MemorySign::Collector),
    ("PyInit_gc", MemorySign::Collector),
    ("PyObject_GC_Del", MemorySign::Collector),
    ("c10d::", MemorySign::Collective),
    ("nccl", MemorySign::Collective),
    ("NCCL", MemorySign::Collective),
    ("empty_", MemorySign::Storage),
    ("empty(", MemorySign::Storage),
    ("torage", MemorySign::Storage),
    ("resize_bytes", MemorySign::Storage),
    ("cudnn", MemorySign::Vendor),
    ("cublas", MemorySign::Vendor),
    ("BlasHandle", MemorySign::Vendor),
    ("CUDABlas", MemorySign::Vendor),
    ("cusparse", MemorySign::Vendor),
    ("cusolver", MemorySign::Vendor),
    ("cufft", MemorySign::Vendor),
    ("miopen", MemorySign::Vendor),
    ("hipblas", MemorySign::Vendor),
    ("rocblas", MemorySign::Vendor),
];

/// What the autograd graph does, and operators that enlarge a tensor or fill one with a value.
#[rustfmt::skip]
const GRAPH: [(&str, GraphSign); 20] = [
    ("call_pack_hook", GraphSign::Packs),
    ("SavedVariable::reset_data", GraphSign::Releases),
    ("~SavedVariable", GraphSign::Releases),
    ("release_variables", GraphSign::Releases),
    ("AccumulateGrad", GraphSign::Accumulates),
    ("Backward0::~", GraphSign::Destroys),
    ("Backward1::~", GraphSign::Destroys),
    ("Backward2::~", GraphSign::Destroys),
    ("torch::autograd::Engine", GraphSign::Engine),
    ("torch::autograd::Node::operator", GraphSign::Engine),
    ("at::_ops::zeros::", GraphSign::Blank),
    ("at::_ops::zeros_like::", GraphSign::Blank),
    ("at::_ops::ones_like::", GraphSign::Blank),
    ("at::_ops::full_like::", GraphSign::Blank),
    ("at::_ops::new_zeros::", GraphSign::Blank),
    ("at::_ops::cat::", GraphSign::Joins),
    ("cat_out_cuda", GraphSign::Joins),
    ("at::_ops::stack::", GraphSign::Joins),
    ("constant_pad_nd", GraphSign::Joins),
    ("::resize_", GraphSign::Joins),
];

/// What a C++ name says of memory and of the graph.
pub(super) fn said(name: &str) -> (MemorySign, GraphSign) {
    (first(&MEMORY, name), first(&GRAPH, name))
}

fn first<S: Copy + Default>(rows: &[(&str, S)], name: &str) -> S {
    rows.iter().find(|(part, _)| name.contains(part)).map_or(S::default(), |(_, sign)| *sign)
}

/// The node of the autograd graph whose saved tensors a function lets go, or that dies: `ReluBackward0`.
pub(super) fn node(name: &str) -> Option<&str> {
    let (node, _) = name.split_once("::release_variables").or_else(|| name.split_once("::~"))?;
    node.rsplit("::").next().filter(|node| node.contains("Backward"))
}

/// The operator of PyTorch that a function enters (`at::_ops::mm::call`: `mm`), or the node of the autograd graph that it runs
/// (`ReluBackward0`).
pub(super) fn operator(name: &str) -> Option<&str> {
    if let Some((_, operator)) = name.split_once("at::_ops::") {
        return operator.split("::").next().filter(|operator| !operator.is_empty());
    }
    let (node, _) = name.split_once("::apply(")?;
    node.rsplit("::").next().filter(|node| node.contains("Backward"))
}

/// What stands in names where a program computes in a half-width format: autocast's own, the gradient scaler's, and the types
/// in PyTorch's C++ templates.
const HALVES: [&str; 4] = ["autocast", "grad_scaler", "BFloat16", "c10::Half"];

/// Whether a name or a file tells of a half-width format.
pub(super) fn is_half(text: &str) -> bool {
    HALVES.iter().any(|part| text.contains(part))
}
