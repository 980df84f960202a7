//! What can be wrong with a setting of the allocator.

use miette::Diagnostic;
use thiserror::Error;

/// A setting that cannot be tried.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum TuningError {
    /// Not written as PyTorch wants it.
    #[error("`{text}` is no setting")]
    #[diagnostic(help("write it as in PYTORCH_CUDA_ALLOC_CONF, such as `expandable_segments:True`"))]
    Shape {
        /// What was written.
        text: String,
    },
    /// No setting of the allocator's.
    #[error("the allocator has no setting `{name}`")]
    #[diagnostic(help("{hint}"))]
    Unknown {
        /// Its name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A setting that nothing here depends on.
    #[error("`{name}` has no bearing on how much device memory is reserved")]
    #[diagnostic(help("leave it out"))]
    NoBearing {
        /// Its name.
        name: String,
    },
    /// Another allocator altogether.
    #[error("memlint knows PyTorch's own allocator only, not `backend:{backend}`")]
    #[diagnostic(help(
        "CUDA's asynchronous allocator is a part of the driver, whose workings are not public"
    ))]
    Backend {
        /// Which one.
        backend: String,
    },
    /// A value that PyTorch refuses.
    #[error("`{name}` cannot be `{value}`")]
    #[diagnostic(help("it has to be {wanted}"))]
    Value {
        /// The setting.
        name: String,
        /// What was written.
        value: String,
        /// What may be written.
        wanted: &'static str,
    },
}
