//! `/metrics` in Prometheus' text format.
//!
//! The encoder at hand writes OpenMetrics, in which a counter's family lacks the `_total` of its
//! samples. Scrapers of Kubernetes know the families by their older names, so the comment lines of
//! counters are rewritten.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::registry::Registry;
use ringwatch_apiserver::endpoints::{ResponseBody, TextError, plain};

const TEXT_FORMAT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");

/// The counters whose names do not end with `_total`. They are registered as gauges, whose names the encoder leaves alone.
const BARE_COUNTERS: [&str; 2] = [
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
];

/// Returns the answer to a scrape: all metrics of a registry.
pub(super) fn answer(registry: &Registry) -> Response<ResponseBody> {
    let mut text = String::new();
    if let Err(error) = encode_registry(&mut text, registry) {
        let text = format!("cannot encode metrics: {error}");
        return TextError::Internal(&text).response();
    }
    let mut response = plain(text_format(&text));
    response.headers_mut().insert(CONTENT_TYPE, TEXT_FORMAT);
    response
}

/// Rewrites OpenMetrics' text to Prometheus' older text format.
fn text_format(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('#') {
            output.push_str(line);
            output.push('\n');
            continue;
        }
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => {
                let help = help.strip_suffix('.').unwrap_or(help);
                let counts = lines
                    .peek()
                    .is_some_and(|next| *next == format!("# TYPE {name} counter"));
                let suffix = if counts { "_total" } else { "" };
                output.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            ["#", "TYPE", name, "counter"] => {
                output.push_str(&format!("# TYPE {name}_total counter\n"));
            }
            ["#", "TYPE", name, "gauge"] if BARE_COUNTERS.contains(name) => {
                output.push_str(&format!("# TYPE {name} counter\n"));
            }
            ["#", "TYPE", name, "info" | "unknown"] => {
                output.push_str(&format!("# TYPE {name} gauge\n"));
            }
            ["#", "UNIT" | "EOF", ..] => {}
            _ => {
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;

    #[test]
    fn counters_keep_their_whole_names() {
        let mut registry = Registry::default();
        let counter: Counter = Counter::default();
        counter.inc();
        registry.register("apiserver_request", "[STABLE] Requests", counter);
        registry.register("gauge", "[ALPHA] A gauge.", Gauge::<i64>::default());
        let mut text = String::new();
        encode_registry(&mut text, &registry).expect("text");
        assert_eq!(
            text_format(&text),
            "# HELP apiserver_request_total [STABLE] Requests\n\
             # TYPE apiserver_request_total counter\n\
             apiserver_request_total 1\n\
             # HELP gauge [ALPHA] A gauge.\n\
             # TYPE gauge gauge\n\
             gauge 0\n"
        );
    }
}
