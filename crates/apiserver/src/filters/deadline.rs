//! The time limit of a request: the server's, or less if the client asks for less.

use std::time::Duration;

use ringwatch_apimachinery::duration;

/// Returns the time limit of a request: its `timeout` parameter, but at most `most`, which also holds without one and
/// for `timeout=0`.
///
/// # Errors
/// The client's limit is not a duration.
pub(super) fn time_limit(query: &str, most: Duration) -> Result<Duration, String> {
    let value = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "timeout")
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default();
    if value.is_empty() {
        return Ok(most);
    }
    let wanted = duration::parse(&value).map_err(|_| {
        format!("invalid timeout specified in the request URL - time: invalid duration {value:?}")
    })?;
    Ok(if wanted.is_zero() {
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
        assert_eq!(
            time_limit("timeout=soon", most),
            Err(
                "invalid timeout specified in the request URL - time: invalid duration \"soon\""
                    .into()
            )
        );
    }
}
