//! The address of a collector, in the forms that gRPC has for names.
//!
//! `validateEndpoint` of Kubernetes 1.36 (`component-base/tracing/api/v1/config.go`), and gRPC's rules for targets.

/// The port of an address that names none.
const PORT_DEFAULT: &str = "443";

/// The address of a collector, which is called without TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A host and port.
    Network(String),
    /// The path of a Unix socket.
    Socket(String),
}

impl Default for Endpoint {
    /// Returns the place where a collector listens on the machine itself.
    fn default() -> Self {
        Self::Network("localhost:4317".to_owned())
    }
}

impl Endpoint {
    /// Reads `HOST[:PORT]`, `dns:///HOST[:PORT]` or `unix:///PATH`.
    ///
    /// # Errors
    /// An explanation of what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("//") else {
            return Self::network(text);
        };
        match scheme.trim_end_matches(':') {
            "dns" => match rest.split_once('/') {
                Some(("", place)) => Self::network(place),
                Some(_) => Err("a DNS server of its own is not supported".to_owned()),
                None => Err("there is no host; write dns:///HOST:PORT".to_owned()),
            },
            "unix" if rest.starts_with('/') => Ok(Self::Socket(rest.to_owned())),
            "unix" => Err("the path is not absolute; write unix:///PATH".to_owned()),
            "unix-abstract" => Err("sockets without a file are not supported".to_owned()),
            other => Err(format!(
                "unsupported scheme: {other}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md"
            )),
        }
    }

    fn network(place: &str) -> Result<Self, String> {
        let uri = http::uri::Authority::try_from(place).map_err(|error| error.to_string())?;
        if uri.host().is_empty() || place.contains('@') {
            return Err("it is no HOST:PORT".to_owned());
        }
        let after_host = place.strip_prefix(uri.host()).unwrap_or_default();
        match after_host.strip_prefix(':') {
            Some(port) if port.parse::<u16>().is_ok() => Ok(Self::Network(place.to_owned())),
            None if after_host.is_empty() => Ok(Self::Network(format!("{place}:{PORT_DEFAULT}"))),
            _ => Err("it is no HOST:PORT".to_owned()),
        }
    }

    /// Returns the address as a URL of the transport.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Network(place) => format!("http://{place}"),
            Self::Socket(path) => format!("unix://{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_grpcs() {
        for (text, url) in [
            ("localhost:4317", "http://localhost:4317"),
            ("collector", "http://collector:443"),
            ("[::1]:4317", "http://[::1]:4317"),
            ("dns:///collector.example:1", "http://collector.example:1"),
            ("unix:///run/otel.sock", "unix:///run/otel.sock"),
        ] {
            assert_eq!(Endpoint::parse(text).expect(text).url(), url);
        }
    }

    #[test]
    fn wrong_addresses_are_explained() {
        for (text, why) in [
            ("http://localhost:4317", "unsupported scheme: http.  "),
            ("dn%2s://localhost:4317", "unsupported scheme"),
            ("dns://google.com:4317", "there is no host"),
            ("dns://8.8.8.8/collector:4317", "DNS server"),
            ("unix://path/to/socket", "not absolute"),
            ("unix-abstract:///otel", "without a file"),
            ("", "empty"),
            ("localhost:", "HOST:PORT"),
            ("localhost:70000", "HOST:PORT"),
            ("a b", "invalid"),
            ("user@host:1", "HOST:PORT"),
        ] {
            let error = Endpoint::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
