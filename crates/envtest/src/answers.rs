//! The answers of the stand-in: those of etcd's paths of health and version, and where the store is to be kept.

use std::path::PathBuf;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use serde::{Deserialize, Serialize};

/// The path at which a stand-in tells that it is one.
pub(crate) const PLACE_PATH: &str = "/ringwatch/store-place";
/// The version of etcd that is told to clients: one that kube-apiserver 1.36 is used with.
pub(crate) const ETCD_VERSION: &str = "3.6.0";

/// The place of the store, as a stand-in tells it to API servers of its machine.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StorePlace {
    /// The folder, as an absolute path.
    pub(crate) folder: PathBuf,
    /// True if acknowledged writes need not survive a loss of power.
    pub(crate) unsafe_no_fsync: bool,
}

/// Returns the answer to a request. The place is told to clients of this machine alone.
pub(crate) fn answer<B>(
    request: &Request<B>,
    is_here: bool,
    place: &StorePlace,
) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        let allowed = HeaderValue::from_static("GET");
        refusal.headers_mut().insert(ALLOW, allowed);
        return refusal;
    }
    match request.uri().path() {
        "/health" => json(r#"{"health":"true","reason":""}"#),
        "/livez" | "/readyz" => text(StatusCode::OK, "ok\n"),
        "/version" => json(format!(
            r#"{{"etcdserver":"{ETCD_VERSION}","etcdcluster":"{ETCD_VERSION}","storage":"{ETCD_VERSION}"}}"#
        )),
        PLACE_PATH if is_here => match serde_json::to_vec(place) {
            Ok(document) => json(document),
            // A path that is no text.
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        },
        _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn json(body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    let value = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: Method, path: &str, is_here: bool) -> StatusCode {
        let request = Request::builder().method(method).uri(path).body(());
        let place = StorePlace {
            folder: "/data".into(),
            unsafe_no_fsync: true,
        };
        answer(&request.expect("a request"), is_here, &place).status()
    }

    #[test]
    fn etcds_paths_answer_anybody_and_the_place_is_told_to_this_machine() {
        for path in ["/health", "/livez", "/readyz", "/version"] {
            assert_eq!(status(Method::GET, path, false), StatusCode::OK, "{path}");
        }
        assert_eq!(status(Method::GET, PLACE_PATH, true), StatusCode::OK);
        assert_eq!(
            status(Method::GET, PLACE_PATH, false),
            StatusCode::NOT_FOUND
        );
        assert_eq!(status(Method::GET, "/v2/keys", true), StatusCode::NOT_FOUND);
        let refused = status(Method::POST, "/health", true);
        assert_eq!(refused, StatusCode::METHOD_NOT_ALLOWED);
    }
}
