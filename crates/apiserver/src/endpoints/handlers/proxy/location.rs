//! Translates between the paths of a proxied server and those by which clients reach it.

/// A path of this server to a proxied one, split at `proxy`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The path up to and including the `proxy` segment.
    pub(super) prefix: &'a str,
    /// The rest of the path, as the client wrote it.
    pub(super) rest: &'a str,
}

impl<'a> Place<'a> {
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

/// Returns the path through the proxy to which a redirection leads; `None` if it stays as it is, since it is relative
/// or leads elsewhere.
pub(super) fn relocate(location: &str, prefix: &str, authority: &str) -> Option<String> {
    let absolute = ["http://", "https://", "//"];
    let path = match absolute.iter().find_map(|it| location.strip_prefix(it)) {
        Some(rest) => rest.strip_prefix(authority)?,
        None => location,
    };
    if !path.starts_with('/') {
        return None;
    }
    if path.starts_with(prefix) {
        return Some(path.to_owned());
    }
    Some(format!("{prefix}{path}"))
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
                Place::parse(path, namespaced),
                Place { prefix, rest },
                "{path}"
            );
        }
    }

    #[test]
    fn redirections_stay_behind_the_proxy() {
        for (location, expected) in [
            ("/login?a=b", Some("/p/login?a=b")),
            ("http://10.0.0.1:80/x", Some("/p/x")),
            ("//10.0.0.1:80/x", Some("/p/x")),
            ("/p/there", Some("/p/there")),
            ("here", None),
            ("https://example.com/x", None),
            ("http://10.0.0.1:80.example.com/x", None),
        ] {
            let found = relocate(location, "/p", "10.0.0.1:80");
            assert_eq!(found.as_deref(), expected, "{location}");
        }
    }
}
