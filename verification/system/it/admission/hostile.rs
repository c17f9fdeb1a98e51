//! Webhooks that hang, lie, or send whatever they like: a proper Status, in bounded time and memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch_testing::eventually::DEADLINE;
use serde_json::{Value, json};

use super::{TIMEOUT_SECONDS, agreed, config_map, configure, create, hook, message};
use crate::support::server::Server;
use crate::support::webhook::{Reply, Webhook};

/// Bytes of the answer of a webhook that sends too much.
const FLOOD_BYTES: usize = 512 << 20;

/// Bytes of the server's memory that a flood may take at most: a quarter of it, and many times what is read of it.
const FLOOD_MEMORY_MAX: u64 = 128 << 20;

fn patched(review: &Value, patch: &str) -> Reply {
    agreed(
        review,
        json!({"patchType": "JSONPatch", "patch": STANDARD.encode(patch)}),
    )
}

fn answer(path: &str, review: &Value) -> Reply {
    match path {
        "/hang" | "/hang-ignored" => Reply::Hang,
        "/flood" => Reply::Flood(FLOOD_BYTES),
        "/other-uid" => agreed(review, json!({"uid": "of another request"})),
        "/other-kind" => Reply::Json(json!({"apiVersion": "v1", "kind": "Status"})),
        "/no-response" => {
            Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}))
        }
        "/allowed-text" => agreed(review, json!({"allowed": "yes"})),
        "/code-text" => agreed(review, json!({"status": {"code": "x"}})),
        "/no-json" => Reply::Text(200, "<html>".to_owned()),
        "/error" => Reply::Text(500, "out of order".to_owned()),
        "/gone" => Reply::Text(404, String::new()),
        "/patch-unasked" => patched(review, "[]"),
        "/patch-no-json" => patched(review, "{"),
        "/patch-no-base64" => agreed(review, json!({"patchType": "JSONPatch", "patch": "%"})),
        "/patch-untyped" => agreed(review, json!({"patch": STANDARD.encode("[]")})),
        "/patch-unknown" => agreed(
            review,
            json!({"patchType": "Merge", "patch": STANDARD.encode(r#"[{"op": "test"}]"#)}),
        ),
        "/patch-none" => agreed(
            review,
            json!({"patchType": "Merge", "patch": STANDARD.encode(" [ ] ")}),
        ),
        "/patch-nowhere" => patched(review, r#"[{"op": "remove", "path": "/data/none"}]"#),
        "/patch-type" => patched(
            review,
            r#"[{"op": "replace", "path": "/data", "value": "x"}]"#,
        ),
        "/patch-kind" => patched(
            review,
            r#"[{"op": "replace", "path": "/kind", "value": "Secret"}]"#,
        ),
        "/patch-root" => patched(review, r#"[{"op": "replace", "path": "", "value": []}]"#),
        "/patch-bomb" => {
            let double = |n| format!(r#"{{"op": "copy", "from": "/data", "path": "/data/x{n}"}}"#);
            let doubles: Vec<_> = (0..40).map(double).collect();
            patched(review, &format!("[{}]", doubles.join(",")))
        }
        "/patch-abyss" => {
            let deeper = r#"{"op": "copy", "from": "/data", "path": "/data/x"}"#;
            patched(review, &format!("[{}]", vec![deeper; 900].join(",")))
        }
        _ => agreed(review, json!({})),
    }
}

/// A webhook, what of its answer is said, and more of its configuration.
#[allow(clippy::too_many_lines)] // a table
fn validating_cases(webhook: &Webhook) -> Vec<(&'static str, String, Value)> {
    let url = |name: &str, seconds: u32| {
        format!(
            "failed to call webhook: Post \"https://{}/{name}?timeout={seconds}s\":",
            webhook.address
        )
    };
    let closed = "https://127.0.0.1:1/closed";
    let stranger = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("made");
    let stranger = STANDARD.encode(stranger.cert.pem());
    let invalid = "received invalid webhook response:";
    vec![
        (
            "hang",
            format!("{} context deadline exceeded", url("hang", 1)),
            json!({"timeoutSeconds": 1}),
        ),
        (
            "flood",
            format!(
                "{} the answer is longer than 8388608 bytes",
                url("flood", TIMEOUT_SECONDS)
            ),
            json!({}),
        ),
        (
            "other-uid",
            format!("{invalid} expected response.uid="),
            json!({}),
        ),
        (
            "other-kind",
            "failed to call webhook: converting (v1.Status) to (v1.AdmissionReview): unknown conversion".to_owned(),
            json!({}),
        ),
        (
            "no-response",
            format!("{invalid} webhook response was absent"),
            json!({}),
        ),
        (
            "no-json",
            "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string".to_owned(),
            json!({}),
        ),
        (
            "allowed-text",
            "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool".to_owned(),
            json!({}),
        ),
        (
            "code-text",
            "failed to call webhook: json: cannot unmarshal string into Go struct field Status.response.status.code of type int32".to_owned(),
            json!({}),
        ),
        (
            "error",
            "failed to call webhook: an error on the server (\"out of order\") has prevented the request from succeeding".to_owned(),
            json!({}),
        ),
        (
            "gone",
            "failed to call webhook: the server could not find the requested resource".to_owned(),
            json!({}),
        ),
        (
            "patch-unasked",
            format!("{invalid} validating webhook may not return response.patch"),
            json!({}),
        ),
        (
            "closed",
            format!(
                "failed to call webhook: Post \"{closed}?timeout={TIMEOUT_SECONDS}s\": dial tcp 127.0.0.1:1: "
            ),
            json!({"clientConfig": {"url": closed, "caBundle": webhook.ca_bundle()}}),
        ),
        (
            "stranger",
            format!(
                "{} tls: failed to verify certificate: x509: certificate signed by unknown authority",
                url("stranger", TIMEOUT_SECONDS)
            ),
            json!({"clientConfig": {
                "url": format!("https://{}/stranger", webhook.address), "caBundle": stranger}}),
        ),
        (
            "unvouched",
            format!(
                "{} tls: failed to verify certificate: x509: certificate signed by unknown authority",
                url("unvouched", TIMEOUT_SECONDS)
            ),
            json!({"clientConfig": {"url": format!("https://{}/unvouched", webhook.address)}}),
        ),
    ]
}

fn peak_memory(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.id());
    let status = std::fs::read_to_string(path).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("a number") << 10
}

#[tokio::test]
async fn webhooks_that_hang_or_lie_end_in_a_status() {
    let webhook = Webhook::start(answer).await;
    let (server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let cases = validating_cases(&webhook);
    let mut hooks: Vec<Value> = Vec::new();
    for (name, _, more) in &cases {
        hooks.push(hook(&webhook, name, more.clone()));
    }
    hooks.push(hook(
        &webhook,
        "hang-ignored",
        json!({"timeoutSeconds": 1, "failurePolicy": "Ignore"}),
    ));
    configure(&client, &webhook, "validatingwebhookconfigurations", hooks).await;
    let before = peak_memory(&server);
    for (name, why, _) in &cases {
        let object = config_map("a", name);
        let answered = tokio::time::timeout(DEADLINE, create(&client, &object, "")).await;
        let answered = answered.expect("in time");
        let expected = format!(
            "500 Internal error occurred: failed calling webhook \"{name}.example.com\": {why}"
        );
        assert!(
            message(&answered).starts_with(&expected),
            "{name}: {}\n{expected}",
            message(&answered)
        );
        assert_eq!(answered.1["reason"], "InternalError", "{name}");
    }
    let ignored = create(&client, &config_map("ignored", "hang-ignored"), "").await;
    assert_eq!(ignored.0, 201, "{}", message(&ignored));
    let taken = peak_memory(&server) - before;
    assert!(taken < FLOOD_MEMORY_MAX, "{taken}");
}

#[tokio::test]
async fn patches_that_make_no_sense_end_in_a_status() {
    let webhook = Webhook::start(answer).await;
    let (_server, client) = Server::ready(&["--storage-backend=memory"]).await;
    let cases = [
        (
            "patch-no-json",
            "failed calling webhook \"patch-no-json.example.com\": received undecodable patch in webhook response: unexpected end of JSON input",
        ),
        (
            "patch-no-base64",
            "failed calling webhook \"patch-no-base64.example.com\": failed to call webhook: illegal base64 data at input byte 0",
        ),
        (
            "patch-untyped",
            "failed calling webhook \"patch-untyped.example.com\": received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            "patch-unknown",
            "failed calling webhook \"patch-unknown.example.com\": unsupported patch type \"Merge\"",
        ),
        ("patch-nowhere", ""),
        (
            "patch-type",
            "json: cannot unmarshal string into Go struct field",
        ),
        (
            "patch-kind",
            "admission webhook \"patch-kind.example.com\" changed apiVersion or kind of the object",
        ),
        (
            "patch-root",
            "admission webhook \"patch-root.example.com\" changed apiVersion or kind of the object",
        ),
        (
            "patch-bomb",
            "the patch of admission webhook \"patch-bomb.example.com\" makes the object too large",
        ),
        (
            "patch-abyss",
            "the patch of admission webhook \"patch-abyss.example.com\" makes the object too large",
        ),
    ];
    let names = cases
        .map(|(name, _)| name)
        .into_iter()
        .chain(["patch-none"]);
    let hooks = names.map(|name| hook(&webhook, name, json!({})));
    configure(
        &client,
        &webhook,
        "mutatingwebhookconfigurations",
        hooks.collect(),
    )
    .await;
    let unchanged = create(&client, &config_map("a", "patch-none"), "").await;
    assert_eq!(unchanged.0, 201, "{}", message(&unchanged));
    for (name, why) in cases {
        let mut object = config_map("a", name);
        object["data"]["k"] = json!("v".repeat(1_000));
        let answered = create(&client, &object, "").await;
        let expected = format!("500 Internal error occurred: {why}");
        assert!(
            message(&answered).starts_with(&expected),
            "{name}: {}",
            message(&answered)
        );
    }
}
