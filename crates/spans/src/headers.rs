//! The headers by which a trace goes from one server to the next: `traceparent`, `tracestate` and `baggage`.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};

/// The header with the caller's span.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with facts that the caller passes on to all servers.
const BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// Maximum number of bytes of the baggage that is kept while its request lasts; more is ignored.
const BAGGAGE_BYTES_MAX: usize = 1 << 10;

/// The headers of a request, to read from.
struct From<'a>(&'a HeaderMap);

impl Extractor for From<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// The headers of a request, to write to.
struct Into<'a>(&'a mut HeaderMap);

impl Injector for Into<'_> {
    fn set(&mut self, key: &str, value: String) {
        let header = (HeaderName::try_from(key), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = header {
            self.0.insert(name, value);
        }
    }
}

/// Returns the context of the caller: its span and its baggage, as far as the headers have them and it is not too long.
pub(crate) fn extract(headers: &HeaderMap) -> Context {
    let carrier = From(headers);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &carrier);
    match headers.get(BAGGAGE) {
        Some(baggage) if baggage.len() <= BAGGAGE_BYTES_MAX => {
            BaggagePropagator::new().extract_with_context(&context, &carrier)
        }
        _ => context,
    }
}

/// Writes the current span into the headers of a request to another server, in the place of one that is there; does
/// nothing if there is no current span.
pub fn inject(headers: &mut HeaderMap) {
    Context::map_current(|current| {
        if current.has_active_span() {
            let mut carrier = Into(headers);
            TraceContextPropagator::new().inject_context(current, &mut carrier);
            BaggagePropagator::new().inject_context(current, &mut carrier);
        }
    });
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;
    use crate::Span;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn sent(received: &[(&'static str, &str)]) -> HeaderMap {
        let headers = received.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).expect("a value"),
            )
        });
        let headers: HeaderMap = headers.collect();
        let handling = async {
            let mut sent = HeaderMap::new();
            inject(&mut sent);
            sent
        };
        let span = Span::of_caller(&headers, &Clock::real());
        futures::executor::block_on(span.within(handling))
    }

    #[test]
    fn the_callers_span_and_baggage_go_on() {
        let sent = sent(&[
            ("traceparent", PARENT),
            ("tracestate", "vendor=1"),
            ("baggage", "tenant=a"),
        ]);
        assert_eq!(sent["traceparent"], PARENT);
        assert_eq!(sent["tracestate"], "vendor=1");
        assert_eq!(sent["baggage"], "tenant=a");
    }

    #[test]
    fn long_baggage_stays_behind() {
        for (length, is_kept) in [(BAGGAGE_BYTES_MAX, true), (BAGGAGE_BYTES_MAX + 1, false)] {
            let baggage = format!("tenant={}", "a".repeat(length - "tenant=".len()));
            let sent = sent(&[("traceparent", PARENT), ("baggage", &*baggage)]);
            assert_eq!(sent["traceparent"], PARENT);
            assert_eq!(sent.contains_key("baggage"), is_kept, "{length}");
        }
    }

    #[test]
    fn nothing_is_sent_without_a_valid_parent() {
        assert!(sent(&[]).is_empty());
        assert!(sent(&[("traceparent", "00-zz-00f067aa0ba902b7-01")]).is_empty());
        let zero = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        assert!(sent(&[("traceparent", zero)]).is_empty());
    }
}
