//! The functions of URLs, which are read as Go reads them. Follows `library/urls.go` of kube-apiserver.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::{Key, Map, Opaque};
use ringwatch_apimachinery::go_url::Url;

use super::failure::{Failure, ValueResult};

/// A URL as a value of expressions.
#[derive(Debug)]
struct UrlValue {
    url: Url,
    /// The text that [`Url`] writes, by which URLs are compared again and again.
    written: String,
}

/// Compares URLs as they are written, as `URL.Equal` does.
impl PartialEq for UrlValue {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for UrlValue {}

impl Opaque for UrlValue {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.URL"
    }
}

/// Calls a function of URLs; `None` if it is none of them.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    match (name, values) {
        ("url", [CelValue::String(text)]) => Some(match Url::parse_absolute(text) {
            Ok(url) => {
                let written = url.to_string();
                Ok(CelValue::Opaque(Arc::new(UrlValue { url, written })))
            }
            Err(error) => {
                let why = format!("URL parse error during conversion from string: {error}");
                Err(Failure::Other(why.into()))
            }
        }),
        ("isURL", [CelValue::String(text)]) => {
            Some(Ok(CelValue::Bool(Url::parse_request(text).is_ok())))
        }
        (_, [CelValue::Opaque(opaque)]) => {
            let url = &opaque.downcast_ref::<UrlValue>()?.url;
            part(name, url).map(Ok)
        }
        _ => None,
    }
}

fn part(name: &str, url: &Url) -> Option<CelValue> {
    Some(match name {
        "getScheme" => CelValue::from(url.scheme.as_str()),
        "getHost" => CelValue::from(url.host.as_str()),
        "getHostname" => CelValue::from(url.host_name()),
        "getPort" => CelValue::from(url.port()),
        "getEscapedPath" => CelValue::from(url.escaped_path()),
        "getQuery" => query(url),
        _ => return None,
    })
}

fn query(url: &Url) -> CelValue {
    let mut values: HashMap<String, Vec<CelValue>> = HashMap::new();
    for (name, value) in url.query() {
        values.entry(name).or_default().push(CelValue::from(value));
    }
    let entries = values.into_iter();
    let entries = entries.map(|(name, values)| {
        let name = Key::String(Arc::new(name));
        (name, CelValue::List(Arc::new(values)))
    });
    let map = Arc::new(entries.collect());
    CelValue::Map(Map { map })
}
