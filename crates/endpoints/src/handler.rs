//! The handlers behind the filters: of the API, and of a server's own paths.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use ringwatch_apimachinery::User;
use ringwatch_audit::Recording;
use ringwatch_http::{RequestBody, ResponseBody};

use super::request_info::RequestInfo;

/// The client that makes a request, as the filters have found.
#[derive(Debug, Default)]
pub struct Caller {
    /// The user that the request is made as.
    pub user: User,
    /// The address of the client, or of the last proxy before this server.
    pub address: Option<SocketAddr>,
    /// The credentials by which the user was found; see [`Credentials`].
    pub credentials: Option<Credentials>,
    /// The audit record of the request, if there is one.
    pub recording: Option<Arc<Recording>>,
}

impl From<User> for Caller {
    fn from(user: User) -> Self {
        Self {
            user,
            ..Self::default()
        }
    }
}

/// Answers the requests of authenticated users.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers a request, of which `info` was read, of this caller, whom the filters have authenticated, and authorized
    /// if [`Self::needs_authorization`].
    async fn handle(
        &self,
        request: Request<RequestBody>,
        info: Arc<RequestInfo>,
        caller: Caller,
    ) -> Response<ResponseBody>;

    /// Returns true if the filters are to authorize a request. A handler that passes it on to a server which does that
    /// itself returns false.
    fn needs_authorization(&self, info: &RequestInfo, user: &User) -> bool {
        let _ = (info, user);
        true
    }

    /// Returns true if the handler is given the [`Credentials`] of requests, to show them to another server.
    fn takes_credentials(&self) -> bool {
        false
    }
}

/// The header `Authorization` by which the user of a request was found; `None` for a request without credentials.
/// Requests whose user was found by a certificate, or otherwise, have none of these.
#[derive(Clone, Debug)]
pub struct Credentials(pub Option<HeaderValue>);

/// The paths that the server serves besides the API, such as health.
#[async_trait]
pub trait OwnPaths: Send + Sync + 'static {
    /// Answers the request if the path is one of the server's own; else returns `None`.
    async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Option<Response<ResponseBody>>;

    /// Takes a PUT if the path is one of the server's own that is written to; else gives the request back.
    async fn put(
        &self,
        request: Request<RequestBody>,
        path: &str,
    ) -> Result<Response<ResponseBody>, Request<RequestBody>> {
        let _ = path;
        Err(request)
    }
}
