//! The answers to requests for resource versions that are none.

use ringwatch::meta::InvalidResourceVersion;
use ringwatch_apimachinery::go_text::quoted;
use ringwatch_registry::Verb;

use super::{Failure, unknown};

impl Failure {
    /// Makes the answer to a request for a version that is none. Those of objects are told without a field.
    pub(crate) fn invalid_version(error: &InvalidResourceVersion, verb: Verb) -> Self {
        let text = quoted(error.text());
        let message = format!("resourceVersion: Invalid value: {text}: {error}");
        if matches!(verb, Verb::List | Verb::DeleteCollection) {
            return Self::bad_request(format!("invalid resource version: {message}"));
        }
        unknown(message)
    }
}
