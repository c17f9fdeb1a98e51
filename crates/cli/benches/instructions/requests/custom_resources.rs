//! A definition like those of operators, and its objects: defaults, patterns, map lists, a status by itself and rules.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use super::{JSON, request};

/// The path of the objects.
pub const SITES: &str = "/apis/example.com/v1/namespaces/default/sites";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the request that makes the definition.
pub fn define() -> Request<Bytes> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"],
                    "properties": {"spec": spec_schema(), "status": status_schema()}}},
            }],
        },
    });
    request(
        Method::POST,
        DEFINITIONS,
        JSON,
        definition.to_string().into(),
    )
}

fn spec_schema() -> Value {
    let text = |max: u32| json!({"type": "string", "maxLength": max});
    let port = json!({"type": "object", "required": ["name", "port"], "properties": {
        "name": text(15),
        "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string", "enum": ["TCP", "UDP"], "default": "TCP"}}});
    let variable = json!({"type": "object", "required": ["name"], "properties": {
        "name": text(253), "value": text(4096),
        "valueFrom": {"type": "object", "properties": {"secretKeyRef": {"type": "object",
            "required": ["key"], "properties": {"name": text(253), "key": text(253)}}}}}});
    json!({
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": {"type": "string", "maxLength": 500, "pattern": "^[a-z0-9./:_-]+$"},
            "replicas": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
            "host": text(253),
            "paused": {"type": "boolean", "default": false},
            "labels": {"type": "object", "additionalProperties": text(63), "maxProperties": 50},
            "ports": {"type": "array", "maxItems": 20, "items": port,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            "env": {"type": "array", "maxItems": 100, "items": variable,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            "maxUnavailable": {"x-kubernetes-int-or-string": true, "default": "25%"},
            "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
        "x-kubernetes-validations": [
            {"rule": "self.replicas <= 100", "message": "at most 100 replicas"},
            {"rule": "!has(oldSelf.host) || self.host == oldSelf.host", "message": "host is immutable"},
        ],
    })
}

fn status_schema() -> Value {
    let text = || json!({"type": "string"});
    let condition = json!({"type": "object", "required": ["type", "status"], "properties": {
        "type": text(), "status": text(), "reason": text(), "message": text(),
        "lastTransitionTime": {"type": "string", "format": "date-time"}}});
    json!({"type": "object", "properties": {
        "readyReplicas": {"type": "integer"},
        "conditions": {"type": "array", "items": condition,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}}})
}

/// Returns an object of the definition.
pub fn custom_resource(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "site"}},
        "spec": {
            "image": "registry.example.com/site:1.2.3",
            "replicas": 3,
            "host": "site.example.com",
            "labels": {"app": "site", "tier": "web"},
            "ports": [{"name": "http", "port": 8080}, {"name": "metrics", "port": 9090}],
            "env": [
                {"name": "LEVEL", "value": "info"},
                {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "site", "key": "password"}}},
            ],
            "values": {"cache": {"enabled": true, "size": "1Gi"}, "locales": ["de", "en", "fr"]},
        },
    })
}
