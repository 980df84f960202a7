//! Names of functions that say nothing of who wrote them: others call them by these names.

/// Methods that PyTorch and Lightning call by name: whoever writes one calls it so.
#[rustfmt::skip]
const METHODS: &[&str] = &[
    "backward", "configure_optimizers", "forward", "jvp", "predict_step", "reset_parameters", "setup_context",
    "step", "test_step", "training_step", "validation_step", "vjp", "zero_grad",
];

/// The methods that Python itself calls, and the names that its compiler gives.
#[rustfmt::skip]
const SPECIAL: &[&str] = &[
    "<dictcomp>", "<genexpr>", "<lambda>", "<listcomp>", "<module>", "<setcomp>", "__abs__", "__add__",
    "__and__", "__bool__", "__call__", "__contains__", "__copy__", "__deepcopy__", "__del__", "__delattr__",
    "__delitem__", "__enter__", "__eq__", "__exit__", "__floordiv__", "__format__", "__ge__", "__getattr__",
    "__getattribute__", "__getitem__", "__getitems__", "__getstate__", "__gt__", "__hash__", "__iadd__",
    "__iand__", "__imul__", "__init__", "__init_subclass__", "__instancecheck__", "__int__", "__invert__",
    "__ior__", "__isub__", "__iter__", "__itruediv__", "__le__", "__len__", "__lt__", "__matmul__", "__mod__",
    "__mul__", "__ne__", "__neg__", "__new__", "__next__", "__or__", "__pos__", "__post_init__", "__pow__",
    "__radd__", "__reduce__", "__reduce_ex__", "__repr__", "__reversed__", "__rmatmul__", "__rmul__",
    "__rpow__", "__rsub__", "__rtruediv__", "__set_name__", "__setattr__", "__setitem__", "__setstate__",
    "__str__", "__sub__", "__torch_dispatch__", "__torch_function__", "__truediv__", "__xor__",
];

/// Whether a method is called by Python or by a public library, or has its name from Python's compiler.
pub(super) fn is_public(name: &str) -> bool {
    SPECIAL.contains(&name) || METHODS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_others_call_are_kept() {
        let kept = ["forward", "__init__", "<module>", "<lambda>", "training_step"];
        assert!(kept.iter().all(|name| is_public(name)));
        assert!(
            ["main", "train", "____", "__acme__", "_private", "<acme>"].iter().all(|name| !is_public(name))
        );
    }
}
