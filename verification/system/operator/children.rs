//! The children of a site: a config map for each page and a deployment, which go with it, and a registration, which
//! stands for something elsewhere that only a finalizer gives back.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::site::Site;

/// The label of what belongs to a site, with its name.
pub(crate) const SITE: &str = "example.com/site";
/// The label of a registration, with the uid of its site.
pub(crate) const REGISTERED: &str = "example.com/registered";
/// The annotation with the term of the leader that wrote something.
pub(crate) const TERM: &str = "example.com/term";
/// Under which a config map has its text.
pub(crate) const TEXT: &str = "text";

/// The config maps of a site's pages.
pub(crate) fn pages(site: &Site, term: i32) -> Vec<ConfigMap> {
    let pages = site.spec.pages.iter();
    pages
        .map(|(page, text)| ConfigMap {
            metadata: owned(site, &format!("{}-{page}", site.name_any()), term),
            data: Some(BTreeMap::from([(TEXT.to_owned(), text.clone())])),
            ..ConfigMap::default()
        })
        .collect()
}

/// The deployment that serves them.
pub(crate) fn deployment(site: &Site, term: i32) -> Deployment {
    let labels = json!({SITE: site.name_any()});
    let spec = json!({
        "replicas": site.spec.replicas,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "server", "image": "example.com/server:1"}]},
        },
    });
    Deployment {
        metadata: owned(site, &site.name_any(), term),
        spec: serde_json::from_value(spec).ok(),
        ..Deployment::default()
    }
}

/// The registration of a site.
pub(crate) fn registration(site: &Site, term: i32) -> ConfigMap {
    let uid = site.uid().unwrap_or_default();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(registration_name(site)),
            labels: Some(BTreeMap::from([(REGISTERED.to_owned(), uid)])),
            annotations: Some(BTreeMap::from([(TERM.to_owned(), term.to_string())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            "host".to_owned(),
            site.spec.host.clone(),
        )])),
        ..ConfigMap::default()
    }
}

/// The name of a site's registration.
pub(crate) fn registration_name(site: &Site) -> String {
    format!("registration-{}", site.uid().unwrap_or_default())
}

fn owned(site: &Site, name: &str, term: i32) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(BTreeMap::from([(SITE.to_owned(), site.name_any())])),
        annotations: Some(BTreeMap::from([(TERM.to_owned(), term.to_string())])),
        owner_references: site.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}
