//! `/metrics` in Prometheus' text format, or as OpenMetrics for clients that prefer it.
//!
//! The encoder at hand writes OpenMetrics, in which a counter's family lacks the `_total` of its samples. Scrapers of
//! Kubernetes know the families by their older names, so comment lines are rewritten. Exemplars exist in OpenMetrics
//! alone.

use std::borrow::Cow;
use std::collections::HashSet;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use ringwatch_endpoints::{MetricsFormat, TextError, metrics_format, plain};
use ringwatch_http::ResponseBody;

/// The media type of Prometheus' format.
const TEXT: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
const OPEN_METRICS: HeaderValue = HeaderValue::from_static(
    "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
);

/// The counters whose names do not end with `_total`. They are registered as gauges, whose names the encoder leaves
/// alone.
const BARE_COUNTERS: [&str; 2] = [
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
];

/// Returns the answer to a scrape with these headers: all metrics of a registry.
pub(crate) fn answer(registry: &Registry, headers: &HeaderMap) -> Response<ResponseBody> {
    let mut text = String::new();
    if let Err(error) = encode(&mut text, registry) {
        let text = format!("cannot encode metrics: {error}");
        return TextError::Internal(&text).response();
    }
    let format = metrics_format(headers);
    let mut response = plain(rewritten(&text, format));
    let media_type = match format {
        MetricsFormat::Text => TEXT,
        MetricsFormat::OpenMetrics => OPEN_METRICS,
    };
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// Rewrites the encoder's text so that families have kube-apiserver's names in the format. A counter is of unknown type
/// in OpenMetrics if its name lacks `_total`, or is that of another family without it.
fn rewritten(text: &str, format: MetricsFormat) -> String {
    let is_text = format == MetricsFormat::Text;
    let mut output = String::with_capacity(text.len());
    let mut families = HashSet::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let words: Vec<&str> = match line.starts_with('#') {
            true => line.splitn(4, ' ').collect(),
            false => Vec::new(),
        };
        let line: Cow<'_, str> = match words.as_slice() {
            [] if is_text => without_exemplar(line).into(),
            ["#", "HELP", name, help] => {
                let is_counter = lines
                    .peek()
                    .is_some_and(|next| *next == format!("# TYPE {name} counter"));
                let has_suffix = is_counter && (is_text || families.contains(name));
                let suffix = if has_suffix { "_total" } else { "" };
                let help = help.strip_suffix('.').unwrap_or(help);
                format!("# HELP {name}{suffix} {help}").into()
            }
            ["#", "TYPE", name, kind] => {
                let is_first = families.insert(*name);
                let (suffix, kind) = match *kind {
                    "counter" if is_text => ("_total", "counter"),
                    "counter" if !is_first => ("_total", "unknown"),
                    "gauge" if BARE_COUNTERS.contains(name) => {
                        ("", if is_text { "counter" } else { "unknown" })
                    }
                    "info" | "unknown" if is_text => ("", "gauge"),
                    kind => ("", kind),
                };
                format!("# TYPE {name}{suffix} {kind}").into()
            }
            ["#", "UNIT" | "EOF", ..] if is_text => continue,
            _ => line.into(),
        };
        output.push_str(&line);
        output.push('\n');
    }
    output
}

/// Returns a sample without its exemplar. The mark of one may stand in the value of a label, too.
fn without_exemplar(sample: &str) -> &str {
    const MARK: &str = " # {";
    if !sample.contains(MARK) {
        return sample;
    }
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (place, character) in sample.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted && sample[place..].starts_with(MARK) => return &sample[..place],
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;

    /// Returns the text of a counter, of a gauge, of a counter with the gauge's name, and of a counter without
    /// `_total`.
    fn written(format: MetricsFormat) -> String {
        let mut registry = Registry::default();
        let counter: Counter = Counter::default();
        counter.inc();
        registry.register("requests", "[STABLE] Requests", counter.clone());
        registry.register("lost", "[ALPHA] A gauge.", Gauge::<i64>::default());
        registry.register("lost", "[ALPHA] Losses", counter);
        let bare = BARE_COUNTERS[0];
        registry.register(bare, "[ALPHA] Failures", Gauge::<i64>::default());
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        rewritten(&text, format)
    }

    #[test]
    fn counters_keep_their_whole_names() {
        assert_eq!(
            written(MetricsFormat::Text),
            "# HELP requests_total [STABLE] Requests\n\
             # TYPE requests_total counter\n\
             requests_total 1\n\
             # HELP lost [ALPHA] A gauge.\n\
             # TYPE lost gauge\n\
             lost 0\n\
             # HELP lost_total [ALPHA] Losses\n\
             # TYPE lost_total counter\n\
             lost_total 1\n\
             # HELP apiserver_admission_webhook_fail_open_count [ALPHA] Failures\n\
             # TYPE apiserver_admission_webhook_fail_open_count counter\n\
             apiserver_admission_webhook_fail_open_count 0\n"
        );
    }

    #[test]
    fn families_of_open_metrics_have_names_of_their_own() {
        assert_eq!(
            written(MetricsFormat::OpenMetrics),
            "# HELP requests [STABLE] Requests\n\
             # TYPE requests counter\n\
             requests_total 1\n\
             # HELP lost [ALPHA] A gauge.\n\
             # TYPE lost gauge\n\
             lost 0\n\
             # HELP lost_total [ALPHA] Losses\n\
             # TYPE lost_total unknown\n\
             lost_total 1\n\
             # HELP apiserver_admission_webhook_fail_open_count [ALPHA] Failures\n\
             # TYPE apiserver_admission_webhook_fail_open_count unknown\n\
             apiserver_admission_webhook_fail_open_count 0\n\
             # EOF\n"
        );
    }

    #[test]
    fn exemplars_are_cut_off_and_values_that_look_like_them_are_not() {
        let bucket = r#"a_bucket{le="1.0",path="/a # {\" # {\\"} 2"#;
        let exemplar = r#" # {trace_id="4b",span_id="f0"} 0.5 1796000000.5"#;
        assert_eq!(without_exemplar(&format!("{bucket}{exemplar}")), bucket);
        assert_eq!(without_exemplar(bucket), bucket);
        assert_eq!(without_exemplar("a_total 1"), "a_total 1");
    }
}
