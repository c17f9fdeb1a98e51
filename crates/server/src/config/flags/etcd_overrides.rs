//! `--etcd-servers-overrides`: other etcds for some resources.

/// The etcd servers of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOverride {
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// The plural of the resource.
    pub plural: String,
    /// The URLs of the servers, sorted.
    pub servers: Vec<String>,
}

impl EtcdOverride {
    /// Parses `group/resource#url;url`. Follows `ParseEtcdServersOverrides` of k8s.io/apiserver 1.36.
    ///
    /// # Errors
    /// The explanation for the user.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon \
             separated"
                .to_owned()
        };
        let (resource, servers) = text.split_once('#').ok_or_else(wrong)?;
        let (group, plural) = resource.split_once('/').ok_or_else(wrong)?;
        if servers.contains('#') || plural.contains('/') {
            return Err(wrong());
        }
        let servers = servers.split(';').map(|server| {
            if server.is_empty() {
                return Err(wrong());
            }
            parse_etcd_server(server)
        });
        let mut servers = servers.collect::<Result<Vec<_>, _>>()?;
        servers.sort();
        Ok(Self {
            group: group.to_owned(),
            plural: plural.to_owned(),
            servers,
        })
    }
}

/// Reads the URL of an etcd server, around which blanks may stand in a list.
pub(super) fn parse_etcd_server(text: &str) -> Result<String, String> {
    let text = text.trim();
    let uri: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) => Ok(text.to_owned()),
        _ => Err("not of the form http://HOST:PORT or https://HOST:PORT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_servers() {
        let events = EtcdOverride::parse("/events#http://b:1;https://a:2").expect("servers");
        assert_eq!(
            (events.group.as_str(), events.plural.as_str()),
            ("", "events")
        );
        assert_eq!(events.servers, ["http://b:1", "https://a:2"]);
        for wrong in [
            "events#http://a:1",
            "/events",
            "/a/b#http://a:1",
            "/a#",
            "/a#http://a:1;",
        ] {
            let error = EtcdOverride::parse(wrong).expect_err(wrong);
            assert!(
                error.starts_with("--etcd-servers-overrides invalid"),
                "{error}"
            );
        }
        assert!(EtcdOverride::parse("/a#b:1").is_err());
    }
}
