//! What every request passes before the API sees it, in kube-apiserver's order.
//!
//! ```text
//! audit id, panic -> 500, Cache-Control
//!   authentication -> 401
//!     deadline -> 504
//!       in flight -> 429
//!         authorization (everybody who is somebody may)
//!           health and metrics, or the API
//! ```

mod answer;
mod deadline;
mod held_body;
mod in_flight;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use http::header::{CACHE_CONTROL, HeaderName};
use http::{HeaderValue, Request, Response};
use tokio_util::sync::CancellationToken;

pub use answer::{error_text, plain};
pub use held_body::HeldBody;
pub use in_flight::{InFlight, Permit};

use super::authentication::{Authenticator, CertifiedUser};
use crate::clock::Clock;
use crate::endpoints::{Api, RequestBody, RequestInfo, ResponseBody};
use crate::meta::Status;
use crate::registry::User;

/// The header that names a request in logs.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// A client's own audit id is cut to this.
const AUDIT_ID_BYTES_MAX: usize = 64;

/// What answers a request of a known user.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers the request.
    async fn handle(&self, request: Request<RequestBody>, user: User) -> Response<ResponseBody>;
}

#[async_trait]
impl Handler for Api {
    async fn handle(&self, request: Request<RequestBody>, user: User) -> Response<ResponseBody> {
        Self::handle(self, request, user).await
    }
}

/// What the server serves besides the API, such as health.
#[async_trait]
pub trait OwnPaths: Send + Sync + 'static {
    /// The answer, if the path is one of the server's own.
    async fn answer(&self, path: &str, query: &str) -> Option<Response<ResponseBody>>;
}

/// The filters and what lies behind them.
pub struct Filters {
    /// Tells who asks.
    pub authenticator: Authenticator,
    /// Counts what is in progress.
    pub in_flight: InFlight,
    /// How long a request may take, watches aside.
    pub request_timeout: Duration,
    /// Ends watches that have not ended by themselves when the server does.
    pub end_of_watches: CancellationToken,
    /// The server's own paths.
    pub own: Arc<dyn OwnPaths>,
    /// The API.
    pub api: Arc<dyn Handler>,
    /// The time.
    pub clock: Clock,
}

impl std::fmt::Debug for Filters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Filters").finish_non_exhaustive()
    }
}

impl Filters {
    /// Answers a request that came over a connection with this certificate. Never fails.
    pub async fn answer(
        &self,
        request: Request<RequestBody>,
        certified: Option<&CertifiedUser>,
    ) -> Response<ResponseBody> {
        let started = self.clock.now();
        let audit_id = audit_id(&request);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let answered = AssertUnwindSafe(self.identified(request, certified)).catch_unwind();
        let mut response = match answered.await {
            Ok(response) => response,
            Err(panic) => {
                tracing::error!(%method, path = uri.path(), panic = panic_text(&*panic), "a request panicked");
                answer::panicked()
            }
        };
        let headers = response.headers_mut();
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        if !audit_id.is_empty() {
            headers.insert(AUDIT_ID, audit_id);
        }
        tracing::debug!(
            %method, path = uri.path(), code = response.status().as_u16(),
            microseconds = self.clock.now().duration_since(started).as_micros(), "request"
        );
        response
    }

    async fn identified(
        &self,
        request: Request<RequestBody>,
        certified: Option<&CertifiedUser>,
    ) -> Response<ResponseBody> {
        let now = self.clock.wall();
        let user = self
            .authenticator
            .authenticate(certified, request.headers(), now);
        let Some(user) = user else {
            return answer::status(&Status::failure(401, "Unauthorized", "Unauthorized"));
        };
        let query = request.uri().query().unwrap_or_default();
        let info = RequestInfo::new(request.method(), request.uri().path(), query);
        if info.is_long_running() {
            let end = self.end_of_watches.clone();
            return self
                .dispatch(request, user)
                .await
                .map(|body| HeldBody::until(body, end).boxed());
        }
        match deadline::of(query, self.request_timeout) {
            Err(message) => answer::status(&Status::failure(400, "BadRequest", message)),
            Ok(limit) => tokio::time::timeout(limit, self.counted(request, user, &info))
                .await
                .unwrap_or_else(|_| answer::status(&deadline::exceeded())),
        }
    }

    async fn counted(
        &self,
        request: Request<RequestBody>,
        user: User,
        info: &RequestInfo,
    ) -> Response<ResponseBody> {
        let Some(permit) = self.in_flight.enter(info.is_mutating(), &user) else {
            return answer::too_many_requests();
        };
        self.dispatch(request, user)
            .await
            .map(|body| HeldBody::holding(body, permit).boxed())
    }

    async fn dispatch(&self, request: Request<RequestBody>, user: User) -> Response<ResponseBody> {
        let uri = request.uri();
        let own = self.own.answer(uri.path(), uri.query().unwrap_or_default());
        match own.await {
            Some(response) => response,
            None => self.api.handle(request, user).await,
        }
    }
}

/// The client's audit id, or a new one.
fn audit_id(request: &Request<RequestBody>) -> HeaderValue {
    let given = request.headers().get(AUDIT_ID).map(HeaderValue::as_bytes);
    let id = match given.filter(|id| !id.is_empty()) {
        Some(id) => id[..id.len().min(AUDIT_ID_BYTES_MAX)].to_vec(),
        None => uuid::Uuid::new_v4().to_string().into_bytes(),
    };
    HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static(""))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests;
