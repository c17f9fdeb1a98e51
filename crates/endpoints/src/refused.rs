//! Responses to requests that the filters refuse with a Status, in the syntax that the client accepts.

use http::{HeaderMap, Response};
use ringwatch_http::ResponseBody;

use super::errors::{Failure, Refusal};
use super::negotiation::{Format, status_format, wants_pretty};
use super::params::Query;
use super::response;

/// Returns the response to a request with these headers and this query. It is JSON where kube-apiserver does not ask
/// what the client accepts.
#[must_use]
pub fn refused(refusal: &Refusal, headers: &HeaderMap, query: &str) -> Response<ResponseBody> {
    let format = match refusal {
        Refusal::Unauthenticated | Refusal::InvalidTimeout(_) | Refusal::NobodyImpersonated(_) => {
            let pretty = wants_pretty(&Query::parse(query), headers);
            status_format(headers, pretty)
        }
        Refusal::DeadlineExceeded | Refusal::Starting | Refusal::Ending => Format::Json,
    };
    response::failure(format, &Failure::of_status(refusal.status()))
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, CONTENT_TYPE};

    use super::*;

    #[test]
    fn clients_without_credentials_are_told_so_in_their_syntax() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "application/yaml".parse().expect("a header"));
        let media_type = |refusal: &Refusal| {
            let response = refused(refusal, &headers, "");
            response.headers()[CONTENT_TYPE].clone()
        };
        assert_eq!(media_type(&Refusal::Unauthenticated), "application/yaml");
        assert_eq!(media_type(&Refusal::Starting), "application/json");
    }
}
