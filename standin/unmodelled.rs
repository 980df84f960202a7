//! Every symbol that a wheel asks for and that nobody here has: what it returns, and the lists of those that got
//! no answer, or none that is known to be right.
//!
//! memlint reads the names off the wheel's own libraries and writes a library of stubs for them (`src/record/standin`), so that any wheel can be
//! loaded. A stub comes here with its name.

use std::collections::BTreeSet;
use std::ffi::c_char;
use std::sync::Mutex;

use crate::place::{In, Out};
use crate::table::lock;
use crate::{DONE, Status, calls};

/// `cudaErrorNotSupported`, which is also the driver's; "not supported" of the libraries is none of theirs that PyTorch goes on after.
const UNSUPPORTED: Status = 801;
const FAILED: Status = 15;

/// Names of calls.
type Names = Mutex<BTreeSet<String>>;

/// Calls that failed, and calls that were answered without knowing a size.
static REFUSED: Names = Mutex::new(BTreeSet::new());
static SIZES: Names = Mutex::new(BTreeSet::new());

/// Whether a call's result decides over memory: it asks for a size. Without an answer PyTorch would allocate whatever stands there, so these
/// fail, and PyTorch's error names them.
fn asks_for_a_size(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("size") && !name.contains("set")
}

/// What a call returns that nobody models. Computing nothing is a success like every kernel's; what the runtime and the driver do, or how large
/// something is, cannot be made up.
fn answer(name: &str) -> Status {
    let is_of_runtime = name.starts_with("cuda")
        || name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    match (is_of_runtime, asks_for_a_size(name)) {
        (true, _) => UNSUPPORTED,
        (false, true) => FAILED,
        (false, false) => DONE,
    }
}

fn note(names: &Names, name: &str) {
    let mut names = lock(names);
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}

/// Notes that a call got no size.
pub(crate) fn note_size(name: &str) {
    note(&SIZES, name);
}

/// Notes that a call fails.
pub(crate) fn note_refused(name: &str) {
    note(&REFUSED, name);
}

/// A call that nobody models: its status, noted where the caller cannot go on with it.
pub(crate) fn meet(name: &str) -> Status {
    let status = answer(name);
    if status != DONE {
        note(&REFUSED, name);
    }
    status
}

/// Writes names, one a line, cut to what there is room for.
fn list(names: &Names, place: &Out<u8>, room: usize) -> Status {
    place.set_text(0, &lock(names).iter().map(String::as_str).collect::<Vec<_>>().join("\n"), room);
    DONE
}

calls! {
    // Where stubs end up.
    "memlint_unmodelled"(name: In<c_char>) { meet(&name.text()) }
    // What the recorder writes into the snapshot.
    "memlint_refused"(place: Out<u8>, room: usize) { list(&REFUSED, &place, room) }
    "memlint_sizes"(place: Out<u8>, room: usize) { list(&SIZES, &place, room) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_cannot_be_made_up() {
        for name in ["cusolverDnXgeev_bufferSize", "cudnnGetCTCLossWorkspaceSize", "cusparseSpMatGetSize"] {
            assert_eq!(answer(name), FAILED, "{name}");
        }
        for name in ["cusolverDnSpotrf", "cublasSgemm_v2", "cudnnSetTensorNdDescriptor", "ncclSend"] {
            assert_eq!(answer(name), DONE, "{name}");
        }
        for name in ["cudaIpcGetMemHandle", "cuMulticastCreate"] {
            assert_eq!(answer(name), UNSUPPORTED, "{name}");
        }
    }
}
