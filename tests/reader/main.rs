//! The reader on inputs that are no recordings: what other libraries write, what attackers write, what is left of a
//! damaged file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod damage;
mod hostile;
mod layouts;
mod opcodes;
mod oracle;
mod profiler;
mod variants;
