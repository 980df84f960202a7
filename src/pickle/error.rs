//! What can be wrong with a pickle. Every variant says at which byte.

use miette::Diagnostic;
use thiserror::Error;

/// A pickle that cannot or must not be read.
#[derive(Debug, Error, Diagnostic, Clone, PartialEq, Eq)]
pub enum PickleError {
    /// The first byte is not the protocol mark.
    #[error("not a pickle: it begins with {found}")]
    #[diagnostic(help("memlint reads what `torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")` writes"))]
    NotAPickle {
        /// What the file begins with, in words.
        found: String,
    },
    /// A protocol that is not read.
    #[error("pickle protocol {protocol} is not supported (2 to 5 are)")]
    #[diagnostic(help("write the file again with `torch.cuda.memory._dump_snapshot`"))]
    Protocol {
        /// The protocol that the file names.
        protocol: u8,
    },
    /// The stream of bytes failed.
    #[error("the file cannot be read on at byte {offset}: {reason}")]
    Unreadable {
        /// What the source says.
        reason: String,
        /// Where it failed.
        offset: usize,
    },
    /// The bytes end within the pickle.
    #[error("the pickle breaks off at byte {offset}")]
    #[diagnostic(help(
        "the file is incomplete: was it copied while it was being written, or did the disk fill up? Take the snapshot again"
    ))]
    Truncated {
        /// Where more bytes were expected.
        offset: usize,
    },
    /// The file goes on behind the pickle: what stands there would be judged by nobody.
    #[error("the pickle ends at byte {offset}, and the file goes on behind it")]
    #[diagnostic(help(
        "memlint reads files of one snapshot each: was another one appended to this file, or was it written over a longer one? Write each to a file of its own"
    ))]
    Followed {
        /// The first byte behind the pickle.
        offset: usize,
    },
    /// A byte that is no opcode, or one that protocols 2 to 5 do not use.
    #[error("unexpected {what} at byte {offset}")]
    #[diagnostic(help("the file is damaged, or it is no pickle of protocol 2 to 5"))]
    Unexpected {
        /// The opcode's name or the byte's value.
        what: String,
        /// Where it stands.
        offset: usize,
    },
    /// The pickle asks for something to be imported or called.
    #[error("the pickle wants to {what} (byte {offset}); memlint never runs code from a file")]
    #[diagnostic(help(
        "a memory snapshot is plain data: dicts, lists, numbers and text. Do not load this file with `pickle.load` unless you trust whoever made it"
    ))]
    Code {
        /// What it wants: "import os.system".
        what: String,
        /// Where it asks.
        offset: usize,
    },
    /// An opcode that does not fit what stands on the stack.
    #[error("damaged pickle: {what} (byte {offset})")]
    #[diagnostic(help("the file is damaged; take the snapshot again"))]
    Damaged {
        /// What does not fit.
        what: &'static str,
        /// Where it was noticed.
        offset: usize,
    },
    /// More than the limits allow.
    #[error("the pickle holds more than {limit} {what} (byte {offset})")]
    #[diagnostic(help("if you trust the file, raise the limit with `{flag}`"))]
    Limit {
        /// Of what there is too much.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
        /// The command line flag that raises it.
        flag: &'static str,
        /// Where it was passed.
        offset: usize,
    },
}

impl PickleError {
    /// The same, at an offset, where the error does not know its own.
    pub(super) fn located(mut self: Box<Self>, at: usize) -> Box<Self> {
        if let PickleError::Damaged { offset, .. } | PickleError::Limit { offset, .. } = &mut *self {
            *offset = at;
        }
        self
    }
}
