//! What keeps an object from being read, in memlint's words.
//!
//! Always: of what libraries and servers say only types, statuses and the system's own reason are used. Their whole messages hold
//! addresses with signatures, and texts that were signed.

use std::error::Error;

use reqwest::StatusCode;

use super::super::super::address::{Address, Scheme};
use super::super::RemoteError;
use super::client::{NothingToRead, SILENCE};
use super::stores::{looked_at, secrets};

/// Words of the stores for credentials that are no longer good, with which they answer 400.
const EXPIRED: [&str; 5] =
    ["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestTimeTooSkewed", "InvalidAccessKeyId"];
/// Words of S3 for a bucket of another region.
const ELSEWHERE: [&str; 3] = ["PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect"];
/// Words of the stores for a bucket that is not there.
const NO_BUCKET: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "InvalidBucketName"];

/// The longest reason that is shown.
const MOST_OF_REASON: usize = 160;

/// What went wrong, as far as types tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NetworkFault {
    /// The server's own answer.
    Told(NothingToRead),
    /// No connection.
    Unconnected,
    /// Nothing came for too long.
    Silent,
    /// An address without encryption, where that is not allowed.
    Plain,
    /// A connection that ended.
    Lost,
    /// Anything else.
    Other,
}

impl NetworkFault {
    pub(super) fn of(error: &(dyn Error + 'static)) -> NetworkFault {
        let told = chain(error).find_map(|one| one.downcast_ref::<NothingToRead>());
        let transport = chain(error).find_map(|one| one.downcast_ref::<reqwest::Error>());
        match (told, transport) {
            (Some(told), _) => NetworkFault::Told(told.clone()),
            (None, Some(error)) if error.is_connect() => NetworkFault::Unconnected,
            (None, Some(error)) if error.is_timeout() => NetworkFault::Silent,
            (None, Some(error)) if error.is_builder() => NetworkFault::Plain,
            (None, Some(_)) => NetworkFault::Lost,
            (None, None) => NetworkFault::Other,
        }
    }

    /// Whether asking again may help at once. What was silent once is not waited for again.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            NetworkFault::Told(NothingToRead::Status(status, _)) => {
                status.is_server_error() || [408, 429].contains(&status.as_u16())
            }
            NetworkFault::Unconnected | NetworkFault::Lost => true,
            NetworkFault::Told(_) | NetworkFault::Silent | NetworkFault::Plain | NetworkFault::Other => false,
        }
    }
}

/// An error and what caused it, the outermost first.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |one: &&'a (dyn Error + 'static)| (*one).source())
}

