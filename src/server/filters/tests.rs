//! The filters around a handler that blocks, panics or answers, as its path says.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use super::*;
use crate::endpoints::full;
use crate::server::authentication::TokenFile;

struct Stub {
    entered: Arc<Notify>,
}

#[async_trait]
impl Handler for Stub {
    async fn handle(&self, request: Request<RequestBody>, user: User) -> Response<ResponseBody> {
        match request.uri().path() {
            "/api/v1/block" => {
                self.entered.notify_one();
                std::future::pending().await
            }
            "/api/v1/panic" => panic!("as asked"),
            _ => Response::new(full(user.name)),
        }
    }
}

struct Nothing;

#[async_trait]
impl OwnPaths for Nothing {
    async fn answer(&self, _path: &str, _query: &str) -> Option<Response<ResponseBody>> {
        None
    }
}

fn filters(reads_max: u32) -> (Arc<Filters>, Arc<Notify>) {
    let tokens = "admin,admin,1,system:masters\nview,viewer,2,viewers";
    let entered = Arc::new(Notify::new());
    let filters = Filters {
        authenticator: Authenticator::new(TokenFile::parse(tokens).expect("tokens")),
        in_flight: InFlight::new(reads_max, 1),
        request_timeout: Duration::from_secs(60),
        end_of_watches: CancellationToken::new(),
        own: Arc::new(Nothing),
        api: Arc::new(Stub {
            entered: Arc::clone(&entered),
        }),
        clock: Clock::real(),
    };
    (Arc::new(filters), entered)
}

fn get(path: &str, token: &str) -> Request<RequestBody> {
    let mut request = Request::new(full(""));
    *request.uri_mut() = path.parse().expect("a path");
    let value = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert(AUTHORIZATION, value);
    request
}

async fn text(response: Response<ResponseBody>) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

#[tokio::test]
async fn without_good_credentials_the_answer_is_401() {
    let (filters, _) = filters(1);
    let response = filters.answer(get("/api/v1/namespaces", "bad"), None).await;
    assert_eq!(response.status(), 401);
    let headers = response.headers();
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    assert_eq!(headers[CACHE_CONTROL], "no-cache, private");
    assert!(headers.contains_key(AUDIT_ID));
    assert!(!headers.contains_key(X_CONTENT_TYPE_OPTIONS));
    assert_eq!(
        text(response).await.trim_end(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#
    );
}

#[tokio::test]
async fn a_full_server_turns_all_but_administrators_away() {
    let (filters, entered) = filters(1);
    let mut blocked = Box::pin(filters.answer(get("/api/v1/block", "view"), None));
    assert!(futures::poll!(&mut blocked).is_pending());
    entered.notified().await;
    let response = filters.answer(get("/api/v1/pods", "view"), None).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()[RETRY_AFTER], "1");
    assert_eq!(response.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(
        response.headers()[CONTENT_TYPE],
        "text/plain; charset=utf-8"
    );
    let words = "Too many requests, please try again later.\n";
    assert_eq!(text(response).await, words);
    let watch = filters
        .answer(get("/api/v1/pods?watch=1", "view"), None)
        .await;
    assert_eq!(watch.status(), 200);
    let admin = filters.answer(get("/api/v1/pods", "admin"), None).await;
    assert_eq!(admin.status(), 200);
    drop(blocked);
    let response = filters.answer(get("/api/v1/pods", "view"), None).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_place_is_taken_until_the_body_is_sent() {
    let (filters, _) = filters(1);
    let first = filters.answer(get("/api/v1/pods", "view"), None).await;
    let second = filters.answer(get("/api/v1/pods", "view"), None).await;
    assert_eq!(second.status(), 429);
    assert_eq!(text(first).await, "viewer");
    let third = filters.answer(get("/api/v1/pods", "view"), None).await;
    assert_eq!(third.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_ends_with_504() {
    let (filters, _) = filters(1);
    let request = get("/api/v1/block?timeout=5s", "view");
    let response = filters.answer(request, None).await;
    assert_eq!(response.status(), 504);
    let body = text(response).await;
    assert!(
        body.contains(r#""reason":"Timeout","details":{},"code":504"#),
        "{body}"
    );
}

#[tokio::test]
async fn a_panic_ends_the_request_alone() {
    let (filters, _) = filters(1);
    let response = filters.answer(get("/api/v1/panic", "view"), None).await;
    assert_eq!(response.status(), 500);
    let body = text(response).await;
    assert!(
        body.starts_with("This request caused apiserver to panic."),
        "{body}"
    );
    let response = filters.answer(get("/api/v1/pods", "view"), None).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn the_clients_audit_id_is_kept_but_cut() {
    let (filters, _) = filters(1);
    let mut request = get("/api/v1/pods", "view");
    let long = "x".repeat(100).parse().expect("a header");
    request.headers_mut().insert(AUDIT_ID, long);
    let response = filters.answer(request, None).await;
    assert_eq!(response.headers()[AUDIT_ID], "x".repeat(64));
}
