//! Each family that `/metrics` serves moves as what it counts happens: its name, its labels and its values.
//!
//! Families that clients cannot move are asserted beside their code; `guard` knows every family and demands a test for
//! each.

mod admission;
mod alerts;
mod controllers;
mod flow_control;
mod guard;
mod health;
mod process;
mod requests;
mod store;
mod unauthenticated;
mod watch_cache;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use ringwatch_http::Body;
use ringwatch_server::{Builder, InProcessServer};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests::whole;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The text of one answer of `/metrics`.
struct Scrape(String);

impl Scrape {
    /// Returns the sum of the samples with this name that have all of these labels; 0 if there are none.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let has = |(label, value): &(&str, &str)| {
                ["{", ","]
                    .iter()
                    .any(|before| rest.contains(&format!("{before}{label}=\"{value}\"")))
            };
            (rest.starts_with(['{', ' ']) && labels.iter().all(has))
                .then(|| rest.rsplit(' ').next())?
        });
        samples
            .map(|value| value.parse::<f64>().expect("a number"))
            .sum()
    }

    /// Returns the families that are served: the names of the `TYPE` lines.
    fn families(&self) -> impl Iterator<Item = &str> {
        let types = self
            .0
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "));
        types.filter_map(|line| line.split(' ').next())
    }

    /// Returns the names of the labels of the first sample with this name, in their order.
    fn labels(&self, name: &str) -> Vec<&str> {
        let begin = format!("{name}{{");
        let sample = self.0.lines().find_map(|line| line.strip_prefix(&begin));
        let labels = sample.unwrap_or_default().split("\",");
        labels
            .filter_map(|label| label.split_once('=').map(|(name, _)| name))
            .collect()
    }

    /// Asserts that the sample with this name and labels is larger than in an older scrape by exactly so much.
    #[track_caller]
    fn rose(&self, before: &Self, by: f64, name: &str, labels: &[(&str, &str)]) {
        let (old, new) = (before.value(name, labels), self.value(name, labels));
        assert!(
            (new - old - by).abs() < 1e-9,
            "{name}{labels:?} rose from {old} to {new}, not by {by}"
        );
    }
}

/// A server in this process, asked as the admin.
struct Fixture {
    server: InProcessServer,
}

impl Fixture {
    async fn start(builder: Builder) -> Self {
        Self {
            server: builder.start().await.expect("a server"),
        }
    }

    /// Sends a request; the answer counts as under way until it is dropped.
    async fn send(&self, request: http::request::Builder, body: &[u8]) -> Response<Body> {
        let request = request
            .body(Bytes::copy_from_slice(body))
            .expect("a request");
        self.server.answer(request).await
    }

    /// Sends a request, and reads its whole answer.
    async fn ask(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: &[u8],
    ) -> (StatusCode, Bytes) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type);
        let (head, body) = whole(self.send(request, body).await).await.into_parts();
        (head.status, body)
    }

    async fn get(&self, path: &str) -> (StatusCode, Bytes) {
        self.ask("GET", path, "application/json", b"").await
    }

    async fn scrape(&self) -> Scrape {
        let (status, text) = self.get("/metrics").await;
        assert_eq!(status, StatusCode::OK);
        Scrape(String::from_utf8(text.into()).expect("text"))
    }

    /// Scrapes until the metrics are as wanted.
    async fn until(&self, wanted: impl Fn(&Scrape) -> bool) -> Scrape {
        let scraped = eventually(DEADLINE, "the metrics are as wanted", async || {
            let scrape = self.scrape().await;
            if wanted(&scrape) {
                return Ok(scrape);
            }
            Err(scrape.0)
        });
        scraped.await
    }

    async fn create(&self, path: &str, object: &Value) -> Value {
        let body = object.to_string().into_bytes();
        let (status, answer) = self.ask("POST", path, "application/json", &body).await;
        assert_eq!(
            status,
            StatusCode::CREATED,
            "{}",
            String::from_utf8_lossy(&answer)
        );
        serde_json::from_slice(&answer).expect("JSON")
    }

    async fn config_map(&self, name: &str, bytes: usize) -> Value {
        self.create(CONFIG_MAPS, &config_map(name, bytes)).await
    }
}

fn config_map(name: &str, bytes: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x".repeat(bytes)}})
}
