//! Continue tokens in Kubernetes' format.

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The first key of the next page, without the list's own key.
    pub start: String,
    /// The revision of the list; `None` goes on with the newest state.
    pub revision: Option<u64>,
}

/// The token cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ContinueTokenError(pub String);

impl ContinueToken {
    /// Reads a token of a list under `prefix`; the start becomes the full key.
    pub fn decode(token: &str, prefix: &str) -> Result<Self, ContinueTokenError> {
        let _ = (token, prefix);
        Err(ContinueTokenError(String::new()))
    }
    /// Writes the token of a list under `prefix` that goes on at the full key `start`.
    pub fn encode(&self, prefix: &str) -> Result<String, ContinueTokenError> {
        let _ = prefix;
        Err(ContinueTokenError(String::new()))
    }
}
