//! The header by which browsers use nothing but HTTPS (HSTS).
//!
//! Ported from Kubernetes 1.36, apiserver/pkg/server/filters/hsts.go `WithHSTS` and
//! apiserver/pkg/server/options/server_run_options.go `validateHSTSDirectives`.

use http::HeaderValue;

/// A directive of the header Strict-Transport-Security.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportSecurity(String);

impl TransportSecurity {
    /// Reads a directive: `includeSubDomains`, `preload` or `max-age=SECONDS`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let max_age = text.strip_prefix("max-age=");
        let is_age = max_age.is_some_and(|age| !age.contains('='));
        if !is_age && !matches!(text, "includeSubDomains" | "preload")
            || HeaderValue::from_str(text).is_err()
        {
            return Err(
                "allowed values: max-age=expireTime, includeSubDomains, preload. see \
                 https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
                    .to_owned(),
            );
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the header of these directives; `None` if there are none.
    #[must_use]
    pub fn header(directives: &[Self]) -> Option<HeaderValue> {
        if directives.is_empty() {
            return None;
        }
        let directives: Vec<&str> = directives.iter().map(|it| it.0.as_str()).collect();
        // Each can be part of a header, as parsing checks.
        HeaderValue::from_str(&directives.join("; ")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_joined() {
        let directives = ["max-age=31536000", "includeSubDomains", "preload"]
            .map(|text| TransportSecurity::parse(text).expect("a directive"));
        let header = TransportSecurity::header(&directives).expect("a header");
        assert_eq!(header, "max-age=31536000; includeSubDomains; preload");
        assert_eq!(TransportSecurity::header(&[]), None);
    }

    #[test]
    fn other_directives_are_refused() {
        for wrong in [
            "",
            "max-age",
            "max-age=1=2",
            "report-uri=x",
            "max-age=\u{1}",
        ] {
            TransportSecurity::parse(wrong).expect_err(wrong);
        }
    }
}