/// Why there is nothing to read at an address.
pub(super) fn failure(address: &Address, error: &(dyn Error + 'static)) -> RemoteError {
    let name = address.shown();
    match NetworkFault::of(error) {
        NetworkFault::Told(NothingToRead::Status(status, code)) => answered(address, status, code.as_deref()),
        NetworkFault::Told(NothingToRead::Strayed(whither)) => {
            RemoteError::Redirected { name, whither: whither.to_owned() }
        }
        NetworkFault::Told(NothingToRead::NoRanges) => RemoteError::NoRanges { name },
        NetworkFault::Unconnected => {
            RemoteError::Unreachable { name, why: reason(error), next: what_to_look_at(address.scheme()) }
        }
        NetworkFault::Silent => RemoteError::Silent { name, seconds: SILENCE.as_secs() },
        NetworkFault::Plain => plain(address),
        NetworkFault::Lost => {
            RemoteError::Failed { name, answer: format!("the connection ended ({})", reason(error)) }
        }
        NetworkFault::Other => RemoteError::Failed { name, answer: reason(error) },
    }
}

fn answered(address: &Address, status: StatusCode, code: Option<&str>) -> RemoteError {
    let name = address.shown();
    let is = |words: &[&str]| code.is_some_and(|code| words.contains(&code));
    let answer = match code {
        Some(code) => format!("{status} ({code})"),
        None => status.to_string(),
    };
    let next = || looked_at(address.scheme());
    match status.as_u16() {
        _ if is(&ELSEWHERE) => RemoteError::Elsewhere { name, answer },
        301 | 307 if address.scheme() == Scheme::S3 => RemoteError::Elsewhere { name, answer },
        _ if is(&NO_BUCKET) => RemoteError::NoBucket {
            name,
            bucket: address.place().to_owned(),
            next: elsewhere(address.scheme()),
        },
        400 if is(&EXPIRED) => RemoteError::Refused { name, answer, next: next() },
        // Those that can be followed never come here.
        300..=399 => RemoteError::Redirected { name, whither: "to what is no https:// address".to_owned() },
        401 | 403 | 407 => RemoteError::Refused { name, answer, next: next() },
        404 | 405 | 410 => RemoteError::NoObject { name },
        412 => RemoteError::Changed { name },
        _ => RemoteError::Failed { name, answer: format!("the server says {answer}") },
    }
}

/// That somebody could listen.
pub(super) fn plain(address: &Address) -> RemoteError {
    let next = match address.scheme() {
        Scheme::S3 => {
            "name an https:// endpoint in AWS_ENDPOINT_URL; AWS_ALLOW_HTTP=true permits http, for a network that you trust"
        }
        Scheme::Gs => {
            "name an https:// address in GOOGLE_BASE_URL; GOOGLE_ALLOW_HTTP=true permits http, for a network that you trust"
        }
        Scheme::Az => {
            "name an https:// endpoint in AZURE_STORAGE_ENDPOINT; AZURE_ALLOW_HTTP=true permits http, for a network that you trust"
        }
        Scheme::Http | Scheme::Https => {
            "write https://; http:// is read from this machine alone (localhost, 127.0.0.1), or piped: curl -fsSL ADDRESS | memlint \
             check -"
        }
    };
    RemoteError::Plain { name: address.shown(), next }
}

/// That there is nothing to sign with.
pub(super) fn no_credentials(address: &Address, error: &(dyn Error + 'static)) -> RemoteError {
    let why = match NetworkFault::of(error) {
        NetworkFault::Told(NothingToRead::Status(status, _)) => format!("whoever gives them says {status}"),
        NetworkFault::Silent => "whoever gives them is silent".to_owned(),
        NetworkFault::Unconnected => {
            format!("the environment has none, and the machine gives none ({})", reason(error))
        }
        _ => reason(error),
    };
    RemoteError::NoCredentials { name: address.shown(), why, next: looked_at(address.scheme()) }
}

/// That the environment says what no store understands.
pub(super) fn unconfigured(address: &Address, error: &(dyn Error + 'static)) -> RemoteError {
    RemoteError::Unconfigured { name: address.shown(), why: reason(error), next: looked_at(address.scheme()) }
}

fn elsewhere(scheme: Scheme) -> String {
    match scheme {
        Scheme::S3 => "check its name; AWS_ENDPOINT_URL and AWS_REGION say where it is looked for",
        Scheme::Az => "check its name; AZURE_STORAGE_ACCOUNT_NAME says whose containers they are",
        Scheme::Gs | Scheme::Http | Scheme::Https => "check its name",
    }
    .to_owned()
}

fn what_to_look_at(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "check the network, HTTPS_PROXY, AWS_ENDPOINT_URL and AWS_REGION; certificates are the system's, or those of SSL_CERT_FILE"
        }
        Scheme::Gs => {
            "check the network and HTTPS_PROXY; certificates are the system's, or those of SSL_CERT_FILE"
        }
        Scheme::Az => {
            "check the network, HTTPS_PROXY, AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ENDPOINT; certificates are the system's, or \
             those of SSL_CERT_FILE"
        }
        Scheme::Http | Scheme::Https => {
            "check the host's name, the network and HTTPS_PROXY; certificates are the system's, or those of SSL_CERT_FILE"
        }
    }
}

/// The innermost reason, without anything that looks like an address or a secret.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    let Some(innermost) = chain(error).last() else { return String::new() };
    let mut text = innermost.to_string();
    for secret in secrets() {
        text = text.replace(&secret, "...");
    }
    let line = text.lines().next().unwrap_or_default();
    let is_bare = |word: &&str| !word.contains("://") && !word.contains(['=', '?', '<', '&']);
    let words: Vec<&str> =
        line.split_whitespace().map(|word| if is_bare(&word) { word } else { "..." }).collect();
    words.join(" ").chars().take(MOST_OF_REASON).collect()
}
