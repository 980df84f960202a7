//! Objects of other machines, read as they come and never stored.
//!
//! In: an [`Address`] that somebody typed. Out: its bytes, or the addresses that a folder or a pattern stands for. Always: only
//! `network` knows a network, and only with the feature `remote` is it there; without, every address is an error that says so.

#[cfg(any(test, feature = "remote"))]
mod chosen;
mod error;
#[cfg(feature = "remote")]
mod network;

pub use error::RemoteError;

use std::io::Read;

use super::address::Address;

/// The objects that an address stands for.
#[derive(Debug, Default)]
pub(super) struct FoundObjects {
    /// Their addresses, in the order in which people count.
    pub(super) objects: Vec<Address>,
    /// What is named like a snapshot and was left out: its name, and whether it is too deep (or else hidden).
    pub(super) left_out: Vec<(String, bool)>,
}

/// Opens an object.
#[cfg(feature = "remote")]
pub(super) fn open(address: &Address) -> Result<impl Read + use<>, RemoteError> {
    network::open(address)
}

/// Lists what a folder or a pattern stands for.
#[cfg(feature = "remote")]
pub(super) fn list(address: &Address) -> Result<FoundObjects, RemoteError> {
    network::list(address)
}

/// Says that there is no network in this build.
#[cfg(not(feature = "remote"))]
pub(super) fn open(address: &Address) -> Result<impl Read + use<>, RemoteError> {
    Err::<std::io::Empty, _>(not_built(address))
}

/// Says that there is no network in this build.
#[cfg(not(feature = "remote"))]
pub(super) fn list(address: &Address) -> Result<FoundObjects, RemoteError> {
    Err(not_built(address))
}

#[cfg(not(feature = "remote"))]
fn not_built(address: &Address) -> RemoteError {
    RemoteError::NotBuilt { name: address.shown(), next: format!("or {}", address.how_to_fetch()) }
}
