//! Authenticates users that a front proxy names in request headers.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use ringwatch_apimachinery::User;

/// The names of the request headers in which front proxies name the user.
#[derive(Clone, Debug)]
pub struct RequestHeaders {
    /// The headers of the user's name: the first that is there counts.
    pub names: Vec<HeaderName>,
    /// The headers of the user's uid: the first that is there counts.
    pub uids: Vec<HeaderName>,
    /// The headers of the user's groups, all of which count.
    pub groups: Vec<HeaderName>,
    /// The prefixes of the headers of extra attributes, in lower case.
    pub extra_prefixes: Vec<String>,
}

impl RequestHeaders {
    /// Returns the names that front proxies commonly use.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            names: vec![HeaderName::from_static("x-remote-user")],
            uids: vec![HeaderName::from_static("x-remote-uid")],
            groups: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }

    /// Returns the user that the headers name, if they do.
    #[must_use]
    pub fn user(&self, headers: &HeaderMap) -> Option<User> {
        let name = first(headers, &self.names)?;
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (header, value) in headers {
            if let Some(key) = self.extra_key(header) {
                let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
                extra.entry(key).or_default().push(text(value));
            }
        }
        let groups = self.groups.iter().flat_map(|it| headers.get_all(it));
        Some(User {
            name,
            uid: first(headers, &self.uids).unwrap_or_default(),
            groups: groups.map(text).filter(|it| !it.is_empty()).collect(),
            extra,
        })
    }

    /// Removes the headers, so that no server to which the request is passed on believes them.
    pub fn strip(&self, headers: &mut HeaderMap) {
        let named = [&self.names, &self.uids, &self.groups];
        let known = |it: &HeaderName| named.iter().any(|names| names.contains(it));
        let all = headers.keys();
        let all = all.filter(|it| known(it) || self.extra_key(it).is_some());
        for name in all.cloned().collect::<Vec<_>>() {
            headers.remove(name);
        }
    }

    fn extra_key<'a>(&self, header: &'a HeaderName) -> Option<&'a str> {
        let mut prefixes = self.extra_prefixes.iter();
        prefixes.find_map(|prefix| header.as_str().strip_prefix(prefix.as_str()))
    }
}

fn first(headers: &HeaderMap, names: &[HeaderName]) -> Option<String> {
    let values = names.iter().filter_map(|name| headers.get(name));
    // Of the blanks of Unicode none is taken away: another name would be another user.
    let mut values = values.map(|value| text(value).trim_matches([' ', '\t']).to_owned());
    values.find(|value| !value.is_empty())
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(said: &[(&'static str, &'static str)]) -> HeaderMap {
        let said = said.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn headers_name_a_user() {
        let names = |names: &[&'static str]| {
            let names = names.iter().map(|name| HeaderName::from_static(name));
            names.collect()
        };
        let known = RequestHeaders {
            names: names(&["x-user", "x-remote-user"]),
            uids: names(&["x-remote-uid"]),
            groups: names(&["x-remote-group"]),
            extra_prefixes: vec!["x-remote-extra-".to_owned()],
        };
        let mut said = headers(&[
            ("x-user", " "),
            ("x-remote-user", " ann "),
            ("x-remote-uid", "7"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-extra-example.com%2fkey", "x"),
            ("x-remote-extra-example.com%2fkey", "y"),
            ("accept", "z"),
        ]);
        let user = known.user(&said).expect("a user");
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "7"));
        assert_eq!(user.groups, ["a", "b"]);
        assert_eq!(user.extra["example.com/key"], ["x", "y"]);
        known.strip(&mut said);
        assert_eq!(said.len(), 1);
        assert_eq!(known.user(&headers(&[("x-remote-group", "a")])), None);
    }
}
