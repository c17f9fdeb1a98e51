//! The URL at which a webhook is called, as client-go makes it of what a configuration says.
//!
//! The path is cleaned as by `path.Join`: doubled slashes, `.` and `..` and a slash at the end go, and an empty path is `/`.
//! Credentials, the query and the fragment of a URL are left out. Follows `url.Parse`, `ClientManager.hookClientConfig`,
//! `rest.DefaultServerURL`, `rest.NewRequest` and `URL.EscapedPath`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use crate::webhook_client::Target;

/// The bytes that a path has escaped, as `URL.EscapedPath` writes it.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// The bytes that a path may have unescaped, though Go itself escapes them.
const ALSO_VALID: &[u8] = b"!'()*[]%";

/// The URL of calls to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallUrl {
    /// The host, and the port if the configuration has one.
    pub authority: String,
    /// The path, cleaned and escaped.
    pub path: String,
}

/// The reason why a text is no URL, in the words of `url.Parse`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {url:?}: {why}")]
pub struct UrlError {
    url: String,
    why: String,
}

/// The parts of an absolute URL.
struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
}

impl Target {
    /// Returns the URL at which the webhook is called.
    ///
    /// # Errors
    /// A line that says why the configuration has none.
    pub fn call_url(&self) -> Result<CallUrl, String> {
        match self {
            Self::Url(url) => of_url(url, false),
            Self::Server(url) => of_url(url, true),
            Self::Service {
                namespace,
                name,
                port,
                path,
            } => Ok(CallUrl {
                authority: format!("{name}.{namespace}.svc:{port}"),
                path: escape(&clean(path.as_bytes())),
            }),
        }
    }
}

/// Checks that Go's parser can read a URL.
///
/// # Errors
/// [`UrlError`] says what is wrong with it.
pub fn check(url: &str) -> Result<(), UrlError> {
    let wrong = |why: String| UrlError {
        url: url.to_owned(),
        why,
    };
    if url.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(wrong(
            "net/url: invalid control character in URL".to_owned(),
        ));
    }
    let parts = split(url);
    let host = host(parts.authority);
    if let Some(byte) = host.chars().find(|it| " \"<>\\^`{}|".contains(*it)) {
        let byte = byte.to_string();
        return Err(wrong(format!("invalid character {byte:?} in host name")));
    }
    let after = host.rfind(']').map_or(host, |end| &host[end + 1..]);
    if let Some(colon) = after.rfind(':')
        && !after[colon + 1..].bytes().all(|it| it.is_ascii_digit())
    {
        return Err(wrong(format!(
            "invalid port {:?} after host",
            &after[colon..]
        )));
    }
    match wrong_escape(parts.path) {
        Some(escape) => Err(wrong(format!("invalid URL escape {escape:?}"))),
        None => Ok(()),
    }
}

fn of_url(url: &str, keeps_escapes: bool) -> Result<CallUrl, String> {
    check(url).map_err(|error| format!("Unparsable URL: {error}"))?;
    let parts = split(url);
    let authority = host(parts.authority);
    if !parts.scheme.eq_ignore_ascii_case("https") {
        return Err("the url's scheme is not https".to_owned());
    }
    if authority.is_empty() {
        return Err("the url has no host".to_owned());
    }
    let decoded: Vec<u8> = percent_decode(parts.path.as_bytes()).collect();
    let cleaned = clean(&decoded);
    // client-go keeps the base URL of a kubeconfig with its own escapes, as long as it means the same path.
    let is_kept = keeps_escapes && cleaned == decoded && is_valid(parts.path);
    Ok(CallUrl {
        authority: authority.to_owned(),
        path: if is_kept {
            parts.path.to_owned()
        } else {
            escape(&cleaned)
        },
    })
}

fn split(url: &str) -> Parts<'_> {
    let url = url.split('#').next().unwrap_or_default();
    let url = url.split('?').next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Parts {
        scheme,
        authority,
        path,
    }
}

/// Returns the host and port of an authority.
fn host(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or_default()
}

/// Returns the first escape that is none, with what follows the `%`.
fn wrong_escape(path: &str) -> Option<&str> {
    path.match_indices('%')
        .map(|(place, _)| &path[place..])
        .find_map(|rest| {
            let bytes = rest.as_bytes();
            let is_good = bytes.len() >= 3 && bytes[1..3].iter().all(u8::is_ascii_hexdigit);
            let end = rest
                .char_indices()
                .nth(3)
                .map_or(rest.len(), |(end, _)| end);
            (!is_good).then_some(&rest[..end])
        })
}

