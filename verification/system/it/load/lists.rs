//! Faults that are planted in lists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::fault::{Chooser, Fault};

/// Plants a fault among the lists of secrets.
pub(crate) struct Lists {
    client: kube::Client,
    fault: Fault,
    chooser: Arc<Chooser>,
    /// The first answer to each list.
    first: Mutex<HashMap<String, Bytes>>,
}

impl Lists {
    pub(crate) fn new(client: kube::Client, fault: Fault, chooser: Arc<Chooser>) -> Self {
        Self {
            client,
            fault,
            chooser,
            first: Mutex::default(),
        }
    }

    /// Takes what was answered to a read, and gives what goes out.
    pub(crate) async fn pass(
        &self,
        path: &str,
        is_json: bool,
        body: Bytes,
    ) -> Result<Bytes, kube::Error> {
        let is_list = path.contains("/secrets?") && !path.contains("resourceVersion");
        let is_later = path.contains("continue=");
        match self.fault {
            Fault::StaleList if is_list && !is_later => {
                Ok(self.stale(format!("{path} {is_json}"), body))
            }
            Fault::StaleGet if path.contains("/secrets/") => {
                Ok(self.stale(format!("{path} {is_json}"), body))
            }
            Fault::MixedPages | Fault::ForgedPage if is_list && is_later && is_json => {
                self.page_of_another_state(path, body).await
            }
            _ => Ok(body),
        }
    }

    /// Returns the first answer to the same request, if it differs and is chosen; else the present one.
    fn stale(&self, question: String, body: Bytes) -> Bytes {
        let mut first = self.first.lock().expect("nobody panicked");
        let older = first.entry(question).or_insert_with(|| body.clone());
        if *older != body && self.chooser.is_chosen() {
            self.chooser.count();
            return older.clone();
        }
        body
    }

    /// A later page with the objects as they are now, if they are others.
    async fn page_of_another_state(&self, path: &str, body: Bytes) -> Result<Bytes, kube::Error> {
        let (whole, _) = path.split_once("&limit=").expect("a list in pages");
        let request = Request::get(whole).header("Accept", "application/json");
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.client.send(request).await?.into_body();
        let newest = json(&answer.collect().await?.to_bytes());
        let mut page = json(&body);
        let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
        let (before, mut now) = (items(&page), items(&newest));
        let name = |item: &Value| item["metadata"]["name"].to_string();
        let (Some(first), Some(last)) = (before.first().map(name), before.last().map(name)) else {
            return Ok(body);
        };
        now.retain(|item| (&first..=&last).contains(&&name(item)));
        if now == before || !self.chooser.is_chosen() {
            return Ok(body);
        }
        page["items"] = now.into();
        if self.fault == Fault::MixedPages {
            page["metadata"]["resourceVersion"] = newest["metadata"]["resourceVersion"].clone();
        }
        self.chooser.count();
        // Servers of Kubernetes write the items last, and clients that read as it comes rely on it.
        let [kind, version, head, items] =
            ["kind", "apiVersion", "metadata", "items"].map(|name| page[name].to_string());
        let page = format!(
            r#"{{"kind":{kind},"apiVersion":{version},"metadata":{head},"items":{items}}}"#
        );
        Ok(page.into())
    }
}

fn json(body: &[u8]) -> Value {
    serde_json::from_slice(body).expect("a list in JSON")
}
