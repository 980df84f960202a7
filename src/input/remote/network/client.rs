//! The HTTP client below the stores: its time limits, where it may be redirected, and its errors as types.
//!
//! Always: one attempt a request. An answer other than success becomes a [`NothingToRead`] with no more of its text than the store's own
//! short word for it: such texts repeat addresses, keys and what was signed.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::ClientConfigKey;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use reqwest::header::{CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, RANGE};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{StatusCode, Url};

/// How long a connection may take. On one continent it takes 0.1 s.
const CONNECTING: Duration = Duration::from_secs(5);
/// How long a server may be silent, before its answer and while it sends.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// How often an address may lead to another.
const MOST_REDIRECTS: usize = 5;
/// Bytes of an error's text that are read. Those of the stores have less than 1 KiB.
const MOST_OF_ERROR: usize = 64 << 10;
/// What stands for the length of an object of which the server does not say it.
pub(super) const UNKNOWN_LENGTH: u64 = u64::MAX;

/// Why there is nothing to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NothingToRead {
    /// An answer other than success, and the store's word for it, such as `NoSuchBucket`.
    Status(StatusCode, Option<String>),
    /// The whole object where a part was asked for.
    NoRanges,
    /// A redirection that is not followed.
    Strayed(&'static str),
}

impl fmt::Display for NothingToRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NothingToRead::Status(status, Some(code)) => write!(f, "{status} ({code})"),
            NothingToRead::Status(status, None) => write!(f, "{status}"),
            NothingToRead::NoRanges => f.write_str("no ranges"),
            NothingToRead::Strayed(whither) => f.write_str(whither),
        }
    }
}

impl Error for NothingToRead {}

/// Makes the clients of all stores out of two, so that they share connections.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    secure: reqwest::Client,
    plain: reqwest::Client,
}

impl Connector {
    pub(super) fn new() -> Result<Connector, reqwest::Error> {
        Ok(Connector { secure: client(true)?, plain: client(false)? })
    }
}

fn client(secure: bool) -> Result<reqwest::Client, reqwest::Error> {
    // Another provider that was installed before does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!("memlint/", env!("CARGO_PKG_VERSION")))
        .https_only(secure)
        .http1_only()
        .connect_timeout(CONNECTING)
        .read_timeout(SILENCE)
        .redirect(Policy::custom(follow))
        .build()
}

/// Follows to the same scheme; without encryption, on the same host alone.
fn follow(attempt: Attempt) -> reqwest::redirect::Action {
    let Some(from) = attempt.previous().last() else { return attempt.follow() };
    let to = attempt.url();
    let strayed = match (from.scheme(), to.scheme()) {
        _ if attempt.previous().len() > MOST_REDIRECTS => "again and again",
        ("https", "https") => return attempt.follow(),
        ("http", "http") if from.host() == to.host() => return attempt.follow(),
        ("http", "http") => "to another machine without encryption",
        ("https", "http") => "from https to http",
        ("http", "https") => "from http to https",
        _ => "to another scheme",
    };
    attempt.error(NothingToRead::Strayed(strayed))
}

/// Whether it is this machine that an address names.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client = if plain { &self.plain } else { &self.secure };
        Ok(HttpClient::new(Client(client.clone())))
    }
}

/// A client whose errors are [`NothingToRead`].
#[derive(Debug)]
struct Client(reqwest::Client);

impl HttpService for Client {
    // What `async_trait` makes of an `async fn`.
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let asked = request.headers().clone();
            let response = self.0.call(request).await?;
            if response.status().is_success() {
                given(&asked, response)
            } else {
                Err(refused(response).await)
            }
        })
    }
}

/// What a server gives, if it is what was asked for.
fn given(asked: &HeaderMap, response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (mut parts, body) = response.into_parts();
    if asked.contains_key(RANGE) {
        let other = |(wanted, is): (&HeaderValue, &HeaderValue)| wanted != is;
        // A server that heeds no condition tells all the same what it has now.
        if asked.get(IF_MATCH).zip(parts.headers.get(ETAG)).is_some_and(other) {
            return Err(told(NothingToRead::Status(StatusCode::PRECONDITION_FAILED, None)));
        }
        if parts.status != StatusCode::PARTIAL_CONTENT {
            return Err(told(NothingToRead::NoRanges));
        }
    }
    if !parts.headers.contains_key(CONTENT_LENGTH) {
        parts.headers.insert(CONTENT_LENGTH, UNKNOWN_LENGTH.into());
    }
    Ok(HttpResponse::from_parts(parts, body))
}

/// An answer other than success, of whose text a bounded part is read.
async fn refused(response: HttpResponse) -> HttpError {
    let (parts, body): (_, HttpResponseBody) = response.into_parts();
    let header = |name: &'static str| parts.headers.get(HeaderName::from_static(name));
    // Azure writes it beside the text, too, and where there is none.
    let named = header("x-ms-error-code").and_then(|value| value.to_str().ok()).and_then(plain_word);
    let mut text = Vec::new();
    let mut pieces = body.bytes_stream();
    while text.len() < MOST_OF_ERROR
        && let Some(Ok(piece)) = pieces.next().await
    {
        text.extend_from_slice(&piece);
    }
    let code = named.or_else(|| code_in(&String::from_utf8_lossy(&text)));
    told(NothingToRead::Status(parts.status, code))
}

fn told(what: NothingToRead) -> HttpError {
    // A kind that is not tried again.
    HttpError::new(HttpErrorKind::Unknown, what)
}

/// The store's word for an error: `<Code>NoSuchBucket</Code>` of S3, Google and Azure.
fn code_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    plain_word(code)
}

/// A word of letters, as stores name errors.
fn plain_word(word: &str) -> Option<String> {
    let is_plain =
        (1..=60).contains(&word.len()) && word.chars().all(|letter| letter.is_ascii_alphanumeric());
    is_plain.then(|| word.to_owned())
}
