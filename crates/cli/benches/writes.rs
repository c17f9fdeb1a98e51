//! The cost of answering a create, an update and a delete of a ConfigMap of 1 KiB and of a pod of 7 KB, from the
//! request's bytes to the answer's, beside a bare write of as many bytes to the same store in memory.
//!
//! Requests come as a connection would bring them, without sockets and TLS. What the watch cache
//! does with the changes is part of it, for the floor as well.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]
#![allow(
    missing_debug_implementations,
    unreachable_pub,
    reason = "nobody else uses it"
)]

#[allow(dead_code, reason = "nothing is listed")]
#[path = "support/serving.rs"]
mod serving;

use std::time::Duration;

use bytes::Bytes;
use criterion::Criterion;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::serving::{Serving, median, processor_time};

/// The number of bytes of data that a ConfigMap has.
const CONFIG_MAP_BYTES: usize = 800;

/// The objects that are written, and their collection.
struct Subject {
    name: &'static str,
    collection: &'static str,
    object: fn(&str) -> Value,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        name: "ConfigMap",
        collection: "/api/v1/namespaces/default/configmaps",
        object: config_map,
    },
    Subject {
        name: "pod",
        collection: "/api/v1/namespaces/default/pods",
        object: default_pod,
    },
];

fn main() {
    let runtime = Runtime::new().unwrap();
    let serving = runtime.block_on(Serving::start([]));
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    for subject in SUBJECTS {
        let writes = Writes {
            serving: &serving,
            subject: &subject,
        };
        let floor = row(&mut criterion, subject.name, "a bare write", |count| {
            runtime.block_on(writes.bare(count))
        });
        for verb in [Verb::Create, Verb::Update, Verb::Delete] {
            let took = row(&mut criterion, subject.name, verb.name(), |count| {
                runtime.block_on(writes.measured(verb, count))
            });
            let (name, verb) = (subject.name, verb.name());
            println!("{name}: {took:.0} us {verb}, {floor:.0} us a bare write");
        }
    }
    criterion.final_summary();
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "a create",
            Self::Update => "an update",
            Self::Delete => "a delete",
        }
    }
}

struct Writes<'a> {
    serving: &'a Serving,
    subject: &'a Subject,
}

impl Writes<'_> {
    /// Creates, updates and deletes so many objects, and tells what one of the verbs took.
    async fn measured(&self, measured: Verb, count: u64) -> Duration {
        let mut took = Duration::ZERO;
        for verb in [Verb::Create, Verb::Update, Verb::Delete] {
            let requests: Vec<_> = (0..count)
                .map(|number| self.request(verb, number))
                .collect();
            let before = processor_time();
            for (method, uri, body) in requests {
                self.answer(method, &uri, body).await;
            }
            if verb == measured {
                took = processor_time() - before;
            }
        }
        took
    }

    fn request(&self, verb: Verb, number: u64) -> (Method, String, Bytes) {
        let name = format!("written-{number}");
        let collection = self.subject.collection;
        let mut object = (self.subject.object)(&name);
        match verb {
            Verb::Create => (Method::POST, collection.to_owned(), text(&object)),
            Verb::Update => {
                object["metadata"]["labels"]["changed"] = "yes".into();
                (Method::PUT, format!("{collection}/{name}"), text(&object))
            }
            Verb::Delete => {
                let uri = format!("{collection}/{name}?gracePeriodSeconds=0");
                (Method::DELETE, uri, Bytes::new())
            }
        }
    }

    async fn answer(&self, method: Method, uri: &str, body: Bytes) {
        let request = http::Request::builder().method(method).uri(uri);
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        let response = self.serving.answer(request, body).await;
        let status = response.status();
        let said = response.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{uri}: {said:?}");
    }

    /// Writes as many bytes to the store, past all that the server does with them.
    async fn bare(&self, count: u64) -> Duration {
        let kind = self.subject.name.to_lowercase();
        let objects: Vec<_> = (0..count)
            .map(|number| {
                let name = format!("bare-{number}");
                let object = (self.subject.object)(&name);
                (format!("/registry/{kind}s/default/{name}"), text(&object))
            })
            .collect();
        let before = processor_time();
        for object in objects {
            self.serving.put(&[object]).await;
        }
        processor_time() - before
    }
}

fn text(object: &Value) -> Bytes {
    object.to_string().into()
}

fn config_map(name: &str) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"text": "x".repeat(CONFIG_MAP_BYTES)},
    })
}

/// A pod of the namespace that is always there, as a client writes it.
fn default_pod(name: &str) -> Value {
    let mut pod = ringwatch_testing::pod::pod(name);
    pod["metadata"]["namespace"] = "default".into();
    pod["metadata"].as_object_mut().unwrap().remove("uid");
    pod
}

/// Measures, and gives the median in microseconds of processor time.
fn row(
    criterion: &mut Criterion,
    subject: &str,
    name: &str,
    mut many: impl FnMut(u64) -> Duration,
) -> f64 {
    let mut measured = Vec::new();
    let mut group = criterion.benchmark_group("processor time of writes");
    group.bench_function(format!("{subject}: {name}"), |bencher| {
        bencher.iter_custom(|count| {
            let spent = many(count);
            measured.push(spent.as_secs_f64() * 1e6 / count as f64);
            spent
        });
    });
    group.finish();
    median(&measured)
}
