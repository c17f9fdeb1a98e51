//! Writes events: as JSON for logs and webhooks, and as one line of text for logs (`legacy`).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ringwatch_apimachinery::User;
use ringwatch_apimachinery::go_text::quoted;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::body::AuditBody;
use crate::event::{AuditEvent, ObjectReference, Response};
use crate::level::{Level, Stage};

/// The group and version of events.
pub(crate) const API_VERSION: &str = "audit.k8s.io/v1";

/// An event in JSON, and the errors of bodies that could not be written.
pub(crate) struct RenderedEvent {
    /// The event on one line, without an end of line.
    pub(crate) json: Vec<u8>,
    /// The reasons why bodies are missing.
    pub(crate) errors: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AuthenticationMetadata {
    impersonation_constraint: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: &'a str,
    verb: &'a str,
    user: UserJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<UserJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication_metadata: Option<AuthenticationMetadata>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<&'a ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<StatusJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<&'a RawValue>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    annotations: &'a std::collections::BTreeMap<String, String>,
}

#[derive(Serialize)]
struct UserJson<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    extra: &'a std::collections::BTreeMap<String, Vec<String>>,
}

impl<'a> From<&'a User> for UserJson<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            username: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: &user.extra,
        }
    }
}

/// The parts of a Status that events have.
#[derive(Serialize)]
struct StatusJson<'a> {
    metadata: serde_json::Map<String, Value>,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Value>,
    code: u16,
}

/// Writes an event as a document of its own, or as an item of a list, which has neither kind nor version.
pub(crate) fn json(event: &AuditEvent, is_item: bool) -> RenderedEvent {
    let mut errors = Vec::new();
    let omit = event.omit_managed_fields;
    let mut object = |body: &AuditBody| match body.json() {
        Ok(json) if omit => Some(without_managed_fields(json)),
        Ok(json) => Some(json),
        Err(error) => {
            errors.push(error);
            None
        }
    };
    let has_request = event.level >= Level::Request;
    let request_object = event.request_object.as_ref().filter(|_| has_request);
    let request_object = request_object.and_then(&mut object);
    let body = event.response.as_ref().and_then(|it| it.body.as_ref());
    let is_status = body.is_some_and(AuditBody::looks_like_status);
    let has_response = event.level >= Level::RequestResponse;
    let response_object = body
        .filter(|_| has_response || is_status)
        .and_then(&mut object);
    let status: Option<Value> = response_object
        .as_ref()
        .filter(|_| is_status)
        .and_then(|it| serde_json::from_str(it.get()).ok());
    let written = EventJson {
        kind: (!is_item).then_some("Event"),
        api_version: (!is_item).then_some(API_VERSION),
        level: event.level,
        audit_id: &event.audit_id,
        stage: event.stage,
        request_uri: &event.request_uri,
        verb: &event.verb,
        user: UserJson::from(&event.user),
        impersonated_user: event.impersonated_user.as_ref().map(UserJson::from),
        authentication_metadata: event.impersonation_constraint.map(|constraint| {
            AuthenticationMetadata {
                impersonation_constraint: constraint,
            }
        }),
        source_ips: event
            .source_ips
            .iter()
            .map(|it| it.to_canonical().to_string())
            .collect(),
        user_agent: &event.user_agent,
        object_ref: event.object_ref.as_ref(),
        response_status: event
            .response
            .as_ref()
            .map(|it| outcome(it, status.as_ref())),
        request_object,
        response_object: response_object.as_deref().filter(|_| has_response),
        request_received_timestamp: micro_time(event.received),
        stage_timestamp: micro_time(event.at),
        annotations: &event.annotations,
    };
    // Strings, numbers and raw JSON: this does not fail.
    let json = serde_json::to_vec(&written).unwrap_or_default();
    RenderedEvent { json, errors }
}

fn outcome<'a>(response: &'a Response, status: Option<&'a Value>) -> StatusJson<'a> {
    let text = |name: &str| status.and_then(|it| it.get(name)).and_then(Value::as_str);
    StatusJson {
        metadata: serde_json::Map::new(),
        status: text("status").unwrap_or(response.status),
        message: text("message").unwrap_or(&response.message),
        reason: text("reason").unwrap_or(response.reason),
        details: status.and_then(|it| it.get("details")),
        code: response.code,
    }
}

