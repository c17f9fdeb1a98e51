//! Servers of APIs that hang, lie, say too much, break off, lead elsewhere or are this server itself.

use std::fs;

use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stand_in::{Reply, StandIn};
use super::{API_SERVICES, Answer, Front, Pair, Proxy, encoded, head};

/// The size of an answer in bytes that a client is passed: more than anything between both ends holds.
const PASSED_BYTES: usize = 16 << 20;

const LIST: &str =
    r#"{"groupVersion": "GROUP/v1", "resources": [{"name": "things", "kind": "Thing"}]}"#;

fn text(status: &str, more: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Raw(format!(
        "HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\n\r\n{body}"
    ))
}

fn respond(path: &str) -> Reply {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts[..] {
        ["apis"] => text("404 Not Found", "", ""),
        ["apis", "hangs", "v1"] => Reply::Hang,
        ["apis", "lies", "v1"] => Reply::Json(LIST.replace("GROUP", "apps")),
        ["apis", "floods", "v1"] => Reply::Flood(100 << 20),
        ["apis", group, "v1"] => Reply::Json(LIST.replace("GROUP", group)),
        ["openapi", ..] => Reply::Json(
            r#"{"paths": {"apis/odd/v1": {"serverRelativeURL": "https://elsewhere/x"}}}"#
                .to_owned(),
        ),
        [.., "redirect"] => text("302 Found", "Location: https://10.0.0.1/x\r\n", ""),
        [.., "cut"] => Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_owned()),
        [.., "nonsense"] => Reply::Raw("nonsense\r\n\r\n".to_owned()),
        [.., "flood"] => Reply::Flood(PASSED_BYTES),
        [.., "endless"] => Reply::Endless,
        [.., "hang"] => Reply::Hang,
        [.., "exec"] => Reply::Echo,
        [.., "cors"] => text(
            "200 OK",
            "Access-Control-Allow-Origin: *\r\nX-Own: 1\r\n",
            "ok",
        ),
        _ => text("418 I'm a teapot", "", "short and stout"),
    }
}

async fn start() -> (Front, StandIn) {
    let folder = tempfile::tempdir().expect("a folder");
    let front = Front::start(&Proxy::new(folder.path()), &[]).await;
    let remote = StandIn::start(folder.path(), "odd", respond).await;
    front.local_service("odd").await;
    (front, remote)
}

#[tokio::test]
async fn redirections_are_passed_on_if_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let flag = "--aggregator-reject-forwarding-redirect=false".to_owned();
    let front = Front::start(&Proxy::new(folder.path()), &[vec![flag]]).await;
    let remote = StandIn::start(folder.path(), "odd", respond).await;
    front.local_service("odd").await;
    let trust = json!({"caBundle": encoded(&remote.pem)});
    front.aggregate("odd", "odd", remote.port, &trust).await;
    front.condition("odd", "True", "Passed").await;
    // The condition is in the store before the proxy has followed it.
    let request = "GET /apis/odd/v1/redirect";
    let answer = front
        .answers("secret", request, "", |it| it.status == 302)
        .await;
    assert!(
        answer.head.contains("location: https://10.0.0.1/x"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn what_an_odd_server_answers_is_passed_on_or_refused() {
    let (front, mut remote) = start().await;
    let trust = json!({"caBundle": encoded(&remote.pem)});
    front.aggregate("odd", "odd", remote.port, &trust).await;
    front.condition("odd", "True", "Passed").await;
    let headers = "Audit-ID: one\r\nX-Remote-Group: x";
    let ask = async |path: &str| {
        let request = format!("GET /apis/odd/v1/{path}");
        front.raw("secret", &request, headers).await
    };
    let things = "GET /apis/odd/v1/things";
    front
        .answers("secret", things, headers, |it| it.status == 418)
        .await;
    let answer = front.raw("secret", "GET /apis/o%64d/v1/things", "").await;
    assert_eq!(answer.status, 418, "the same, {answer:?}");
    let path = "/apis/odd/v1/namespaces/ns%2Fsecrets/things";
    let answer = front.raw("secret", &format!("GET {path}"), "").await;
    assert_eq!(answer.status, 404, "it is nobody's, {answer:?}");
    let answer = ask("hang?timeout=1s").await;
    assert_eq!(answer.status, 504, "{answer:?}");
    // Long enough for the begin of the answer to come.
    let answer = ask("endless?timeout=5s").await;
    let broken = answer.body != "half" || !answer.is_whole || answer.head.contains(": 9");
    assert!(answer.status == 200 && broken, "{answer:?}");
    let answer = ask("redirect").await;
    let refusal = "the backend attempted to redirect this request, which is not permitted";
    assert_eq!((answer.status, answer.body.as_str()), (502, refusal));
    let answer = ask("cut").await;
    assert!(
        answer.status == 0 || answer.status == 200 && "half".starts_with(&answer.body),
        "{answer:?}"
    );
    let answer = ask("nonsense").await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(
        answer.body.starts_with("error trying to reach service: "),
        "{answer:?}"
    );
    let answer = ask("cors").await;
    assert!(
        answer.head.contains("x-own: 1") && !answer.head.contains("allow-origin"),
        "{answer:?}"
    );
    let answer = ask("flood").await;
    assert!(
        answer.is_whole && answer.body.len() == PASSED_BYTES,
        "{}",
        answer.head
    );

    tells_who_asks(&mut remote);
    let group = front.told("odd").await;
    assert_eq!(group["versions"][0]["resources"][0]["resource"], "things");
    let index = front.get("/openapi/v3").await.expect("an index");
    assert_eq!(index["paths"]["apis/odd/v1"], Value::Null);
}

/// Every request of a client names its user, and nobody whom the client would like to be.
fn tells_who_asks(remote: &mut StandIn) {
    while let Ok(head) = remote.heads.try_recv() {
        let head = head.to_lowercase();
        assert!(
            !head.contains("authorization:") && !head.contains("x-remote-group: x"),
            "{head}"
        );
        if head.starts_with("get /apis/odd/v1/") {
            for said in [
                "x-remote-user: admin",
                "x-remote-uid: 1",
                "x-remote-group: system:masters",
                "x-remote-group: system:authenticated",
                "audit-id: one",
                "via: 1.1 ringwatch-",
            ] {
                assert!(head.contains(&format!("\r\n{said}")), "{said}: {head}");
            }
        }
    }
}

#[tokio::test]
async fn upgraded_connections_are_joined_with_the_server_of_an_api() {
    let (front, remote) = start().await;
    let trust = json!({"caBundle": encoded(&remote.pem)});
    front.aggregate("odd", "odd", remote.port, &trust).await;
    front.condition("odd", "True", "Passed").await;
    let request = "POST /apis/odd/v1/namespaces/default/things/a/exec HTTP/1.1\r\nHost: x\r\n\
        Authorization: Bearer secret\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    let mut stream = eventually(DEADLINE, "the connection is upgraded", async || {
        let mut stream = front.connect().await;
        stream.write_all(request.as_bytes()).await.expect("written");
        let head = head(&mut stream).await.expect("a head");
        if head.starts_with("HTTP/1.1 101 ") {
            Ok(stream)
        } else {
            Err(head)
        }
    })
    .await;
    let exchange = async {
        let mut said = [0; 6];
        stream.read_exact(&mut said).await.expect("said");
        assert_eq!(&said, b"ready\n");
        stream.write_all(b"again!").await.expect("written");
        stream.read_exact(&mut said).await.expect("said again");
        assert_eq!(&said, b"again!");
    };
    tokio::time::timeout(DEADLINE, exchange)
        .await
        .expect("in time");
}

