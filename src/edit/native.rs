//! Which C++ names are public.
//!
//! In: a demangled name. Out: whether everything in it belongs to PyTorch, CUDA, Python or C++ itself. A name is public if
//! every identifier that begins a qualified name is: in `at::native::gpu_kernel<acme::Secret>` it is `acme` that is not.
//! Words behind `::` are not looked at: of a function that a user put into a public namespace (`at::native::acme_secret`)
//! the name stays. The tables were read off all C++ frames of six recordings of PyTorch 2.11.

/// Identifiers with which public names begin: namespaces, types and words of the language.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "CUstream_st", "THPVariable", "anonymous", "at", "auto", "bool", "c10", "caffe2", "char", "clone",
    "cold", "const", "constprop", "cub", "cute", "cutlass", "decltype", "double", "false", "float", "fmt",
    "gloo", "half", "int", "isra", "lambda", "localalias", "long", "namespace", "nullptr", "operator",
    "part", "pybind11", "short", "signed", "std", "thrust", "torch", "true", "unsigned", "void", "wchar_t",
];

/// Beginnings of public identifiers: Python's C interface, PyTorch's, CUDA's libraries, the C library.
#[rustfmt::skip]
const BEGINNINGS: &[&str] = &[
    "Py", "THCP", "THP", "_Py", "__clone", "__cuda", "__gnu", "__int", "__libc", "__nv", "_object", "_start",
    "_typeobject", "cublas", "cuda", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "pthread_",
    "start_thread",
];

/// Whether a C++ name says nothing of the user.
pub(super) fn is_public(name: &str) -> bool {
    name == "??" || heads(name).all(is_known)
}

fn is_known(head: &str) -> bool {
    let number = head.starts_with(|first: char| first.is_ascii_digit());
    number || KNOWN.contains(&head) || BEGINNINGS.iter().any(|known| head.starts_with(known))
}

/// The identifiers of a name that do not follow `::` or `~`.
fn heads(name: &str) -> impl Iterator<Item = &str> {
    let is_part = |one: char| one.is_alphanumeric() || one == '_' || one == '$';
    let mut rest = name;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(is_part)?;
            let (between, from) = rest.split_at_checked(start)?;
            let end = from.find(|one| !is_part(one)).unwrap_or(from.len());
            let (word, after) = from.split_at_checked(end)?;
            rest = after;
            if !between.ends_with("::") && !between.ends_with('~') {
                return Some(word);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_type_in_a_public_template_is_seen() {
        let public = [
            "at::native::(anonymous namespace)::addmm_out_cuda_impl(at::Tensor&, c10::Scalar const&, bool)",
            "std::enable_if<true, void>::type at::native::gpu_kernel<float, 4>(at::TensorIteratorBase&)",
            "_PyEval_EvalFrameDefault",
            "c10::TensorImpl::~TensorImpl() [clone .localalias]",
            "??",
        ];
        for name in public {
            assert!(is_public(name), "{name}");
        }
        for name in ["acme::secret()", "at::native::gpu_kernel<acme::Secret>(int)", "launch_secret", "main"] {
            assert!(!is_public(name), "{name}");
        }
    }
}
