//! The guard of servers that may be loaded: those of this machine, unless the user says that another is theirs.
//!
//! A name counts as this machine only if every address it resolves to does.

use std::net::SocketAddr;

use http::Uri;
use tokio::net::lookup_host;

use super::TargetError;

/// A server's URL, taken apart.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct ServerUrl {
    pub(super) host: String,
    port: u16,
    /// Host and port as requests name them.
    pub(super) authority: String,
    pub(super) tls: bool,
}

impl ServerUrl {
    /// Reads `https://host:port`. Paths are not supported.
    pub(super) fn parse(url: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError::Url {
            url: url.to_owned(),
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let (tls, default_port) = match uri.scheme_str() {
            Some("https") => (true, 443),
            Some("http") => (false, 80),
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if uri.path().len() > 1 || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(default_port),
            authority: authority.to_string(),
            tls,
        })
    }

    /// Resolves the address to connect to. Unless `anywhere`, all addresses of the host must be of this machine.
    pub(super) async fn resolve(&self, anywhere: bool) -> Result<SocketAddr, TargetError> {
        let unresolved = |why: String| TargetError::Resolve {
            host: self.host.clone(),
            why,
        };
        let addresses = lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<_> = addresses
            .map_err(|error| unresolved(error.to_string()))?
            .collect();
        if !anywhere {
            let elsewhere = addresses
                .iter()
                .find(|it| !it.ip().to_canonical().is_loopback());
            if let Some(address) = elsewhere {
                return Err(TargetError::NotLoopback {
                    host: self.host.clone(),
                    address: *address,
                });
            }
        }
        let first = addresses.first().copied();
        first.ok_or_else(|| unresolved("it has no address".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let place = ServerUrl::parse("https://127.0.0.1:6443").expect("a place");
        assert_eq!((place.host.as_str(), place.port), ("127.0.0.1", 6443));
        assert!(place.tls);
        let place = ServerUrl::parse("http://[::1]:1/").expect("a place");
        assert_eq!(
            (place.host.as_str(), place.port, place.tls),
            ("::1", 1, false)
        );
        assert_eq!(place.authority, "[::1]:1");
        for url in [
            "",
            "127.0.0.1",
            "ftp://a",
            "https://",
            "https://a/b",
            "https://u:p@a",
        ] {
            assert!(ServerUrl::parse(url).is_err(), "{url}");
        }
    }

    #[tokio::test]
    async fn only_this_machine_is_loaded_unasked() {
        for (url, allowed) in [
            ("https://127.0.0.1:1", true),
            ("https://127.8.9.1:1", true),
            ("https://[::1]:1", true),
            ("https://[::ffff:127.0.0.1]:1", true),
            ("https://192.0.2.1:1", false),
            ("https://0.0.0.0:1", false),
            ("https://[::ffff:192.0.2.1]:1", false),
        ] {
            let place = ServerUrl::parse(url).expect("a place");
            assert_eq!(place.resolve(false).await.is_ok(), allowed, "{url}");
            assert!(place.resolve(true).await.is_ok(), "{url}");
        }
    }
}
