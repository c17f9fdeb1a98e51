//! Exemplars: histograms name requests whose spans are exported, in OpenMetrics.

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};

use super::collector::named;
use super::{
    CONFIG_MAPS, DEADLINE, NOT_SAMPLED, SAMPLED, TRACE, WATCH_LIST, ask, collected, eventually,
};
use crate::support::requests;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// The families with an exemplar of each request that is answered.
const OF_REQUESTS: [&str; 3] = [
    "apiserver_request_duration_seconds",
    "apiserver_request_sli_duration_seconds",
    "apiserver_response_sizes",
];
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.2";

/// Returns the media type of `/metrics` and its text.
async fn scrape(client: &kube::Client, accept: &str) -> (String, String) {
    let request = Request::get("/metrics").header(ACCEPT, accept);
    let answer = requests::send(
        client,
        requests::with_document(request, &serde_json::Value::Null),
    )
    .await;
    assert_eq!(answer.status(), 200);
    let media_type = answer.headers()[CONTENT_TYPE].to_str().unwrap();
    let text = String::from_utf8(answer.body().to_vec()).unwrap();
    (media_type.to_owned(), text)
}

/// Returns the exemplars in the lines of buckets that begin so and are of a resource.
fn exemplars<'a>(text: &'a str, family: &str, resource: &str) -> Vec<&'a str> {
    let resource = format!("resource=\"{resource}\"");
    let buckets = text
        .lines()
        .filter(|it| it.starts_with(&format!("{family}_bucket{{")) && it.contains(&resource));
    let buckets: Vec<&str> = buckets.collect();
    assert!(!buckets.is_empty(), "no {family} of {resource}");
    let exemplars = buckets.iter().filter_map(|it| it.split_once(" # "));
    exemplars.map(|(_, exemplar)| exemplar).collect()
}

#[tokio::test]
async fn sampled_requests_are_exemplars_in_open_metrics() {
    let (collector, _server, admin) = collected().await;
    assert_eq!(ask(&admin, "GET", CONFIG_MAPS, SAMPLED, "").await, 200);
    assert_eq!(ask(&admin, "GET", SECRETS, NOT_SAMPLED, "").await, 200);
    // A request is counted when its answer is gone, which a client may know before the server.
    let counted = eventually(DEADLINE, "both requests are counted", async || {
        let (media_type, text) = scrape(&admin, OPEN_METRICS).await;
        let is_counted = |resource: &str| {
            let resource = format!("resource=\"{resource}\"");
            OF_REQUESTS.iter().all(|family| {
                let bucket = format!("{family}_bucket{{");
                text.lines()
                    .any(|it| it.starts_with(&bucket) && it.contains(&resource))
            })
        };
        (is_counted("configmaps") && is_counted("secrets")).then_some((media_type, text))
    });
    let (media_type, text) = counted.await;
    assert_eq!(
        media_type,
        "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
    );
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let name = "GET /api/v1/namespaces/{:namespace}/configmaps";
    let trace = collector.trace(TRACE, name).await;
    let ids = format!(
        "{{trace_id=\"{TRACE}\",span_id=\"{}\"}} ",
        named(&trace, name).id()
    );
    for family in OF_REQUESTS {
        let found = exemplars(&text, family, "configmaps");
        let [exemplar] = found[..] else {
            panic!("{family}: {found:?}");
        };
        let numbers = exemplar.strip_prefix(&ids);
        let numbers = numbers.unwrap_or_else(|| panic!("no {ids} in {exemplar}"));
        let numbers = numbers.split(' ').map(|it| it.parse::<f64>().unwrap());
        // The value, and the time in seconds.
        let [value, at] = numbers.collect::<Vec<_>>()[..] else {
            panic!("{exemplar}");
        };
        assert!(value > 0.0 && at > 1e9, "{exemplar}");
        let others = exemplars(&text, family, "secrets");
        assert!(others.is_empty(), "{others:?}");
    }

    let object = r#"{"metadata": {"name": "a"}}"#;
    let created = ask(&admin, "POST", CONFIG_MAPS, SAMPLED, object).await;
    assert_eq!(created, 201);
    let (_, text) = scrape(&admin, OPEN_METRICS).await;
    let step = "apiserver_admission_step_admission_duration_seconds_bucket{";
    let mut steps = text.lines().filter(|it| it.starts_with(step));
    assert!(steps.any(|it| it.contains(TRACE)), "{text}");

    let (media_type, text) = scrape(&admin, "text/plain").await;
    assert_eq!(
        media_type,
        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    );
    let found = exemplars(&text, "apiserver_request_duration_seconds", "configmaps");
    assert!(found.is_empty(), "{found:?}");
    assert!(!text.contains(TRACE) && !text.contains("# EOF"), "{text}");
}

#[tokio::test]
async fn the_initial_events_of_a_sampled_watch_are_an_exemplar() {
    let (_collector, _server, admin) = collected().await;
    let path = format!("{CONFIG_MAPS}?{WATCH_LIST}");
    assert_eq!(ask(&admin, "GET", &path, SAMPLED, "").await, 200);
    let (_, text) = scrape(&admin, OPEN_METRICS).await;
    let family = "apiserver_watch_list_duration_seconds";
    let found = exemplars(&text, family, "configmaps");
    assert_eq!(found.len(), 1, "{text}");
    assert!(found[0].contains(TRACE), "{found:?}");
}