#[tokio::test]
async fn a_server_that_tells_nothing_useful_has_no_resources() {
    let (front, remote) = start().await;
    let trust = json!({"caBundle": encoded(&remote.pem)});
    for group in ["lies", "floods", "hangs"] {
        front.aggregate(group, "odd", remote.port, &trust).await;
    }
    let message = front
        .condition("hangs", "False", "FailedDiscoveryCheck")
        .await;
    assert!(message.contains("context deadline exceeded"), "{message}");
    for group in ["lies", "floods"] {
        front.condition(group, "True", "Passed").await;
        let group = front.discovered(group).await;
        assert_eq!(
            group["versions"],
            json!([{"version": "v1", "freshness": "Stale"}])
        );
    }
}

#[tokio::test]
async fn a_server_that_proves_to_be_another_gets_no_request() {
    let (front, mut remote) = start().await;
    let other = tempfile::tempdir().expect("a folder");
    let other = Pair::serving(other.path(), "odd");
    let trust = json!({"caBundle": encoded(&other.pem)});
    front.aggregate("odd", "odd", remote.port, &trust).await;
    // Whether anybody is there is asked without looking who, as kube-apiserver does.
    front.condition("odd", "True", "Passed").await;
    let expected = "error trying to reach service: tls: failed to verify certificate: x509: \
        certificate signed by unknown authority\n";
    let things = "GET /apis/odd/v1/things";
    let is_refused = |it: &Answer| it.status == 503 && it.body == expected;
    front.answers("secret", things, "", is_refused).await;
    while let Ok(head) = remote.heads.try_recv() {
        assert!(head.starts_with("GET /apis/odd/v1 "), "{head}");
    }
    let trust = json!({"spec": {"caBundle": encoded("nothing")}});
    let path = format!("{API_SERVICES}/v1.odd");
    front.ask("PATCH", &path, &trust).await.expect("patched");
    let expected = "unable to load root certificates: unable to parse bytes as PEM block\n";
    let is_refused = |it: &Answer| it.status == 500 && it.body == expected;
    front.answers("secret", things, "", is_refused).await;
}

#[tokio::test]
async fn an_api_that_leads_back_to_this_server_ends_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Proxy::new(folder.path());
    let serving = Pair::serving(folder.path(), "self");
    let more = [serving.serving_flags(), proxy.remote_flags()];
    let front = Front::start(&proxy, &more).await;
    front.local_service("self").await;
    let pem = fs::read_to_string(&serving.certificate).expect("a certificate");
    let trust = json!({"caBundle": encoded(&pem)});
    front
        .aggregate("loop", "self", front.server.port(), &trust)
        .await;
    let message = front
        .condition("loop", "False", "FailedDiscoveryCheck")
        .await;
    assert!(
        message.contains("bad status from https://localhost:"),
        "{message}"
    );
    assert!(message.ends_with(": 503"), "{message}");
    // Even when somebody says that it is available.
    let status = json!({"status": {"conditions": [
        {"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let path = format!("{API_SERVICES}/v1.loop/status");
    let expected = "error trying to reach service: the request came from this server\n";
    eventually(DEADLINE, "it is asked for its own API", async || {
        front.ask("PATCH", &path, &status).await.expect("patched");
        let answer = front.raw("secret", "GET /apis/loop/v1/things", "").await;
        if answer.status == 503 && answer.body == expected {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
}
