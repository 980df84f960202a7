//! The store behind an address, with the credentials that the environment has for it.

use std::env;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, CredentialProvider, ObjectStore, RetryConfig,
};

use super::super::super::address::{Address, Scheme};
use super::client::Connector;

/// Finds out whether there are credentials, before anything is asked with them.
type CredentialCheck = Box<dyn Fn() -> BoxFuture<'static, object_store::Result<()>> + Send + Sync>;

/// A bucket of a store, or one address of a server.
pub(super) struct Shelf {
    pub(super) store: Arc<dyn ObjectStore>,
    /// `None` where nothing is signed.
    pub(super) proof: Option<CredentialCheck>,
}

/// The store behind an address.
pub(super) fn shelf(address: &Address, connector: Connector) -> object_store::Result<Shelf> {
    match address.scheme() {
        Scheme::S3 => s3(address.place(), connector),
        Scheme::Gs => gs(address.place(), connector),
        Scheme::Az => az(address.place(), connector),
        Scheme::Http | Scheme::Https => web(address, connector),
    }
}

fn s3(bucket: &str, connector: Connector) -> object_store::Result<Shelf> {
    let builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_retry(once())
        .with_http_connector(connector);
    let unsigned = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature).as_deref() == Some("true");
    let store = builder.build()?;
    let proof = (!unsigned).then(|| proof(store.credentials()));
    Ok(Shelf { store: Arc::new(store), proof })
}

fn gs(bucket: &str, connector: Connector) -> object_store::Result<Shelf> {
    // The store's own default is to allow it.
    let plain = env::var("GOOGLE_ALLOW_HTTP").is_ok_and(|value| value == "true");
    let builder = GoogleCloudStorageBuilder::from_env()
        .with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), plain.to_string())
        .with_bucket_name(bucket)
        .with_retry(once())
        .with_http_connector(connector);
    let unsigned = builder.get_config_value(&GoogleConfigKey::SkipSignature).as_deref() == Some("true");
    let store = builder.build()?;
    let proof = (!unsigned).then(|| proof(store.credentials()));
    Ok(Shelf { store: Arc::new(store), proof })
}

fn az(container: &str, connector: Connector) -> object_store::Result<Shelf> {
    let builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(container)
        .with_retry(once())
        .with_http_connector(connector);
    let unsigned = builder.get_config_value(&AzureConfigKey::SkipSignature).as_deref() == Some("true");
    let store = builder.build()?;
    let proof = (!unsigned).then(|| proof(store.credentials()));
    Ok(Shelf { store: Arc::new(store), proof })
}

/// The whole address is the store, and the object in it has no name: so the query, where signatures stand, stays as it is.
fn web(address: &Address, connector: Connector) -> object_store::Result<Shelf> {
    let plain = address.scheme() == Scheme::Http;
    let store = HttpBuilder::new()
        .with_url(address.typed())
        .with_client_options(ClientOptions::new().with_allow_http(plain))
        .with_retry(once())
        .with_http_connector(connector)
        .build()?;
    Ok(Shelf { store: Arc::new(store), proof: None })
}

fn proof<C: Send + Sync + 'static>(
    provider: &Arc<dyn CredentialProvider<Credential = C>>,
) -> CredentialCheck {
    let provider = Arc::clone(provider);
    Box::new(move || {
        let provider = Arc::clone(&provider);
        Box::pin(async move { provider.get_credential().await.map(|_| ()) })
    })
}

/// One attempt: who asks counts them.
fn once() -> RetryConfig {
    RetryConfig { max_retries: 0, backoff: BackoffConfig::default(), ..RetryConfig::default() }
}

/// The variables that decide what a store is shown, of which only the names are ever told.
fn variables(scheme: Scheme) -> &'static [&'static str] {
    match scheme {
        Scheme::S3 => &[
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_ROLE_ARN",
            "AWS_SKIP_SIGNATURE",
            "AWS_ENDPOINT_URL",
        ],
        Scheme::Gs => &[
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_SKIP_SIGNATURE",
        ],
        Scheme::Az => &[
            "AZURE_STORAGE_ACCOUNT_NAME",
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_CLIENT_ID",
            "AZURE_CLIENT_SECRET",
            "AZURE_TENANT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
            "AZURE_SKIP_SIGNATURE",
        ],
        Scheme::Http | Scheme::Https => &[],
    }
}

/// Which variables are looked at, which of them are set, and what else helps.
pub(super) fn looked_at(scheme: Scheme) -> String {
    let variables = variables(scheme);
    let set: Vec<&str> = variables.iter().copied().filter(|name| env::var_os(name).is_some()).collect();
    let set = if set.is_empty() { "none".to_owned() } else { set.join(", ") };
    let beside = match scheme {
        Scheme::S3 => {
            "and to the machine's role; profiles are not read, but `eval \"$(aws configure export-credentials --format env)\"` exports \
             one, and AWS_SKIP_SIGNATURE=true reads what is public"
        }
        Scheme::Gs => {
            "to what `gcloud auth application-default login` wrote, and to the machine's account; GOOGLE_SKIP_SIGNATURE=true reads \
             what is public"
        }
        Scheme::Az => "and to the machine's identity; AZURE_SKIP_SIGNATURE=true reads what is public",
        Scheme::Http | Scheme::Https => {
            return "memlint shows a server no credentials but those in the address; a signed address may have expired, and `curl` with \
                    a header can be piped: curl -fsSL -H ... ADDRESS | memlint check -"
                .to_owned();
        }
    };
    format!("memlint looks at {} (set here: {set}) {beside}", variables.join(", "))
}

/// What the environment keeps secret of the stores, to be taken out of whatever is shown.
pub(super) fn secrets() -> Vec<String> {
    let is_ours = |name: &str| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|start| name.starts_with(start));
    let told = |name: &str| ["KEY", "TOKEN", "SECRET", "ACCOUNT"].iter().any(|part| name.contains(part));
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| is_ours(name) && told(name) && value.len() >= 8)
        .map(|(_, value)| value)
        .collect()
}
