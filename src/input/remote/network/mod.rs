//! The one place that knows a network: memlint reaches from here to the stores, and nowhere else.
//!
//! Always: only for an address that was typed; one attempt at a time, each with a time limit, and few of them; all of it on one runtime
//! that runs on the threads which wait for bytes, so that the rest of memlint is as synchronous as with files.

mod body;
mod client;
mod failure;
mod stores;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{GetOptions, GetResult};
use reqwest::Url;
use tokio::runtime::{Builder, Runtime};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use self::body::Body;
use self::client::{Connector, is_loopback};
use self::failure::{NetworkFault, failure, no_credentials, plain, reason, unconfigured};
use self::stores::{Shelf, shelf};
use super::super::address::{Address, Scheme, Stands};
use super::super::naming::DEPTH;
use super::chosen::{self, Chosen, ObjectKey, WhyLeftOut};
use super::{FoundObjects, RemoteError};

/// How often something is asked for that fails in a way that may pass.
const TRIES: u32 = 3;
/// How long is waited after the first failure; twice that after the second.
const PAUSE: Duration = Duration::from_millis(300);
/// How long an answer may take, with all that leads to it.
const ANSWER: Duration = Duration::from_secs(45);
/// The most objects of a bucket that are listed: a hundred requests, some ten seconds.
const MOST_LISTED: usize = 100_000;

/// Opens an object.
pub(super) fn open(address: &Address) -> Result<impl Read + use<>, RemoteError> {
    let network = Network::of(address)?;
    let shelf = network.shelf(address)?;
    Body::of(network, shelf, address)
}

/// Lists what a folder or a pattern stands for.
pub(super) fn list(address: &Address) -> Result<FoundObjects, RemoteError> {
    let (name, key) = (address.shown(), address.key());
    let is_pattern = address.stands_for() == Stands::Pattern;
    let folder = if is_pattern { chosen::folder_of(key) } else { key };
    let keys = Network::of(address)?.list(address, folder)?;
    let chosen = if is_pattern {
        chosen::matching(keys, key).map_err(|found| RemoteError::Pattern { name: name.clone(), found })?
    } else {
        chosen::in_folder(keys, folder)
    };
    let Chosen { keys, left_out } = chosen;
    match keys.is_empty() {
        true if is_pattern => Err(RemoteError::NoMatch { name }),
        true => Err(RemoteError::NoSnapshots { name, depth: DEPTH }),
        false => Ok(FoundObjects {
            objects: keys.iter().map(|ObjectKey { name, size }| address.beside(name, *size)).collect(),
            left_out: left_out
                .iter()
                .map(|(key, why)| (address.beside(key, 0).shown(), *why == WhyLeftOut::Deep))
                .collect(),
        }),
    }
}

/// What a request comes to: it was answered, or not in time.
type TimedReply<T> = Result<object_store::Result<T>, Elapsed>;

/// Everything that lasts as long as memlint runs.
struct Network {
    runtime: Runtime,
    connector: Connector,
    /// By scheme and bucket: connections, and credentials that cost a request, are shared.
    shelves: Mutex<BTreeMap<String, Arc<Shelf>>>,
    /// Hosts and buckets that could not be reached, or for which there are no credentials. A thousand ranks do not wait for them one after the other.
    gone: Mutex<BTreeMap<String, RemoteError>>,
}

