//! What holds of every recording: a leak is found however it is made, whatever stands beside it, and however long it runs; what
//! a window frees, what fills up and what is freed is none; and what does not matter changes nothing.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "findings that are known from an earlier run need the rest")]
#[path = "../known/altered.rs"]
mod altered;
#[expect(dead_code, reason = "the tests of single recordings need the labels and the truth")]
#[path = "../corpus/case.rs"]
mod case;
mod indifferent;
mod injected;
mod leaks;
mod less;
mod pictures;
mod program;
mod recordings;