/// Returns a decoded path without what `path.Join` leaves out.
fn clean(path: &[u8]) -> Vec<u8> {
    let mut steps: Vec<&[u8]> = Vec::new();
    for step in path.split(|byte| *byte == b'/') {
        match step {
            b"" | b"." => {}
            b".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    [b"/", steps.join(&b'/').as_slice()].concat()
}

fn escape(path: &[u8]) -> String {
    percent_encode(path, ESCAPED).to_string()
}

/// Returns true if a path can be sent as it is.
fn is_valid(path: &str) -> bool {
    let without: Vec<u8> = path.bytes().filter(|it| !ALSO_VALID.contains(it)).collect();
    escape(&without).as_bytes() == without
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(target: &Target) -> String {
        let url = target.call_url().expect("a URL");
        assert_eq!(url.authority, "h:1", "{target}");
        url.path
    }

    #[test]
    fn paths_are_cleaned_and_escaped_as_by_client_go() {
        for (written, hook, server) in [
            ("", "/", "/"),
            ("/", "/", "/"),
            ("//", "/", "/"),
            ("//mutate", "/mutate", "/mutate"),
            ("/a//b", "/a/b", "/a/b"),
            ("/a/", "/a", "/a"),
            ("/./a/../b/.", "/b", "/b"),
            ("/../..", "/", "/"),
            ("/a?b=c#d", "/a", "/a"),
            ("/%41", "/A", "/%41"),
            ("/a%2fb", "/a/b", "/a%2fb"),
            ("/a%2Fb/", "/a/b", "/a/b"),
            ("/%2e%2e/a", "/a", "/a"),
            ("/a%20b", "/a%20b", "/a%20b"),
            ("/a b", "/a%20b", "/a%20b"),
            ("/a!(b)", "/a%21%28b%29", "/a!(b)"),
            ("/a!//b", "/a%21/b", "/a%21/b"),
            ("/ä", "/%C3%A4", "/%C3%A4"),
            ("/a%3Fb", "/a%3Fb", "/a%3Fb"),
            ("/$&+,:;=@~", "/$&+,:;=@~", "/$&+,:;=@~"),
        ] {
            let url = format!("https://h:1{written}");
            assert_eq!(path(&Target::Url(url.clone())), hook, "{written}");
            assert_eq!(path(&Target::Server(url)), server, "{written}");
        }
    }

    #[test]
    fn the_path_of_a_service_has_no_escapes() {
        for (written, called) in [
            ("", "/"),
            ("//mutate/", "/mutate"),
            ("/a/../b", "/b"),
            ("/%41?x", "/%2541%3Fx"),
        ] {
            let target = Target::Service {
                namespace: "n".to_owned(),
                name: "s".to_owned(),
                port: 443,
                path: written.to_owned(),
            };
            let url = target.call_url().expect("a URL");
            assert_eq!(url.authority, "s.n.svc:443");
            assert_eq!(url.path, called, "{written}");
        }
    }

    #[test]
    fn hosts_come_without_credentials() {
        for (url, authority) in [
            ("HTTPS://u:p@h/a", "h"),
            ("https://[::1]:1", "[::1]:1"),
            ("https://h?x", "h"),
        ] {
            let called = Target::Server(url.to_owned()).call_url();
            assert_eq!(called.expect(url).authority, authority);
        }
    }

    #[test]
    fn texts_that_are_no_urls_are_refused_in_gos_words() {
        for (url, why) in [
            ("https://h/%zz", "invalid URL escape \"%zz\""),
            ("https://h/a%4", "invalid URL escape \"%4\""),
            ("https://h/%é1", "invalid URL escape \"%é1\""),
            (
                "https://h/\u{7f}",
                "net/url: invalid control character in URL",
            ),
            ("https://h:x/", "invalid port \":x\" after host"),
            ("https://a b/", "invalid character \" \" in host name"),
        ] {
            let error = check(url).expect_err(url).to_string();
            assert_eq!(error, format!("parse {url:?}: {why}"));
        }
        for (url, why) in [
            ("http://h", "the url's scheme is not https"),
            ("https://", "the url has no host"),
            ("h", "the url's scheme is not https"),
        ] {
            assert_eq!(Target::Url(url.to_owned()).call_url(), Err(why.to_owned()));
        }
    }

    proptest::proptest! {
        #[test]
        fn a_called_path_is_clean(written in "[/a-z.%0-9! é]{0,20}") {
            let url = format!("https://h:1/{written}");
            for target in [Target::Url(url.clone()), Target::Server(url.clone())] {
                let Ok(called) = target.call_url() else { continue };
                let decoded: Vec<u8> = percent_decode(called.path.as_bytes()).collect();
                proptest::prop_assert!(called.path.starts_with('/'));
                proptest::prop_assert!(called.path.is_ascii());
                proptest::prop_assert_eq!(clean(&decoded), decoded);
                proptest::prop_assert!(is_valid(&called.path));
            }
        }
    }
}
