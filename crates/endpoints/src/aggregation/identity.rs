//! The headers by which the user of a request is named to another API server: `X-Remote-*` by a front proxy,
//! `Impersonate-*` by a client that may act as others.

use std::fmt::Write as _;

use http::{HeaderMap, HeaderName, HeaderValue};
use ringwatch_apimachinery::User;

/// Sets the headers with which a front proxy names the user, and removes those that the client has sent.
pub fn set_identity(headers: &mut HeaderMap, user: &User) {
    set_user(headers, "x-remote-", user);
}

/// A user who cannot be named in headers: a name, a group or an attribute would arrive as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the user has a name, a group or an attribute that a header does not carry as it is")]
pub struct NotNameable;

/// Sets the headers with which a client acts as the user, and removes those that the client of this server has sent.
///
/// # Errors
/// [`NotNameable`], since the request would be made as somebody else.
pub fn set_impersonation(headers: &mut HeaderMap, user: &User) -> Result<(), NotNameable> {
    let values = [&user.name, &user.uid].into_iter().chain(&user.groups);
    let mut values = values.chain(user.extra.values().flatten());
    if user.name.is_empty() || !values.all(|value| is_carried(value)) {
        return Err(NotNameable);
    }
    set_user(headers, "impersonate-", user);
    Ok(())
}

/// Returns true if a header carries a value as it is: Go takes blanks at its ends away.
fn is_carried(value: &str) -> bool {
    value.trim_matches([' ', '\t']) == value && HeaderValue::from_bytes(value.as_bytes()).is_ok()
}

fn set_user(headers: &mut HeaderMap, prefix: &str, user: &User) {
    let names = headers
        .keys()
        .filter(|name| name.as_str().starts_with(prefix));
    for name in names.cloned().collect::<Vec<_>>() {
        headers.remove(name);
    }
    let mut say = |name: &str, value: &str| {
        // Go replaces line breaks by blanks. All other characters are valid in a header's value.
        let value = value.replace(['\r', '\n', '\0'], " ");
        let name = HeaderName::try_from(format!("{prefix}{name}"));
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            headers.append(name, value);
        }
    };
    say("user", &user.name);
    if !user.uid.is_empty() {
        say("uid", &user.uid);
    }
    for group in &user.groups {
        say("group", group);
    }
    for (key, values) in &user.extra {
        let name = format!("extra-{}", escaped(key));
        for value in values {
            say(&name, value);
        }
    }
}

/// Returns a key as part of a header's name, with invalid characters percent-encoded.
fn escaped(key: &str) -> String {
    let mut escaped = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_impersonated_under_another_name() {
        let user = |name: &str, group: &str| User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        };
        let mut headers = HeaderMap::new();
        set_impersonation(&mut headers, &user("ann", "a b")).expect("carried");
        assert_eq!(headers["impersonate-user"], "ann");
        for (name, group) in [
            ("", "a"),
            ("ann ", "a"),
            ("ann", " a"),
            ("a\nn", "a"),
            ("ann", "a\0"),
        ] {
            let refused = set_impersonation(&mut headers, &user(name, group));
            assert_eq!(refused, Err(NotNameable), "{name:?} {group:?}");
        }
    }

    #[test]
    fn what_the_client_says_of_itself_is_replaced() {
        let mut headers = HeaderMap::new();
        for name in ["x-remote-user", "x-remote-group", "x-remote-extra-scopes"] {
            headers.insert(name, HeaderValue::from_static("system:masters"));
        }
        let user = User {
            name: "ann\r\nx".to_owned(),
            uid: "7".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: [("example.com/Key 1".to_owned(), vec!["x".to_owned()])].into(),
        };
        set_identity(&mut headers, &user);
        let mut said: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        said.sort();
        assert_eq!(
            said,
            [
                "x-remote-extra-example.com%2fkey%201: x",
                "x-remote-group: a",
                "x-remote-group: b",
                "x-remote-uid: 7",
                "x-remote-user: ann  x",
            ]
        );
    }
}
