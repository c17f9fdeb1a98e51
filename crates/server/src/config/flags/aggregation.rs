//! The flags of the aggregation layer: proxying requests to other API servers, and accepting those of a front proxy.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use http::HeaderName;
use ringwatch_authentication::{ExtensionAuthentication, RequestHeaders};

use super::go_values::parse_bool;

/// Flags of the aggregation layer, in both directions.
#[derive(Args, Clone, Debug)]
pub struct AggregationFlags {
    /// Client certificate for the servers of aggregated APIs, to which requests are proxied.
    #[arg(long, value_name = "FILE", requires = "proxy_client_key_file")]
    pub proxy_client_cert_file: Option<PathBuf>,

    /// Private key of that certificate.
    #[arg(long, value_name = "FILE", requires = "proxy_client_cert_file")]
    pub proxy_client_key_file: Option<PathBuf>,

    /// Answer 502 instead of passing on a redirection of such a server. If false, a client may be redirected to where
    /// no authorization of this server applies.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub aggregator_reject_forwarding_redirect: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub request_header: RequestHeaderFlags,
}

/// Flags of front proxies, which name the user of a request in headers.
#[derive(Args, Clone, Debug)]
pub struct RequestHeaderFlags {
    /// Certificate authorities of front proxies, which may name the user of a request in headers.
    #[arg(long, value_name = "FILE")]
    pub requestheader_client_ca_file: Option<PathBuf>,

    /// Common names of front proxies' certificates, comma-separated. Any if not given.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        requires = "requestheader_client_ca_file"
    )]
    pub requestheader_allowed_names: Vec<String>,

    /// Headers with the user's name, comma-separated; the first that is present counts.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', default_value = "X-Remote-User",
          value_parser = parse_header)]
    pub requestheader_username_headers: Vec<String>,

    /// Headers with the user's uid.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', default_value = "X-Remote-Uid",
          value_parser = parse_header)]
    pub requestheader_uid_headers: Vec<String>,

    /// Headers with the user's groups.
    #[arg(long, value_name = "HEADERS", value_delimiter = ',', default_value = "X-Remote-Group",
          value_parser = parse_header)]
    pub requestheader_group_headers: Vec<String>,

    /// Prefixes of the headers that have extra attributes of the user.
    #[arg(long, value_name = "PREFIXES", value_delimiter = ',',
          default_value = "X-Remote-Extra-", value_parser = parse_header)]
    pub requestheader_extra_headers_prefix: Vec<String>,
}

impl RequestHeaderFlags {
    /// Returns the common names of front proxies' certificates; any if there are none. An empty flag names none.
    #[must_use]
    pub fn allowed_names(&self) -> Vec<String> {
        let names = self.requestheader_allowed_names.iter();
        names.filter(|name| !name.is_empty()).cloned().collect()
    }

    /// Returns the entries of the ConfigMap extension-apiserver-authentication, with the authorities of clients and of
    /// front proxies in PEM.
    #[must_use]
    pub fn extension_authentication(
        &self,
        client_authorities: String,
        proxies: Option<&str>,
    ) -> ExtensionAuthentication {
        let mut said = ExtensionAuthentication {
            authorities: vec![("client-ca-file", client_authorities)],
            ..ExtensionAuthentication::default()
        };
        let Some(proxies) = proxies else {
            return said;
        };
        said.authorities
            .push(("requestheader-client-ca-file", proxies.to_owned()));
        said.lists = [
            ("requestheader-allowed-names", &self.allowed_names()),
            (
                "requestheader-username-headers",
                &self.requestheader_username_headers,
            ),
            ("requestheader-uid-headers", &self.requestheader_uid_headers),
            (
                "requestheader-group-headers",
                &self.requestheader_group_headers,
            ),
            (
                "requestheader-extra-headers-prefix",
                &self.requestheader_extra_headers_prefix,
            ),
        ]
        .map(|(key, list)| (key, list.clone()))
        .to_vec();
        said
    }

    /// Returns the names of the headers of front proxies; `None` if no front proxy is configured.
    #[must_use]
    pub fn request_headers(&self) -> Option<RequestHeaders> {
        let names = |names: &[String]| {
            let names = names.iter().filter_map(|name| name.parse().ok());
            names.collect()
        };
        let prefixes = self.requestheader_extra_headers_prefix.iter();
        self.requestheader_client_ca_file
            .as_ref()
            .map(|_| RequestHeaders {
                names: names(&self.requestheader_username_headers),
                uids: names(&self.requestheader_uid_headers),
                groups: names(&self.requestheader_group_headers),
                extra_prefixes: prefixes.map(|it| it.to_ascii_lowercase()).collect(),
            })
    }
}

fn parse_header(text: &str) -> Result<String, String> {
    let text = text.trim();
    text.parse::<HeaderName>()
        .map(|_| text.to_owned())
        .map_err(|_| "not the name of a header".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: RequestHeaderFlags,
    }

    #[test]
    fn an_empty_name_is_no_name() {
        let names = |written: &str| {
            let flag = format!("--requestheader-allowed-names={written}");
            let line = ["x", "--requestheader-client-ca-file=ca", flag.as_str()];
            let line = Line::try_parse_from(line).expect("flags");
            line.flags.allowed_names()
        };
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("a,b"), ["a", "b"]);
    }
}
