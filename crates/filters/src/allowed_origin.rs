//! The headers by which browsers let pages of other origins read answers (CORS).
//!
//! Ported from Kubernetes 1.36, apiserver/pkg/server/filters/cors.go `WithCORS` and
//! apiserver/pkg/server/options/server_run_options.go `validateCorsAllowedOriginList`.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ORIGIN,
};
use http::{HeaderMap, HeaderValue};
use regex::Regex;

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, OPTIONS, PUT, DELETE, PATCH");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("Date");
const CREDENTIALS: HeaderValue = HeaderValue::from_static("true");

/// A regular expression of origins whose pages may read answers.
#[derive(Clone, Debug)]
pub struct AllowedOrigin(Regex);

impl AllowedOrigin {
    /// Reads an expression, which must fix both ends of the host name.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let help = "write it as ^https://example\\.com(:|$)";
        if text.is_empty() {
            return Err(format!("empty value; {help}"));
        }
        let invalid = |why: &str| format!("invalid regular expression: {why}; {help}");
        let contains_one = |parts: [&str; 2]| parts.iter().any(|part| text.contains(part));
        if !contains_one(["^", "//"]) || !contains_one(["$", ":"]) {
            return Err(invalid(
                "regular expression does not pin to start/end of host in the origin header",
            ));
        }
        let regex = Regex::new(text).map_err(|error| invalid(&error.to_string()))?;
        Ok(Self(regex))
    }
}

/// Returns the origin of a request, if its pages may read the answer.
pub(super) fn allowed_origin(
    origins: &[AllowedOrigin],
    headers: &HeaderMap,
) -> Option<HeaderValue> {
    if origins.is_empty() {
        return None;
    }
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
    let allowed = origins
        .iter()
        .any(|AllowedOrigin(regex)| regex.is_match(text));
    allowed.then(|| origin.clone())
}

/// Sets the headers of an answer that pages of this origin may read.
pub(super) fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, CREDENTIALS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_match_where_the_expression_does() {
        let origins = ["^https://a\\.example(:|$)", "//b\\.example:"]
            .map(|text| AllowedOrigin::parse(text).expect("an origin"));
        let allowed = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_str(origin).expect("a header"));
            allowed_origin(&origins, &headers).is_some()
        };
        for origin in [
            "https://a.example",
            "https://a.example:8443",
            "http://b.example:80",
        ] {
            assert!(allowed(origin), "{origin}");
        }
        for origin in ["", "https://a.example.org", "http://b.example", "null"] {
            assert!(!allowed(origin), "{origin}");
        }
        assert!(allowed_origin(&origins, &HeaderMap::new()).is_none());
    }

    #[test]
    fn an_expression_that_matches_parts_of_hosts_is_refused() {
        for wrong in ["", "example.com", "^example", "example$", "^(:"] {
            AllowedOrigin::parse(wrong).expect_err(wrong);
        }
    }
}
