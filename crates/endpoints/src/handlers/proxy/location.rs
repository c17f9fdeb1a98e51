//! Translates between the paths of a proxied server and those by which clients reach it.

/// A path of this server to a proxied one, split at `proxy`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyPath<'a> {
    /// The path up to and including the `proxy` segment.
    pub(super) prefix: &'a str,
    /// The rest of the path, as the client wrote it.
    pub(super) rest: &'a str,
}

impl<'a> ProxyPath<'a> {
    /// Reads `/api/v1/nodes/{name}/proxy...`, or the same in a namespace.
    pub(super) fn parse(path: &'a str, namespaced: bool) -> Self {
        let segments = if namespaced { 7 } else { 5 };
        let mut rest = path;
        for _ in 0..segments {
            rest = rest.trim_start_matches('/');
            rest = rest.find('/').map_or("", |end| &rest[end..]);
        }
        let prefix = &path[..path.len() - rest.len()];
        Self { prefix, rest }
    }

    /// Returns the path that the backend is asked for.
    pub(super) fn path(&self) -> &str {
        if self.rest.is_empty() { "/" } else { self.rest }
    }
}

/// The links of a proxied server, in its redirections and its pages.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// The path up to and including the `proxy` segment.
    pub(super) prefix: String,
    /// The host and port of the server.
    pub(super) authority: String,
    /// The host by which the client calls this server; empty if it did not say.
    pub(super) host: String,
}

impl Links {
    /// Returns these with each text mapped.
    pub(super) fn map(&self, text: impl Fn(&str) -> String) -> Self {
        Self {
            prefix: text(&self.prefix),
            authority: text(&self.authority),
            host: text(&self.host),
        }
    }

    /// Returns the link through the proxy; `None` if it stays as it is, since it is relative or leads elsewhere:
    /// `Transport.rewriteURL` of Kubernetes 1.36 (`apimachinery/pkg/util/proxy/transport.go`).
    pub(super) fn through_the_proxy(&self, link: &str) -> Option<String> {
        let (origin, path) = split(link);
        let (_, host) = origin.split_once("//").unwrap_or_default();
        if !(host.is_empty() || host == self.authority || host == self.host)
            || !path.starts_with('/')
        {
            return None;
        }
        let kept = if !host.is_empty() && host == self.host {
            origin
        } else {
            ""
        };
        let prefix = if path.starts_with(&self.prefix) {
            ""
        } else {
            &self.prefix
        };
        let through = format!("{kept}{prefix}{path}");
        (through != link).then_some(through)
    }
}

/// Splits a URL behind its scheme and host.
fn split(url: &str) -> (&str, &str) {
    let scheme = url.find(|it: char| !it.is_ascii_alphanumeric() && !"+-.".contains(it));
    let scheme = scheme.filter(|end| *end > 0 && url[*end..].starts_with(':'));
    let after_scheme = scheme.map_or(0, |end| end + 1);
    let path = match url[after_scheme..].strip_prefix("//") {
        Some(rest) => {
            let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            after_scheme + 2 + host
        }
        None => after_scheme,
    };
    url.split_at(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_behind_the_proxy_is_left_as_it_was_written() {
        for (path, namespaced, prefix, rest) in [
            ("/api/v1/nodes/n/proxy", false, "/api/v1/nodes/n/proxy", ""),
            (
                "/api/v1/nodes/n/proxy/",
                false,
                "/api/v1/nodes/n/proxy",
                "/",
            ),
            (
                "/api/v1/nodes/proxy/proxy/a%2Fb/",
                false,
                "/api/v1/nodes/proxy/proxy",
                "/a%2Fb/",
            ),
            (
                "//api/v1/nodes/n:10250/proxy/healthz",
                false,
                "//api/v1/nodes/n:10250/proxy",
                "/healthz",
            ),
            (
                "/api/v1/namespaces/ns/pods/p/proxy/x",
                true,
                "/api/v1/namespaces/ns/pods/p/proxy",
                "/x",
            ),
        ] {
            assert_eq!(
                ProxyPath::parse(path, namespaced),
                ProxyPath { prefix, rest },
                "{path}"
            );
        }
    }

    #[test]
    fn links_stay_behind_the_proxy() {
        let links = Links {
            prefix: "/p".to_owned(),
            authority: "10.0.0.1:80".to_owned(),
            host: "localhost:8001".to_owned(),
        };
        for (link, expected) in [
            ("/login?a=b", Some("/p/login?a=b")),
            ("/a?b=1&amp;c=2#d", Some("/p/a?b=1&amp;c=2#d")),
            ("http://10.0.0.1:80/x", Some("/p/x")),
            ("//10.0.0.1:80/x", Some("/p/x")),
            ("http://10.0.0.1:80/p/x", Some("/p/x")),
            ("http://localhost:8001/x", Some("http://localhost:8001/p/x")),
            ("http://localhost:8001/p/x", None),
            ("/p/there", None),
            ("here", None),
            ("here:80/x", None),
            ("", None),
            ("#there", None),
            ("?a=/b", None),
            ("mailto:a@b", None),
            ("http:///x", Some("/p/x")),
            ("http://10.0.0.1:80", None),
            ("https://example.com/x", None),
            ("http://10.0.0.1:80.example.com/x", None),
            ("http://user@10.0.0.1:80/x", None),
        ] {
            let found = links.through_the_proxy(link);
            assert_eq!(found.as_deref(), expected, "{link}");
        }
    }

    #[test]
    fn a_client_that_names_no_host_is_not_taken_for_every_host() {
        let links = Links {
            prefix: "/p".to_owned(),
            authority: "10.0.0.1:80".to_owned(),
            host: String::new(),
        };
        assert_eq!(
            links.through_the_proxy("http:///x").as_deref(),
            Some("/p/x")
        );
    }
}
