//! The URL at which a webhook is called, as client-go makes it of what a configuration says.
//!
//! The path is cleaned as by `path.Join`: doubled slashes, `.` and `..` and a slash at the end go, and an empty path is
//! `/`. Credentials, the query and the fragment of a URL are left out. Follows `url.Parse`,
//! `ClientManager.hookClientConfig`, `rest.DefaultServerURL`, `rest.NewRequest` and `URL.EscapedPath`.

use percent_encoding::percent_decode;
use ringwatch_apimachinery::go_url::{Url, escape_path, is_valid_path};

use crate::client::WebhookTarget;

/// The URL of calls to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallUrl {
    /// The host, and the port if the configuration has one.
    pub authority: String,
    /// The path, cleaned and escaped.
    pub path: String,
}

impl WebhookTarget {
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
                path: escape_path(&clean(path.as_bytes())),
            }),
        }
    }
}

fn of_url(text: &str, keeps_escapes: bool) -> Result<CallUrl, String> {
    let url = Url::parse(text).map_err(|error| format!("Unparsable URL: {error}"))?;
    if url.scheme != "https" {
        return Err("the url's scheme is not https".to_owned());
    }
    if url.host.is_empty() {
        return Err("the url has no host".to_owned());
    }
    let written = url.written_path();
    let decoded: Vec<u8> = percent_decode(written.as_bytes()).collect();
    let cleaned = clean(&decoded);
    // client-go keeps the base URL of a kubeconfig with its own escapes, as long as it means the same path.
    let is_kept = keeps_escapes && cleaned == decoded && is_valid_path(written);
    let path = match is_kept {
        true => written.to_owned(),
        false => escape_path(&cleaned),
    };
    Ok(CallUrl {
        authority: url.host,
        path,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn path(target: &WebhookTarget) -> String {
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
            assert_eq!(path(&WebhookTarget::Url(url.clone())), hook, "{written}");
            assert_eq!(path(&WebhookTarget::Server(url)), server, "{written}");
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
            let target = WebhookTarget::Service {
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
            let called = WebhookTarget::Server(url.to_owned()).call_url();
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
            let error = WebhookTarget::Url(url.to_owned())
                .call_url()
                .expect_err(url);
            assert!(error.ends_with(&format!(": {why}")), "{error}");
        }
        for (url, why) in [
            ("http://h", "the url's scheme is not https"),
            ("https://", "the url has no host"),
            ("h", "the url's scheme is not https"),
        ] {
            assert_eq!(
                WebhookTarget::Url(url.to_owned()).call_url(),
                Err(why.to_owned())
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn a_called_path_is_clean(written in "[/a-z.%0-9! é]{0,20}") {
            let url = format!("https://h:1/{written}");
            for target in [WebhookTarget::Url(url.clone()), WebhookTarget::Server(url.clone())] {
                let Ok(called) = target.call_url() else { continue };
                let decoded: Vec<u8> = percent_decode(called.path.as_bytes()).collect();
                proptest::prop_assert!(called.path.starts_with('/'));
                proptest::prop_assert!(called.path.is_ascii());
                proptest::prop_assert_eq!(clean(&decoded), decoded);
                proptest::prop_assert!(is_valid_path(&called.path));
            }
        }
    }
}
