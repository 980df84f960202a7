//! What can be wrong with an address, or come between it and its end. Nothing in here has a key, a password, a signature or the
//! query of an address in it.

use miette::Diagnostic;
use thiserror::Error;

/// A remote object that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
pub enum RemoteError {
    /// A memlint without the network.
    #[error("`{name}` is an address, and this memlint was built without remote reading")]
    #[diagnostic(help(
        "the wheel torch-memlint reads s3, gs, az and https, and so does what `cargo install --path . --locked --features remote` \
         builds in a clone; {next}"
    ))]
    NotBuilt {
        /// The address.
        name: String,
        /// How to come by the object without it.
        next: String,
    },
    /// What no object can be called.
    #[error("`{name}` is no address of a snapshot: {found}")]
    #[diagnostic(help(
        "write s3://BUCKET/KEY, gs://BUCKET/NAME, az://CONTAINER/NAME or https://HOST/PATH; keys and passwords belong in the \
         environment"
    ))]
    Malformed {
        /// The address.
        name: String,
        /// What is wrong with it.
        found: String,
    },
    /// A connection that anybody could listen to.
    #[error("`{name}` would be read without encryption")]
    #[diagnostic(help("{next}"))]
    Plain {
        /// The address.
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// Variables that do not say what the store needs.
    #[error("`{name}`: the store cannot be asked as the environment says: {why}")]
    #[diagnostic(help("{next}"))]
    Unconfigured {
        /// The address.
        name: String,
        /// What is wrong.
        why: String,
        /// Which variables are looked at.
        next: String,
    },
    /// Nothing to show to the store.
    #[error("no credentials for `{name}`: {why}")]
    #[diagnostic(help("{next}"))]
    NoCredentials {
        /// The address.
        name: String,
        /// Why there are none.
        why: String,
        /// Which variables are looked at.
        next: String,
    },
    /// Credentials that are wrong, or not enough.
    #[error("`{name}` may not be read: the server says {answer}")]
    #[diagnostic(help("{next}"))]
    Refused {
        /// The address.
        name: String,
        /// The status, and the store's word for it.
        answer: String,
        /// Which variables are looked at.
        next: String,
    },
    /// A bucket that is not there.
    #[error("there is no bucket `{bucket}` for `{name}`")]
    #[diagnostic(help("{next}"))]
    NoBucket {
        /// The address.
        name: String,
        /// The bucket or container.
        bucket: String,
        /// Which variables are looked at.
        next: String,
    },
    /// A bucket in another region.
    #[error("the bucket of `{name}` is not in the region that was asked ({answer})")]
    #[diagnostic(help(
        "set AWS_REGION to the bucket's region: `aws s3api get-bucket-location --bucket BUCKET`"
    ))]
    Elsewhere {
        /// The address.
        name: String,
        /// The store's word for it.
        answer: String,
    },
    /// An object that is not there.
    #[error("there is no object `{name}`")]
    #[diagnostic(help(
        "check the name; a folder of a store ends in `/`, and a pattern is quoted: 's3://runs/rank*.pickle'"
    ))]
    NoObject {
        /// The address.
        name: String,
    },
    /// A folder without snapshots.
    #[error("no objects below `{name}` are named like snapshots")]
    #[diagnostic(help(
        "remote objects are told by their names (.pickle, .pkl, also packed), down to {depth} folders deep and without hidden ones; \
         name others themselves or by a pattern"
    ))]
    NoSnapshots {
        /// The address.
        name: String,
        /// How deep folders are looked into.
        depth: usize,
    },
    /// A pattern for which there is no object.
    #[error("no object matches `{name}`")]
    #[diagnostic(help(
        "`*` and `?` stop at a folder's end and leave hidden objects out; `**` stands for any number of folders"
    ))]
    NoMatch {
        /// The pattern.
        name: String,
    },
    /// A pattern that means nothing.
    #[error("`{name}` is wrong as a pattern: {found}")]
    #[diagnostic(help("`*`, `?`, `[a-z]` and `**` have a meaning in patterns; `[[]` stands for a bracket"))]
    Pattern {
        /// The pattern.
        name: String,
        /// What is wrong with it.
        found: &'static str,
    },
    /// More objects than anybody means.
    #[error("there are more than {limit} objects below `{name}`")]
    #[diagnostic(help("name a folder further down"))]
    TooMany {
        /// The address.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// No connection.
    #[error("`{name}` cannot be reached: {why}")]
    #[diagnostic(help("{next}"))]
    Unreachable {
        /// The address.
        name: String,
        /// What the system says.
        why: String,
        /// What to look at.
        next: &'static str,
    },
    /// A connection on which nothing comes.
    #[error("`{name}`: the server was silent for {seconds} s")]
    #[diagnostic(help("try again; where it stays so, copy the object to this machine first"))]
    Silent {
        /// The address.
        name: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// An answer that is none.
    #[error("`{name}` cannot be read: {answer}")]
    #[diagnostic(help("try again later; where it stays so, copy the object to this machine first"))]
    Failed {
        /// The address.
        name: String,
        /// The status, or what went wrong.
        answer: String,
    },
    /// The whole object where the rest of it was asked for.
    #[error("`{name}`: the server has no ranges")]
    #[diagnostic(help("copy the object to this machine first"))]
    NoRanges {
        /// The address.
        name: String,
    },
    /// A connection that ended before the object did.
    #[error("`{name}` broke off after {read} bytes, and {why}")]
    #[diagnostic(help("try again, or copy the object to this machine first"))]
    BrokeOff {
        /// The address.
        name: String,
        /// Bytes that had come.
        read: u64,
        /// Why the rest was not asked for.
        why: &'static str,
    },
    /// Another object under the same name.
    #[error("`{name}` changed while it was read")]
    #[diagnostic(help(
        "is the job still writing it? Check it when it is done, or let the job write to a new name each time"
    ))]
    Changed {
        /// The address.
        name: String,
    },
    /// An answer that leads where memlint does not go.
    #[error("`{name}` redirects {whither}, which memlint does not follow")]
    #[diagnostic(help("see where it leads (`curl -sI ADDRESS`), and name that address if you trust it"))]
    Redirected {
        /// The address.
        name: String,
        /// Where to, without the address.
        whither: String,
    },
}

#[cfg(feature = "remote")]
impl RemoteError {
    /// The same of another object of the same host, where it is one of a host.
    pub(super) fn of(&self, other: String) -> RemoteError {
        let mut error = self.clone();
        if let RemoteError::Unreachable { name, .. }
        | RemoteError::Silent { name, .. }
        | RemoteError::NoCredentials { name, .. } = &mut error
        {
            *name = other;
        }
        error
    }
}
