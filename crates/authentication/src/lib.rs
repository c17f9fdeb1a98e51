//! Authentication: users out of client certificates, bearer tokens and the headers of front proxies; service account
//! tokens.
//!
//! Handshakes do not belong here, which `ringwatch-tls` and `ringwatch-http` have, nor does what a user may do, which
//! `ringwatch-authorization` decides.
//!
//! As in kube-apiserver a certificate counts before a token, and a certificate that is not good is
//! no reason to refuse a good token: the handshake takes any certificate whose key the client
//! holds, and its chain is judged here, so that the answer is a 401 rather than a broken connection.

mod authenticator;
mod bootstrap_tokens;
mod certificate_metrics;
mod client_certificate;
mod error;
mod extension_authentication;
mod identified;
mod jwt;
mod keys;
pub mod oidc;
mod request_headers;
pub mod service_accounts;
mod stored;
mod token_file;
mod token_source;
mod token_webhook;
mod web_socket_token;

pub use authenticator::{Authenticator, is_anonymous};
pub use bootstrap_tokens::BootstrapTokens;
pub use client_certificate::{CertifiedUser, ClientCertificates, Peer};
pub use error::TokenError;
pub use extension_authentication::ExtensionAuthentication;
pub use identified::TokenUser;
use identified::target_audiences;
pub use keys::{KeyError, SigningKey, VerifyingKey};
pub use request_headers::RequestHeaders;
pub use token_file::TokenFile;
pub use token_source::TokenSource;
pub use token_webhook::{TokenWebhook, TokenWebhookConfig};
pub use web_socket_token::WebSocketTokenError;

/// The target of this crate's log lines, which requests of clients cause.
pub const LOG_TARGET: &str = module_path!();
