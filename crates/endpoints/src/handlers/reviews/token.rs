//! TokenReviews: fills in the user of a token.

use ringwatch_apimachinery::{Error, Requester};
use ringwatch_authentication::{Authenticator, TokenSource};
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use super::user_info;

/// Returns the status of a TokenReview.
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
    let identified = authenticator.identify(token, &audiences, from, context.clock.wall());
    Ok(match identified.await {
        Ok(identified) => {
            let mut status = json!({"authenticated": true, "user": user_info(&identified.user)});
            if !identified.audiences.is_empty() {
                status["audiences"] = json!(identified.audiences);
            }
            status
        }
        Err(error) => json!({"user": {}, "error": error.to_string()}),
    })
}
