//! The filter of requests that are made as somebody else.

use std::sync::Arc;

use http::{HeaderMap, Response, Uri};
use ringwatch_apimachinery::User;
use ringwatch_flowcontrol::Requester;
use ringwatch_flowcontrol::fairness::TooMany;
use ringwatch_http::ResponseBody;

use super::answer;
use super::chain::Filters;
use crate::endpoints::{self, Impersonated, NotImpersonated, Refusal, RequestInfo};

impl Filters {
    /// Returns the user that a request impersonates; `None` if it is made as the authenticated user.
    pub(super) async fn impersonated(
        &self,
        user: &User,
        info: &Arc<RequestInfo>,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Result<Option<Impersonated>, NotImpersonated>, TooMany> {
        if !endpoints::impersonates(headers) {
            return Ok(Ok(None));
        }
        let requester = Requester::from(user);
        let impersonation = Arc::clone(&self.impersonation);
        let (user, info) = (user.clone(), Arc::clone(info));
        let (uri, headers) = (uri.clone(), headers.clone());
        let step = async move {
            let query = uri.query().unwrap_or_default();
            let impersonated = impersonation.impersonated(&user, &info, query, &headers);
            impersonated.await
        };
        self.limits.large_work.run(Box::pin(step), &requester).await
    }
}

/// Returns the response to a request that may not impersonate, or has parts of an identity without a user.
pub(super) fn refused(error: NotImpersonated) -> Response<ResponseBody> {
    match error {
        NotImpersonated::Refused(refusal) => *refusal,
        NotImpersonated::NoUser(identity) => {
            answer::refused(&Refusal::NobodyImpersonated(identity))
        }
    }
}
