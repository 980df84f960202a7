//! What each allocation is: parameter, gradient, optimizer state, activation and so on.

/// What an allocation holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A trainable or frozen weight.
    Parameter,
    /// A module's state that is no weight.
    Buffer,
    /// A parameter's gradient.
    Gradient,
    /// What the optimizer keeps from step to step.
    OptimizerState,
    /// Saved for the backward pass.
    Activation,
    /// A batch of data.
    Input,
    /// Dead before the phase that made it ends.
    Temporary,
    /// A library's scratch memory (cuBLAS, cuDNN).
    Workspace,
    /// Buckets, gathered parameters and other memory of collectives.
    Communication,
    /// None of these could be shown.
    #[default]
    Unknown,
}

impl Role {
    /// The name in every machine-readable format: `optimizer-state`.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Parameter => "parameter",
            Role::Buffer => "buffer",
            Role::Gradient => "gradient",
            Role::OptimizerState => "optimizer-state",
            Role::Activation => "activation",
            Role::Input => "input",
            Role::Temporary => "temporary",
            Role::Workspace => "workspace",
            Role::Communication => "communication",
            Role::Unknown => "unknown",
        }
    }
}

/// The role of each allocation of a timeline, by its id.
#[derive(Debug, Default)]
pub struct Roles {
    /// The roles.
    pub of: Vec<Role>,
}
