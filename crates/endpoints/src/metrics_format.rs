//! The format in which a client wants metrics, by its Accept header.
//!
//! As `NegotiateIncludingOpenMetrics` of Prometheus' `common/expfmt`, without protobuf. kube-apiserver has protobuf but
//! no OpenMetrics.

use http::HeaderMap;

use super::negotiation::clauses;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Prometheus' text format.
    Text,
    /// OpenMetrics, which has exemplars.
    OpenMetrics,
}

/// Returns the format that the client prefers; text if it accepts neither.
#[must_use]
pub fn metrics_format(headers: &HeaderMap) -> MetricsFormat {
    let accepted = clauses(headers).into_iter().find_map(|clause| {
        let version = clause.parameter("version").unwrap_or_default();
        if clause.names("text", "plain") {
            matches!(version, "" | "0.0.4").then_some(MetricsFormat::Text)
        } else if clause.names("application", "openmetrics-text") {
            matches!(version, "" | "0.0.1" | "1.0.0").then_some(MetricsFormat::OpenMetrics)
        } else {
            None
        }
    });
    accepted.unwrap_or(MetricsFormat::Text)
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;

    #[test]
    fn the_preferred_format_that_is_served_is_taken() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            ("", MetricsFormat::Text),
            ("*/*", MetricsFormat::Text),
            ("text/plain", MetricsFormat::Text),
            ("application/json", MetricsFormat::Text),
            ("application/*", MetricsFormat::Text),
            (
                "*/*,application/openmetrics-text;q=0.5",
                MetricsFormat::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=2.0.0",
                MetricsFormat::Text,
            ),
            (
                "text/plain;version=0.0.4,application/openmetrics-text;q=0.9",
                MetricsFormat::Text,
            ),
            ("application/openmetrics-text", MetricsFormat::OpenMetrics),
            (prometheus, MetricsFormat::OpenMetrics),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().expect("a header"));
            assert_eq!(metrics_format(&headers), format, "{accept}");
        }
    }
}
