//! The time limit of a request, the server's or less if the client asks for less: `WithRequestDeadline`.

use std::time::Duration;

use ringwatch_apimachinery::duration;
use ringwatch_endpoints::Refusal;

use super::audit;
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Sets the time by which a request must be answered, watches and streams aside. It counts from when the request came,
/// and holds for its authentication too. A client's limit that is none is refused with 400.
pub(super) fn request_deadline<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    if !state.info.is_long_running() {
        match time_limit(state.query(), filters.limits.request_timeout) {
            Ok(limit) => state.deadline = Some(state.began.0 + limit),
            Err(message) => {
                return Box::pin(async move {
                    audit::refuse(filters, state, &Refusal::InvalidTimeout(message)).await
                });
            }
        }
    }
    next.run(filters, state)
}

/// Returns the time limit of a request: its `timeout` parameter, but at most `most`, which also holds without one and
/// for `timeout=0`.
///
/// # Errors
/// The client's limit is not a duration.
fn time_limit(query: &str, most: Duration) -> Result<Duration, String> {
    let value = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "timeout")
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default();
    if value.is_empty() {
        return Ok(most);
    }
    // A time before the request is as good as none.
    let (is_before, text) = match value.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, value.as_str()),
    };
    let wanted = duration::parse(text).map_err(|error| {
        let why = duration::go_error(&value).unwrap_or(error);
        format!("invalid timeout specified in the request URL - {why}")
    })?;
    Ok(if wanted.is_zero() || is_before {
        most
    } else {
        wanted.min(most)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_may_want_less_but_not_more() {
        let most = Duration::from_secs(60);
        assert_eq!(time_limit("", most), Ok(most));
        assert_eq!(
            time_limit("timeout=5s&limit=1", most),
            Ok(Duration::from_secs(5))
        );
        assert_eq!(time_limit("timeout=5m", most), Ok(most));
        assert_eq!(time_limit("timeout=0s", most), Ok(most));
        assert_eq!(time_limit("timeout=-1s", most), Ok(most));
        for (value, why) in [
            ("soon", "invalid duration"),
            (".s", "invalid duration"),
            ("5", "missing unit in duration"),
            ("5x", "unknown unit \"x\" in duration"),
            ("1m5", "missing unit in duration"),
        ] {
            let expected =
                format!("invalid timeout specified in the request URL - time: {why} {value:?}");
            let found = time_limit(&format!("timeout={value}"), most);
            assert_eq!(found, Err(expected));
        }
    }
}
