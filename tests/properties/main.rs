//! What holds of every recording: a leak is found however it is made, whatever stands beside it, and however long it runs; what
//! a window frees, what fills up and what is freed is none; and what does not matter changes nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod leaks;
mod program;
