//! The live page of a server.

mod page;

use http::{HeaderMap, Response};
use ringwatch_apiserver::endpoints::ResponseBody;

pub(super) use self::page::PAGE;

/// Answers a request to read something below `/debug/ui`; `None` for another path.
pub(super) fn answer(path: &str, headers: &HeaderMap) -> Option<Response<ResponseBody>> {
    page::answer(path, headers)
}