/// Removes managed fields from an object, from the items of a list, and from the objects in the rows of a table.
fn without_managed_fields(json: Box<RawValue>) -> Box<RawValue> {
    const MANAGED_FIELDS: &str = "managedFields";
    if !json.get().contains(MANAGED_FIELDS) {
        return json;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(json.get()) else {
        return json;
    };
    let strip = |object: &mut Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove(MANAGED_FIELDS);
        }
    };
    let list = |value: &mut Value, name: &str| {
        let list = value.get_mut(name).and_then(Value::as_array_mut);
        list.map(std::mem::take)
    };
    strip(&mut value);
    if let Some(mut items) = list(&mut value, "items") {
        items.iter_mut().for_each(strip);
        value["items"] = items.into();
    }
    if let Some(mut rows) = list(&mut value, "rows") {
        rows.iter_mut()
            .filter_map(|row| row.get_mut("object"))
            .for_each(strip);
        value["rows"] = rows.into();
    }
    RawValue::from_string(value.to_string()).unwrap_or(json)
}

/// Writes a time as Kubernetes' `MicroTime`.
fn micro_time(time: Timestamp) -> String {
    let utc = time.to_zoned(TimeZone::UTC);
    utc.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Writes an event as one line of text, without an end of line: `EventString` of Kubernetes 1.36 (`audit/format.go`).
pub(crate) fn legacy(event: &AuditEvent) -> String {
    let user = &event.user;
    let (mut name, mut groups) = ("<none>", "<none>".to_owned());
    if !user.name.is_empty() {
        name = &user.name;
        if !user.groups.is_empty() {
            groups = list(&user.groups);
        }
    }
    let (mut as_user, mut as_groups) = ("<self>", "<lookup>".to_owned());
    if let Some(other) = &event.impersonated_user {
        as_user = &other.name;
        if !other.groups.is_empty() {
            as_groups = list(&other.groups);
        }
    }
    let namespace = event.object_ref.as_ref().map(|it| it.namespace.as_str());
    let namespace = namespace.filter(|it| !it.is_empty()).unwrap_or("<none>");
    let response = event.response.as_ref();
    let response = response.map_or_else(|| "<deferred>".to_owned(), |it| it.code.to_string());
    let ip = event
        .source_ips
        .first()
        .map(|it| it.to_canonical().to_string());
    let ip = ip.unwrap_or_else(|| "<unknown>".to_owned());
    let utc = event.received.to_zoned(TimeZone::UTC);
    let time = utc.strftime("%Y-%m-%dT%H:%M:%S%.fZ");
    let text = |text: &str| quoted(text);
    format!(
        "{time} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} uri={} response=\"{response}\"",
        text(&event.audit_id),
        text(event.stage.name()),
        text(&ip),
        text(&event.verb),
        text(name),
        text(&groups),
        text(as_user),
        text(&as_groups),
        text(&event.user_agent),
        text(namespace),
        text(&event.request_uri),
    )
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|it| quoted(it)).collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::body::Encoding;

    fn event() -> AuditEvent {
        AuditEvent {
            level: Level::RequestResponse,
            audit_id: "id".to_owned(),
            stage: Stage::ResponseComplete,
            request_uri: "/api/v1/namespaces/a/pods?x=\"".to_owned(),
            verb: "create".to_owned(),
            user: User {
                name: "ann".to_owned(),
                groups: vec!["a".to_owned(), "b".to_owned()],
                ..User::default()
            },
            source_ips: vec!["::ffff:10.0.0.1".parse().expect("an address")],
            user_agent: "kubectl".to_owned(),
            object_ref: Some(ObjectReference {
                resource: "pods".to_owned(),
                namespace: "a".to_owned(),
                ..ObjectReference::default()
            }),
            received: Timestamp::from_second(0).expect("a time"),
            at: Timestamp::from_microsecond(1_500_001).expect("a time"),
            ..AuditEvent::default()
        }
    }

    fn written(event: &AuditEvent) -> Value {
        let rendered = json(event, false);
        assert_eq!(rendered.errors, [""; 0]);
        assert!(!rendered.json.contains(&b'\n'));
        serde_json::from_slice(&rendered.json).expect("JSON")
    }

    fn body(content: &'static str) -> Option<AuditBody> {
        Some(AuditBody::whole(
            Encoding::Json,
            Bytes::from_static(content.as_bytes()),
        ))
    }

    #[test]
    fn an_event_is_written_as_kube_apiserver_writes_it() {
        assert_eq!(
            written(&event()),
            json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": "id",
                "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/a/pods?x=\"", "verb": "create",
                "user": {"username": "ann", "groups": ["a", "b"]}, "sourceIPs": ["10.0.0.1"],
                "userAgent": "kubectl", "objectRef": {"resource": "pods", "namespace": "a"},
                "requestReceivedTimestamp": "1970-01-01T00:00:00.000000Z",
                "stageTimestamp": "1970-01-01T00:00:01.500001Z"})
        );
        let impersonating = AuditEvent {
            impersonated_user: Some(User {
                name: "joe".to_owned(),
                ..User::default()
            }),
            impersonation_constraint: Some("impersonate:user-info"),
            ..event()
        };
        assert_eq!(
            written(&impersonating)["authenticationMetadata"],
            json!({"impersonationConstraint": "impersonate:user-info"})
        );
        let item = json(&event(), true).json;
        assert!(item.starts_with(b"{\"level\":\"RequestResponse\""));
    }

    #[test]
    fn a_status_says_the_outcome_at_every_level() {
        let status = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\
                      \"message\":\"no\",\"reason\":\"NotFound\",\"details\":{\"name\":\"x\"},\"code\":404}";
        let response = Some(Response {
            code: 404,
            body: body(status),
            ..Response::default()
        });
        for (level, has_object) in [(Level::Metadata, false), (Level::RequestResponse, true)] {
            let event = AuditEvent {
                level,
                response: response.clone(),
                ..event()
            };
            let written = written(&event);
            assert_eq!(
                written["responseStatus"],
                json!({"metadata": {}, "status": "Failure", "message": "no", "reason": "NotFound",
                    "details": {"name": "x"}, "code": 404})
            );
            assert_eq!(written.get("responseObject").is_some(), has_object);
        }
    }

    #[test]
    fn managed_fields_are_left_out_on_demand() {
        let list = "{\"items\":[{\"metadata\":{\"managedFields\":[],\"name\":\"a\"}}],\
                    \"rows\":[{\"object\":{\"metadata\":{\"managedFields\":[1]}}}],\
                    \"metadata\":{\"managedFields\":[2]}}";
        let mut event = AuditEvent {
            request_object: body(list),
            ..event()
        };
        assert_eq!(
            written(&event)["requestObject"]["rows"][0]["object"]["metadata"]["managedFields"],
            json!([1])
        );
        event.omit_managed_fields = true;
        assert_eq!(
            written(&event)["requestObject"],
            json!({"items": [{"metadata": {"name": "a"}}], "rows": [{"object": {"metadata": {}}}], "metadata": {}})
        );
    }

    #[test]
    fn a_body_that_cannot_be_written_is_left_out_and_told() {
        let broken = AuditBody::whole(Encoding::Protobuf, Bytes::from_static(b"k8s\0\xff"));
        let event = AuditEvent {
            request_object: Some(broken),
            ..event()
        };
        let rendered = json(&event, false);
        assert_eq!(rendered.errors.len(), 1);
        let written: Value = serde_json::from_slice(&rendered.json).expect("JSON");
        assert!(written.get("requestObject").is_none());
    }

    #[test]
    fn legacy_lines_are_kube_apiservers() {
        let mut event = event();
        assert_eq!(
            legacy(&event),
            "1970-01-01T00:00:00Z AUDIT: id=\"id\" stage=\"ResponseComplete\" ip=\"10.0.0.1\" method=\"create\" \
             user=\"ann\" groups=\"\\\"a\\\",\\\"b\\\"\" as=\"<self>\" asgroups=\"<lookup>\" user-agent=\"kubectl\" \
             namespace=\"a\" uri=\"/api/v1/namespaces/a/pods?x=\\\"\" response=\"<deferred>\""
        );
        event.response = Some(Response {
            code: 201,
            ..Response::default()
        });
        event.user = User::default();
        event.impersonated_user = Some(User {
            name: "joe".to_owned(),
            ..User::default()
        });
        event.source_ips.clear();
        event.object_ref = None;
        let line = legacy(&event);
        assert!(line.contains("ip=\"<unknown>\" method=\"create\" user=\"<none>\" groups=\"<none>\" as=\"joe\" asgroups=\"<lookup>\""));
        assert!(line.contains("namespace=\"<none>\"") && line.ends_with("response=\"201\""));
    }
}
