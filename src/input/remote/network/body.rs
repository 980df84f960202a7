//! The bytes of an object, one after the other, whatever becomes of the connection.
//!
//! Always: no more is held than came last; and what is read is one version of the object, or an error.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures_util::stream::BoxStream;
use object_store::{GetOptions, GetRange, GetResult};

use super::super::super::address::Address;
use super::super::RemoteError;
use super::Network;
use super::client::UNKNOWN_LENGTH;
use super::failure::{NetworkFault, failure};
use super::stores::Shelf;

/// How often the rest is asked for after a connection ended.
const MOST_RESUMED: usize = 3;

/// An object as it comes.
pub(crate) struct Body {
    network: &'static Network,
    shelf: Arc<Shelf>,
    address: Address,
    pieces: BoxStream<'static, object_store::Result<Bytes>>,
    /// What came last, as far as it was not taken.
    piece: Bytes,
    /// Bytes that came.
    read: u64,
    /// Bytes of the object, where the server says it.
    size: Option<u64>,
    /// Which version it is, where the server says it in a way that holds byte for byte.
    version: Option<String>,
    resumed: usize,
}

impl Body {
    /// Asks for an object.
    pub(super) fn of(
        network: &'static Network,
        shelf: Arc<Shelf>,
        address: &Address,
    ) -> Result<Body, RemoteError> {
        let given = network.get(&shelf, address, &GetOptions::default())?;
        let size = Some(given.meta.size).filter(|size| *size != UNKNOWN_LENGTH);
        let version = given.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        let pieces = given.into_stream();
        let address = address.clone();
        Ok(Body { network, shelf, address, pieces, piece: Bytes::new(), read: 0, size, version, resumed: 0 })
    }

    /// The next piece; nothing at the end.
    fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        loop {
            let Some(next) = self.network.next(&mut self.pieces) else { return Ok(None) };
            match next {
                Ok(piece) => {
                    self.read += piece.len() as u64;
                    return Ok(Some(piece));
                }
                Err(_) if self.size == Some(self.read) => return Ok(None),
                Err(error) => match NetworkFault::of(&error) {
                    NetworkFault::Silent => return Err(failure(&self.address, &error)),
                    _ => self.pieces = self.rest()?.into_stream(),
                },
            }
        }
    }

    /// Asks for what has not come, of the same version.
    fn rest(&mut self) -> Result<GetResult, RemoteError> {
        let broke_off = |why| RemoteError::BrokeOff { name: self.address.shown(), read: self.read, why };
        let Some(version) = &self.version else {
            return Err(broke_off(
                "the server does not say which version it is (ETag), so that the rest could be another's",
            ));
        };
        if self.resumed == MOST_RESUMED {
            return Err(broke_off("not for the first time"));
        }
        self.resumed += 1;
        let options = GetOptions {
            range: Some(GetRange::Offset(self.read)),
            if_match: Some(version.clone()),
            ..GetOptions::default()
        };
        let given = self.network.get(&self.shelf, &self.address, &options).map_err(|error| match error {
            RemoteError::NoObject { name } => RemoteError::Changed { name },
            RemoteError::NoRanges { .. } => {
                broke_off("the server has no ranges, so that the rest cannot be asked for")
            }
            other => other,
        })?;
        if self.size.is_some_and(|size| size != given.meta.size) {
            return Err(RemoteError::Changed { name: self.address.shown() });
        }
        Ok(given)
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !buffer.is_empty() {
            match self.next().map_err(io::Error::other)? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let read = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(buffer.get_mut(..read).unwrap_or_default());
        Ok(read)
    }
}
