//! Authenticates tokens of OpenID Connect providers, whose claims name a user.
//!
//! The provider's keys are fetched by the server, which hands them in with [`OidcTokens::take_keys`]; a token with a
//! key that is not known asks for newer ones and waits for them, within bounds.

mod claims;
mod configuration;
mod keys;
mod tokens;

pub use claims::{AttributeSource, ClaimMapping, ClaimValidationRule};
pub use configuration::{Anonymous, AuthenticationConfig, JwtIssuer, OidcConfigError};
pub use keys::{OidcError, ProviderKeys};
pub use tokens::OidcTokens;
