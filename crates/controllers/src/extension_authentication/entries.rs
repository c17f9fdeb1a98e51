//! The ConfigMap `extension-apiserver-authentication`, from which aggregated API servers read the authorities and
//! header names by which they authenticate requests.
//!
//! Servers that share a store write it together, so none removes the entries of another one.

use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::Error;
use ringwatch_authentication::ExtensionAuthentication;
use ringwatch_registry::{FunctionUpdate, RequestContext, Store, UpdateOptions};
use ringwatch_resources::default_objects::ensure;
use serde_json::{Map, Value, json};
use x509_parser::pem::Pem;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Merges the entries of one server into the ConfigMap, which is created if need be. Expired certificates are dropped
/// from it.
///
/// # Errors
/// An error of the store if the ConfigMap cannot be read or written.
pub async fn publish_extension_authentication(
    entries: &ExtensionAuthentication,
    config_maps: &Store,
    clock: &Clock,
) -> Result<(), Error> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE}});
    ensure(config_maps, NAMESPACE, object, clock).await?;
    let (context, options) = (RequestContext::of_server(clock), UpdateOptions::default());
    let mut merge = FunctionUpdate::new(|object| {
        let mut data = match object["data"].take() {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        write(entries, &mut data, clock.wall());
        object["data"] = data.into();
        Ok(())
    });
    let written = config_maps.update(&context, NAMESPACE, NAME, &mut merge, &options);
    written.await.map(|_| ())
}

/// Merges the entries of one server into the data of the ConfigMap.
fn write(entries: &ExtensionAuthentication, data: &mut Map<String, Value>, now: Timestamp) {
    let text = |data: &Map<String, Value>, key: &str| {
        let text = data.get(key).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    for (key, pem) in &entries.authorities {
        let all = bundle(&[text(data, key), pem.clone()], now);
        data.insert((*key).to_owned(), all.into());
    }
    for (key, list) in &entries.lists {
        let mut all: Vec<String> = serde_json::from_str(&text(data, key)).unwrap_or_default();
        let new: Vec<_> = list.iter().filter(|it| !all.contains(it)).collect();
        all.extend(new.into_iter().cloned());
        data.insert((*key).to_owned(), json!(all).to_string().into());
    }
}

/// Joins the certificates of several PEM texts, without duplicates and expired ones.
fn bundle(texts: &[String], now: Timestamp) -> String {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for text in texts {
        let blocks = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok);
        for block in blocks {
            let is_valid = block
                .parse_x509()
                .is_ok_and(|it| it.validity().not_after.timestamp() >= now.as_second());
            if is_valid && !found.contains(&block.contents) {
                found.push(block.contents);
            }
        }
    }
    found.iter().map(|der| pem(der)).collect()
}

fn pem(der: &[u8]) -> String {
    use base64::Engine as _;
    const LINE_CHARACTERS: usize = 64;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_CHARACTERS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(name: &str, until: i32) -> String {
        let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").pem()
    }

    #[test]
    fn what_others_say_stays_until_it_is_over() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let [own, other, old] = [("own", 2030), ("other", 2030), ("old", 2020)]
            .map(|(name, until)| authority(name, until));
        let mut data = Map::new();
        data.insert("client-ca-file".to_owned(), format!("{other}{old}").into());
        data.insert("names".to_owned(), "[\"a\"]".into());
        let said = ExtensionAuthentication {
            authorities: vec![("client-ca-file", own.clone())],
            lists: vec![("names", vec!["a".to_owned(), "b".to_owned()])],
        };
        for _ in 0..2 {
            write(&said, &mut data, now);
            let same = |text: &str| text.replace("\r\n", "\n");
            assert_eq!(
                data["client-ca-file"],
                format!("{}{}", same(&other), same(&own))
            );
            assert_eq!(data["names"], "[\"a\",\"b\"]");
        }
    }
}
