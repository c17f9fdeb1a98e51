//! The handlers behind the filters: of the API, and of a server's own paths.

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use ringwatch_apimachinery::User;
use ringwatch_http::{RequestBody, ResponseBody};

use crate::endpoints::{Api, RequestInfo};

/// Answers the requests of authenticated users.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers a request of this user, whom the filters have authenticated, and authorized if [`Self::needs_authorization`].
    async fn handle(&self, request: Request<RequestBody>, user: User) -> Response<ResponseBody>;

    /// Returns true if the filters are to authorize a request. A handler that passes it on to a server which does that itself
    /// returns false.
    fn needs_authorization(&self, info: &RequestInfo, user: &User) -> bool {
        let _ = (info, user);
        true
    }

    /// Returns true if the handler is given the [`Credentials`] of requests, to show them to another server.
    fn takes_credentials(&self) -> bool {
        false
    }
}

/// The header `Authorization` by which the user of a request was found, among its extensions; `None` for a request without
/// credentials. Requests whose user was found by a certificate, or otherwise, have none of these.
#[derive(Clone, Debug)]
pub struct Credentials(pub Option<HeaderValue>);

#[async_trait]
impl Handler for Api {
    async fn handle(&self, request: Request<RequestBody>, user: User) -> Response<ResponseBody> {
        Self::handle(self, request, user).await
    }
}

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

/// Answers a request if its path is one of the server's own; else gives it back.
pub(super) async fn answer_own(
    own: &dyn OwnPaths,
    request: Request<RequestBody>,
    path: &str,
) -> Result<Response<ResponseBody>, Request<RequestBody>> {
    let request = match *request.method() {
        Method::PUT => match own.put(request, path).await {
            Ok(response) => return Ok(response),
            Err(request) => request,
        },
        _ => request,
    };
    let query = request.uri().query().unwrap_or_default();
    let answered = own.answer(request.method(), path, query, request.headers());
    answered.await.ok_or(request)
}
