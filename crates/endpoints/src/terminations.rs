//! Counts the requests that filters end early, so that the server keeps up with the others.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::request_info::RequestInfo;
use super::request_kind::RequestKind;

/// Maximum number of different requests that are told apart. Resources are what clients name, and no route has been
/// looked for yet. Further ones are counted without them.
const TERMINATION_KINDS_MAX: usize = 1_000;

/// The counters of requests that were ended early. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Terminations {
    requests: Family<Labels, Counter>,
    /// The number of different labels so far.
    kinds: Arc<Mutex<usize>>,
}

/// The labels of `apiserver_request_terminations_total`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    #[prometheus(flatten)]
    kind: RequestKind,
    code: u16,
}

impl Terminations {
    /// Registers the family.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_request_terminations",
            "[ALPHA] Number of requests which apiserver terminated in self-defense.",
            self.requests.clone(),
        );
    }

    /// Counts a request that was answered with this code, and returns how it is counted.
    pub(super) fn count(&self, info: &RequestInfo, code: u16) -> RequestKind {
        let kind = if info.is_resource {
            RequestKind::new(info, true)
        } else {
            RequestKind::unknown(info)
        };
        let mut labels = Labels { kind, code };
        if !self.admits(&labels) {
            labels.kind = RequestKind::unknown(info);
        }
        self.requests.get_or_create(&labels).inc();
        labels.kind
    }

    /// Returns true if these labels are there already, or if there is room for them.
    fn admits(&self, labels: &Labels) -> bool {
        if self.requests.get(labels).is_some() {
            return true;
        }
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        *kinds += 1;
        *kinds <= TERMINATION_KINDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn clients_do_not_choose_how_many_samples_there_are() {
        let (terminations, mut registry) = (Terminations::default(), Registry::default());
        terminations.register(&mut registry);
        let count = |resource: &str, code| {
            let path = format!("/api/v1/namespaces/default/{resource}");
            let _ = terminations.count(&RequestInfo::new(&Method::GET, &path, ""), code);
        };
        let known = r#"verb="LIST",group="",version="v1",resource="pods",subresource="",scope="namespace",component="apiserver",code="429""#;
        count("pods", 429);
        for number in 0..2 * TERMINATION_KINDS_MAX {
            count(&format!("a{number}"), 504);
        }
        count("pods", 429);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let line = format!("apiserver_request_terminations_total{{{known}}} 2\n");
        assert!(text.contains(&line), "{line}");
        let samples = text.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(samples, TERMINATION_KINDS_MAX + 1);
    }
}