impl Network {
    fn of(address: &Address) -> Result<&'static Network, RemoteError> {
        static NETWORK: OnceLock<Result<Network, String>> = OnceLock::new();
        permit(address)?;
        let network = NETWORK.get_or_init(|| {
            let runtime =
                Builder::new_current_thread().enable_all().build().map_err(|error| reason(&error))?;
            let connector = Connector::new().map_err(|error| reason(&error))?;
            Ok(Network { runtime, connector, shelves: Mutex::default(), gone: Mutex::default() })
        });
        network.as_ref().map_err(|why| RemoteError::Failed { name: address.shown(), answer: why.clone() })
    }

    /// The bucket or the server behind an address, with credentials to show.
    fn shelf(&self, address: &Address) -> Result<Arc<Shelf>, RemoteError> {
        let make = || shelf(address, self.connector.clone()).map_err(|error| unconfigured(address, &error));
        if !address.scheme().is_store() {
            return Ok(Arc::new(make()?));
        }
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shelves.get(&place(address)) {
            return Ok(Arc::clone(known));
        }
        let shelf = Arc::new(make()?);
        self.known_to_be_gone(address)?;
        if let Some(proof) = &shelf.proof {
            let proved = match self.runtime.block_on(async { timeout(ANSWER, proof()).await }) {
                Ok(proved) => proved.map_err(|error| no_credentials(address, &error)),
                Err(error) => Err(no_credentials(address, &error)),
            };
            proved.map_err(|error| self.given_up(address, error))?;
        }
        shelves.insert(place(address), Arc::clone(&shelf));
        Ok(shelf)
    }

    /// Asks for an object, or a part of it.
    fn get(&self, shelf: &Shelf, address: &Address, options: &GetOptions) -> Result<GetResult, RemoteError> {
        let path = path(address, address.key())?;
        self.ask(address, async || timeout(ANSWER, shelf.store.get_opts(&path, options.clone())).await)
    }

    /// The next piece of an object; the client below limits how long it takes.
    fn next(
        &self,
        pieces: &mut BoxStream<'static, object_store::Result<Bytes>>,
    ) -> Option<object_store::Result<Bytes>> {
        self.runtime.block_on(pieces.next())
    }

    /// All objects below a folder of a bucket.
    fn list(&self, address: &Address, folder: &str) -> Result<Vec<ObjectKey>, RemoteError> {
        let shelf = self.shelf(address)?;
        let prefix = path(address, folder)?;
        let prefix = (!folder.is_empty()).then_some(&prefix);
        let keys = self.ask(address, async || {
            let mut listed = shelf.store.list(prefix);
            let mut keys = Vec::new();
            while let Some(next) = timeout(ANSWER, listed.next()).await? {
                match next {
                    Ok(one) => keys.push(ObjectKey { name: one.location.to_string(), size: one.size }),
                    Err(error) => return Ok(Err(error)),
                }
                if keys.len() > MOST_LISTED {
                    break;
                }
            }
            Ok(Ok(keys))
        })?;
        if keys.len() > MOST_LISTED {
            return Err(RemoteError::TooMany { name: address.shown(), limit: MOST_LISTED });
        }
        Ok(keys)
    }

    /// Asks until there is an answer, as often as that may help.
    fn ask<T>(&self, address: &Address, request: impl AsyncFn() -> TimedReply<T>) -> Result<T, RemoteError> {
        self.known_to_be_gone(address)?;
        let mut tried = 0;
        loop {
            tried += 1;
            let error = match self.runtime.block_on(async { request().await }) {
                Ok(Ok(given)) => return Ok(given),
                Ok(Err(error)) => error,
                Err(_) => {
                    let silent = RemoteError::Silent { name: address.shown(), seconds: ANSWER.as_secs() };
                    return Err(self.given_up(address, silent));
                }
            };
            let cause = NetworkFault::of(&error);
            if tried < TRIES && cause.may_pass() {
                self.runtime.block_on(async { sleep(PAUSE * tried).await });
                continue;
            }
            let failure = failure(address, &error);
            let is_gone = matches!(cause, NetworkFault::Unconnected | NetworkFault::Silent);
            return Err(if is_gone { self.given_up(address, failure) } else { failure });
        }
    }

    /// Fails where there was nobody before.
    fn known_to_be_gone(&self, address: &Address) -> Result<(), RemoteError> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.get(&place(address)).map_or(Ok(()), |error| Err(error.of(address.shown())))
    }

    /// Remembers that there is nobody at an address, or nothing to show there.
    fn given_up(&self, address: &Address, error: RemoteError) -> RemoteError {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).insert(place(address), error.clone());
        error
    }
}

/// What addresses of one bucket or one host have in common.
fn place(address: &Address) -> String {
    format!("{:?} {}", address.scheme(), address.place())
}

/// The name of an object as stores take it.
fn path(address: &Address, key: &str) -> Result<Path, RemoteError> {
    if !address.scheme().is_store() {
        return Ok(Path::default());
    }
    Path::parse(key).map_err(|_| RemoteError::Malformed {
        name: address.shown(),
        found: "a part of its name is empty, `.` or `..`, or holds what cannot be printed".to_owned(),
    })
}

/// Refuses what is no address, and what would be read in the open.
fn permit(address: &Address) -> Result<(), RemoteError> {
    let malformed = |found: &str| RemoteError::Malformed { name: address.shown(), found: found.to_owned() };
    if address.scheme().is_store() {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.$".contains(letter);
        return match address.place() {
            "" => Err(malformed("the bucket is missing")),
            place if place.chars().all(is_name) => Ok(()),
            _ => Err(malformed("a bucket's name has letters, digits, `-`, `_` and `.` alone")),
        };
    }
    if address.place().is_empty() {
        return Err(malformed("the host is missing"));
    }
    if address.place().contains('@') {
        return Err(malformed("it holds a user or a password, which memlint does not send"));
    }
    if address
        .typed()
        .contains(|letter: char| letter == '\\' || letter.is_whitespace() || letter.is_control())
    {
        return Err(malformed("it holds a space or a backslash"));
    }
    let url = Url::parse(address.typed()).map_err(|error| malformed(&error.to_string()))?;
    if address.scheme() == Scheme::Http && !is_loopback(&url) {
        return Err(plain(address));
    }
    Ok(())
}
