//! TokenReviews: fills in the user of a token.

use ringwatch_apimachinery::{Error, Requester};
use ringwatch_authentication::{Authenticator, TokenSource};
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use super::user_info;

/// Returns the status of a TokenReview: that in the review, with what is found of the token.
///
/// # Errors
/// [`Error::BadRequest`] without a token.
pub(super) async fn status(
    authenticator: &Authenticator,
    context: &RequestContext,
    review: &Value,
) -> Result<Value, Error> {
    let token = review.pointer("/spec/token").and_then(Value::as_str);
    let token = token.filter(|token| !token.is_empty()).ok_or_else(|| {
        Error::BadRequest("token is required for TokenReview in authentication".to_owned())
    })?;
    let audiences = review.pointer("/spec/audiences").and_then(Value::as_array);
    let audiences = audiences.into_iter().flatten().filter_map(Value::as_str);
    let audiences: Vec<String> = audiences.map(String::from).collect();
    let from = TokenSource::Reviewer(Requester::from(&context.user));
    let identified = match as_in_header(token) {
        "" => Ok(authenticator.without_token(&audiences)),
        token => {
            let now = context.clock.wall();
            let identified = authenticator.identify(token, &audiences, from, now);
            identified.await.map(Some)
        }
    };
    let sent = review["status"].as_object();
    let mut status = sent.cloned().unwrap_or_default();
    status.remove("authenticated");
    match identified {
        Ok(Some(identified)) => {
            status.insert("authenticated".to_owned(), json!(true));
            status.insert("user".to_owned(), user_info(&identified.user));
            status.remove("audiences");
            if !identified.audiences.is_empty() {
                status.insert("audiences".to_owned(), json!(identified.audiences));
            }
        }
        Ok(None) => {}
        Err(error) => {
            status.insert("error".to_owned(), json!(error.to_string()));
        }
    }
    Ok(Value::Object(status))
}

/// Returns the part of a token that counts: kube-apiserver authenticates a request with the token in a header, where a
/// token ends with the first space.
fn as_in_header(token: &str) -> &str {
    let trimmed = token.trim_end();
    trimmed.split(' ').next().unwrap_or(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_with_the_first_space() {
        for (token, counts) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a b", "a"),
            (" a", ""),
            ("  ", ""),
        ] {
            assert_eq!(as_in_header(token), counts, "{token:?}");
        }
    }
}
