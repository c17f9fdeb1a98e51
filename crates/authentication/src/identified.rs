//! The outcome of authenticating a token: its user, and the audiences that it is for.

use ringwatch_apimachinery::User;

use super::TokenError;

/// The user of a token, and the audiences that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUser {
    /// The user that the token names.
    pub user: User,
    /// The requested audiences that the token is for.
    pub audiences: Vec<String>,
}

/// Returns the wanted audiences that a token is for, in the order in which they are wanted. One without audiences is
/// for this server.
pub(super) fn target_audiences(
    token: &[String],
    own: &[String],
    wanted: &[String],
) -> Result<Vec<String>, TokenError> {
    let token = if token.is_empty() { own } else { token };
    let common = wanted.iter().filter(|it| token.contains(it));
    let common: Vec<String> = common.cloned().collect();
    if common.is_empty() && !own.is_empty() {
        return Err(TokenError::WrongAudience {
            token: token.to_vec(),
            wanted: wanted.to_vec(),
        });
    }
    Ok(common)
}
