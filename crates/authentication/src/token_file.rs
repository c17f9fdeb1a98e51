//! `--token-auth-file`: bearer tokens and their users, as comma-separated values.
//!
//! Tokens are looked up by their SHA-256, so that the time of a lookup tells nothing about them.

use std::collections::HashMap;

use ringwatch_apimachinery::User;
use sha2::{Digest, Sha256};

/// The users of bearer tokens.
#[derive(Default)]
pub struct TokenFile {
    users: HashMap<[u8; 32], User>,
}

/// Keeps tokens out of logs.
impl std::fmt::Debug for TokenFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TokenFile")
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

impl TokenFile {
    /// Reads lines of `token,user,uid[,"group1,group2"]`. Empty lines are skipped; of a token that
    /// appears twice the last line counts.
    ///
    /// # Errors
    /// The error and its line, without the token.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut users = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let number = index + 1;
            let fields =
                split(line).ok_or_else(|| format!("line {number}: a quote is not closed"))?;
            let [token, name, uid, rest @ ..] = fields.as_slice() else {
                let count = fields.len();
                return Err(format!(
                    "line {number}: expected at least token, user and uid, found {count} columns"
                ));
            };
            if token.is_empty() {
                return Err(format!("line {number}: the token is empty"));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let user = User {
                name: name.clone(),
                uid: uid.clone(),
                groups: groups
                    .split(',')
                    .map(str::trim)
                    .filter(|group| !group.is_empty())
                    .map(String::from)
                    .collect(),
                ..User::default()
            };
            if users.insert(digest(token), user).is_some() {
                tracing::warn!(line = number, "a token appears twice in the token file");
            }
        }
        Ok(Self { users })
    }

    /// Returns the user of a token.
    #[must_use]
    pub fn user(&self, token: &str) -> Option<&User> {
        self.users.get(&digest(token))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Splits a line of CSV; a quoted field may hold commas, and two quotes for one. `None` if a quote is left open.
fn split(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    while let Some(character) = characters.next() {
        let field = fields.last_mut()?;
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted || field.trim().is_empty() => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => field.push(character),
        }
    }
    (!quoted).then(|| fields.iter().map(|field| field.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_users() {
        let file = TokenFile::parse(
            "admin-token,admin,1,\"system:masters, ops\"\r\n\nview,viewer,2,viewers\nplain,p,3\n",
        )
        .expect("a file");
        let admin = file.user("admin-token").expect("admin");
        assert_eq!(admin.groups, ["system:masters", "ops"]);
        assert_eq!(file.user("view").expect("viewer").groups, ["viewers"]);
        assert!(file.user("plain").expect("p").groups.is_empty());
        assert!(file.user("").is_none());
    }

    #[test]
    fn the_last_line_of_a_token_counts() {
        let file = TokenFile::parse("t,one,1\nt,two,2").expect("a file");
        assert_eq!(file.user("t").expect("a user").name, "two");
    }

    #[test]
    fn errors_name_the_line_and_not_the_token() {
        for text in [
            "ok,a,1\nsecret,b",
            "ok,a,1\nsecret,b,2,\"open",
            "ok,a,1\n,b,2",
        ] {
            let error = TokenFile::parse(text).expect_err(text);
            assert!(error.starts_with("line 2: "), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(!format!("{:?}", TokenFile::parse("secret,b,2")).contains("secret"));
    }
}
