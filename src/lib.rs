//! memlint reads the memory snapshots that PyTorch writes, works out what the program was doing, and reports what is
//! wrong with its GPU memory.
//!
//! Data flows one way through the modules below; a module uses only modules that stand before it in this list (a test
//! holds it to that).

pub mod engine;
pub mod facts;
pub mod finding;
pub mod input;
pub mod pickle;
pub mod program;
pub mod replay;
pub mod report;
pub mod role;
pub mod rules;
pub mod snapshot;
pub mod source;
pub mod timeline;
pub mod unit;
