//! Decodes objects from request bodies: size limit, syntax, kind and version, fields.
//!
//! The hard part is the error messages: Go's JSON errors reach clients, and duplicate or unknown fields are an error, a
//! warning or ignored, as the client requests.

mod complaints;
mod configuration;
mod fields;
mod media_type;
mod metadata;
mod operations;
mod protobuf;
mod registered_kinds;
mod strict;
mod yaml;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use ringwatch_apimachinery::accessor::type_name;
use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::{GroupVersion, User, go_json};
use ringwatch_http::RequestBody;
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_registry::{RequestContext, Strategy};
use ringwatch_spans::step;
use serde_json::{Map, Value};

use super::errors::Failure;
use super::memory_gate::MemoryGate;
use super::negotiation::{OBJECT_MEDIA_TYPES, PROTOBUF_MEDIA_TYPE};
use super::params::FieldValidation;
use complaints::Complaints;
pub(super) use complaints::yaml_error;
pub(super) use configuration::configuration;
pub(super) use fields::check_patched;
pub(super) use operations::unknown_members;
use registered_kinds::is_registered;
pub(super) use strict::DecodedBody;

/// Maximum size of a request's body, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum size of the body of a review, a request for a token, an Eviction, a Scale or the options of a deletion, in
/// bytes. None of them holds lists or texts that a client has much of: the largest are a token, and the groups of a
/// user, which a client could not send to be authenticated either if they were as long.
pub(super) const REVIEW_BYTES_MAX: usize = 128 * 1024;

/// Maximum size of the body of a Binding, in bytes: the pod takes its annotations over, which may have 256 KiB.
pub(super) const BINDING_BYTES_MAX: usize = 512 * 1024;

/// Maximum number of bytes of an unreadable body that an error shows.
const SUMMARY_BYTES_MAX: usize = 30;

/// The kind that a body must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedKind<'a> {
    /// The group and version.
    pub(super) group_version: &'a GroupVersion,
    /// The kind, such as `Deployment`.
    pub(super) kind: &'a str,
    /// The strategy of the kind's resource, if the kind is that of a stored one.
    pub(super) strategy: Option<&'a dyn Strategy>,
    /// True for the kind of a custom resource; then an object of another kind is refused when it is stored.
    pub(super) custom: bool,
}

impl ExpectedKind<'_> {
    /// Returns true if there is a schema that knows the fields of the kind.
    fn has_schema(&self) -> bool {
        let strategy = self.strategy;
        strategy.is_some_and(|it| it.merge_schema().is_some())
    }
}

/// Reads a user's body of at most so many bytes, and moves the request to the threads for large work if the body is
/// large.
///
/// # Errors
/// 413 when it is too large, 400 when it breaks off.
pub(super) async fn read_body(
    memory: &MemoryGate,
    user: &User,
    headers: &HeaderMap,
    mut body: RequestBody,
    most: usize,
) -> Result<Bytes, Failure> {
    let too_large = || Failure::too_large(format!("Request entity too large: limit is {most}"));
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(announced.unwrap_or(0));
    let _step = step("Read the body");
    let mut receiving = memory.receive(user);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Failure::bad_request(format!("the request body could not be read: {error}"))
        })?;
        let data = frame.into_data().unwrap_or_default();
        if content.len() + data.len() > most {
            return Err(too_large());
        }
        receiving.keep(content.len() + data.len()).await;
        content.extend_from_slice(&data);
    }
    receiving.end();
    let work = match &*media_type::media_type(headers) {
        PROTOBUF_MEDIA_TYPE => Work::ProtobufBody,
        _ => Work::Body,
    };
    offload_if_large(work, &content).await;
    Ok(content.into())
}

/// Returns the media type of a patch, without parameters; JSON if it is not said.
pub(super) fn patch_media_type(headers: &HeaderMap) -> &str {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split(';').next().unwrap_or_default())
        .filter(|value| !value.is_empty())
        .unwrap_or("application/json")
}

/// Reads any document in the syntax that the headers name. If it is protobuf and does not tell its
/// version and kind, they are `default`.
///
/// # Errors
/// 415 for a syntax that is not known; the inner error is the parser's, in Go's words.
pub(super) fn document(
    headers: &HeaderMap,
    content: &[u8],
    default: (&str, &str),
) -> Result<Result<DecodedBody, String>, Failure> {
    match &*media_type::media_type(headers) {
        "application/json" => Ok(strict::json(content).map_err(|error| {
            format!(
                "couldn't get version/kind; json parse error: {}",
                go_json::message(&error, content)
            )
        })),
        "application/yaml" => Ok(yaml::read(content)),
        PROTOBUF_MEDIA_TYPE => Ok(protobuf::read(content, default).map_err(|it| it.to_string())),
        _ => Err(Failure::unknown_format(OBJECT_MEDIA_TYPES)),
    }
}

/// Reads an object of the expected kind. Kind and version may be left out.
///
/// # Errors
/// 415 for a syntax that is not known, 400 for everything that is wrong with the content.
pub(super) fn object(
    headers: &HeaderMap,
    content: &[u8],
    expected: ExpectedKind<'_>,
    validation: FieldValidation,
    context: &RequestContext,
) -> Result<Value, Failure> {
    let unrecognized = |error: &str| unrecognized(content, expected, error);
    let decoded = if media_type::media_type(headers) == PROTOBUF_MEDIA_TYPE {
        protobuf::object(content, expected, &unrecognized)?
    } else {
        document(headers, content, ("", ""))?.map_err(|error| unrecognized(&error))?
    };
    checked(decoded, content, expected, validation, context)
}

/// An object of the expected kind, with the duplicate and unknown fields of its document.
#[derive(Debug)]
pub(super) struct TypedObject {
    /// The object, without unknown fields.
    pub(super) value: Value,
    /// The paths of the unknown fields.
    unknown: Vec<String>,
    /// The paths of duplicate fields of a JSON document.
    duplicates: Vec<String>,
    /// The lines of duplicate keys of a YAML document.
    repeated: Vec<String>,
}

impl TypedObject {
    /// Returns the document with the complaints of a strict decoder. The fields of custom resources are only known to
    /// their schema, which is asked when everything has been read.
    fn complaints(self, content: &[u8], expected: ExpectedKind<'_>) -> (Value, Complaints) {
        let mut fields = self.duplicates;
        if expected.has_schema() {
            // Go's decoder does not look into what it does not know.
            let unknown = &self.unknown;
            fields.retain(|duplicate| !unknown.iter().any(|path| is_within(duplicate, path)));
        }
        let unknown = self.unknown.iter().map(|path| fields::unknown_field(path));
        fields.extend(unknown);
        if !expected.has_schema() {
            complaints::order(content, &mut fields);
            fields.truncate(strict::COMPLAINTS_MAX);
        }
        let repeated = self.repeated;
        (self.value, Complaints { repeated, fields })
    }
}

/// Returns true if a complaint is about a duplicate at this path, or below it.
fn is_within(duplicate: &str, path: &str) -> bool {
    let at = duplicate.strip_prefix("duplicate field \"");
    let rest = at.and_then(|at| at.strip_prefix(path));
    rest.is_some_and(|rest| rest.starts_with(['"', '.', '[']))
}

/// Checks that a decoded document is an object of the expected kind, and treats unknown and duplicate fields as
/// `validation` says.
///
/// # Errors
/// 415 for a syntax that is not known, 400 for everything that is wrong with the content, as [`object`].
pub(super) fn checked(
    decoded: DecodedBody,
    content: &[u8],
    expected: ExpectedKind<'_>,
    validation: FieldValidation,
    context: &RequestContext,
) -> Result<Value, Failure> {
    let typed = typed(decoded, content, expected, validation)?;
    let (value, complaints) = typed.complaints(content, expected);
    match (validation, complaints.error()) {
        (FieldValidation::Strict, Some(error)) => {
            let text = |name: &str| value[name].as_str().unwrap_or_default();
            let (kind, version) = (text("kind"), text("apiVersion"));
            Err(cannot_be_handled(kind, version, expected, &error))
        }
        (FieldValidation::Warn, _) => {
            complaints.warnings().for_each(|text| context.warn(text));
            Ok(value)
        }
        (FieldValidation::Strict | FieldValidation::Ignore, _) => Ok(value),
    }
}

/// Returns the error about a document that is no object.
pub(super) fn no_object(document: &Value) -> String {
    let found = type_name(document);
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of \
         type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
         \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// Checks that a decoded document is an object of the expected kind; its complaints about fields are left to the
/// caller.
///
/// # Errors
/// 415 for a syntax that is not known, 400 for everything that is wrong with the content, as [`object`].
pub(super) fn typed(
    decoded: DecodedBody,
    content: &[u8],
    expected: ExpectedKind<'_>,
    validation: FieldValidation,
) -> Result<TypedObject, Failure> {
    let mut value = decoded.value;
    if value.is_null() {
        // Nothing is decoded into a Go type, which is then of the expected kind. A custom resource has to tell its own.
        value = Map::new().into();
    }
    let unrecognized = |error: &str| unrecognized(content, expected, error);
    if !value.is_object() {
        return Err(unrecognized(&no_object(&value)));
    }
    let Some(members) = value.as_object_mut() else {
        return Err(unrecognized(""));
    };
    check_type_texts(members).map_err(|why| unrecognized(&why))?;
    let said = |name: &str| {
        members
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (said_kind, said_version) = (said("kind").to_owned(), said("apiVersion").to_owned());
    let refused = |wrong: WrongType| match wrong {
        WrongType::NoKind => no_kind(&said_version, content, expected, validation),
        other => other.refused(&said_kind, &said_version, expected),
    };
    let (kind, version) = type_of(members, expected).map_err(refused)?;
    if version.matches('/').count() > 1 {
        let why = fields::no_group_version(&version);
        return Err(unrecognized(&why));
    }
    let cannot = |error: &str| cannot_be_handled(&kind, &version, expected, error);
    check_type(&kind, &version, expected)
        .map_err(|wrong| wrong.refused(&kind, &version, expected))?;
    let mut unknown = fields::check(members, expected).map_err(|error| cannot(&error))?;
    if let Some(strategy) = expected.strategy.filter(|_| kind == expected.kind) {
        let by_schema = strategy.unknown_fields(&value);
        unknown.extend(by_schema.map_err(|error| cannot(&error))?);
    }
    Ok(TypedObject {
        value,
        unknown,
        duplicates: decoded.complaints,
        repeated: decoded.repeated,
    })
}

/// Reads the JSON of a patch.
///
/// # Errors
/// The words of Go's decoder when it is none.
pub(super) fn patch(content: &[u8]) -> Result<DecodedBody, String> {
    strict::json(content).map_err(|error| go_json::message(&error, content))
}

/// Returns the 400 for a body that is no object of the expected kind.
fn unrecognized(content: &[u8], expected: ExpectedKind<'_>, error: &str) -> Failure {
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {error} ({})",
        expected.kind,
        summarize(content)
    ))
}

/// Returns the 400 for a custom resource that does not tell its kind. Only the strict decoder forgets the one that is
/// expected.
fn no_kind(
    version: &str,
    content: &[u8],
    expected: ExpectedKind<'_>,
    validation: FieldValidation,
) -> Failure {
    let shown = String::from_utf8_lossy(&content[..content.len().min(ERROR_BYTES_MAX)]);
    let error = missing_kind(&shown);
    if validation != FieldValidation::Ignore {
        return unrecognized(content, expected, &error);
    }
    let version = match version {
        "" => &expected.group_version.version,
        version => version,
    };
    cannot_be_handled(expected.kind, version, expected, &error)
}

/// Returns the words about a document without a kind.
fn missing_kind(shown: &str) -> String {
    format!("Object 'Kind' is missing in '{shown}'")
}

/// Returns the 400 for an object of this kind and version that cannot be decoded.
fn cannot_be_handled(
    kind: &str,
    version: &str,
    expected: ExpectedKind<'_>,
    error: &str,
) -> Failure {
    let (_, version) = version.rsplit_once('/').unwrap_or(("", version));
    Failure::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {error}",
        expected.kind
    ))
}

/// Checks that kind and version are texts, as far as they are there.
///
/// # Errors
/// The words of Go's decoder about another value.
pub(super) fn check_type_texts(members: &Map<String, Value>) -> Result<(), String> {
    for name in ["apiVersion", "kind"] {
        let said = members.get(name).filter(|it| !it.is_null());
        if let Some(said) = said.filter(|it| !it.is_string()) {
            let why = go_json::wrong(said, "", name, "string");
            return Err(format!(
                "couldn't get version/kind; json parse error: {why}"
            ));
        }
    }
    Ok(())
}

/// Returns the kind and version of a body, and sets those that were left out to the expected ones. A custom resource
/// has to tell both, since it has no Go type.
///
/// # Errors
/// The reason why a custom resource is of no type.
fn type_of(
    members: &mut Map<String, Value>,
    expected: ExpectedKind<'_>,
) -> Result<(String, String), WrongType> {
    let tells = |name: &str| {
        members
            .get(name)
            .is_some_and(|it| it.as_str() != Some("") && !it.is_null())
    };
    if expected.custom && !tells("kind") {
        return Err(WrongType::NoKind);
    }
    if expected.custom && members.get("apiVersion").is_some_and(Value::is_null) {
        let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
        return Err(WrongType::OtherKind(why.to_owned()));
    }
    if expected.custom && !tells("apiVersion") {
        return Err(WrongType::other_version("", expected));
    }
    let mut text = |name: &str, default: String| {
        let said = members
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default();
        if said.is_empty() {
            members.insert(name.to_owned(), Value::String(default.clone()));
            default
        } else {
            said.to_owned()
        }
    };
    let kind = text("kind", expected.kind.to_owned());
    let version = text("apiVersion", expected.group_version.to_string());
    Ok((kind, version))
}

/// The reason why an object is not of the expected type, in kube-apiserver's words.
enum WrongType {
    /// It is of another version of the kind.
    OtherVersion(String),
    /// Its kind cannot be converted to the expected one, or its version is none.
    OtherKind(String),
    /// It does not tell its kind.
    NoKind,
}

impl WrongType {
    fn other_version(version: &str, expected: ExpectedKind<'_>) -> Self {
        let wanted = expected.group_version;
        Self::OtherVersion(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({wanted})"
        ))
    }

    /// Returns the 400 for an object of this kind and version.
    fn refused(&self, kind: &str, version: &str, expected: ExpectedKind<'_>) -> Failure {
        match self {
            Self::OtherVersion(text) => Failure::bad_request(text.clone()),
            Self::OtherKind(text) => cannot_be_handled(kind, version, expected, text),
            Self::NoKind => cannot_be_handled(kind, version, expected, &missing_kind("")),
        }
    }
}

/// Returns the name of the scheme that serves a group: the place in kube-apiserver's source where it is made.
fn scheme_of(group: &str) -> &'static str {
    match group {
        "apiextensions.k8s.io" => "pkg/apiserver/apiserver.go:55",
        "apiregistration.k8s.io" => "pkg/apiserver/scheme/scheme.go:28",
        _ => "pkg/api/legacyscheme/scheme.go:30",
    }
}

fn check_type(kind: &str, version: &str, expected: ExpectedKind<'_>) -> Result<(), WrongType> {
    let wanted = expected.group_version.to_string();
    if (kind == expected.kind || expected.custom) && version == wanted {
        return Ok(());
    }
    let short = version.split_once('/').map_or(version, |(_, short)| short);
    if !expected.custom && !is_registered(&expected.group_version.group, version, kind) {
        let scheme = scheme_of(&expected.group_version.group);
        return Err(WrongType::OtherKind(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme {scheme:?}"
        )));
    }
    // What has one name in several groups, such as Event, is one internal type in Kubernetes.
    if expected.custom || kind == expected.kind {
        return Err(WrongType::other_version(version, expected));
    }
    let package = go_package(&expected.group_version.group);
    Err(WrongType::OtherKind(format!(
        "converting ({short}.{kind}) to ({package}.{}): unknown conversion",
        expected.kind
    )))
}

/// Returns the name of the Go package of a group's types in kube-apiserver. Events of both groups are of one.
pub(super) fn go_package(group: &str) -> &str {
    match group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(first) => first,
    }
}

/// Returns the beginning of an unreadable body.
fn summarize(content: &[u8]) -> String {
    if content.is_empty() {
        return "<empty>".to_owned();
    }
    let shown = &content[..content.len().min(SUMMARY_BYTES_MAX)];
    let mut text = if content[0] == b'{' {
        String::from_utf8_lossy(shown).into_owned()
    } else {
        shown.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if content.len() > SUMMARY_BYTES_MAX {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use ringwatch::budget::Ledger;
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use ringwatch_offload::{OffloadProgress, OffloadableRequest};

    use super::*;
    use crate::metrics::Metrics;

    fn decode(content: &str, validation: FieldValidation) -> (Result<Value, Failure>, Vec<String>) {
        decode_kind(content, validation, false)
    }

    fn decode_kind(
        content: &str,
        validation: FieldValidation,
        custom: bool,
    ) -> (Result<Value, Failure>, Vec<String>) {
        let core = GroupVersion::new("", "v1");
        let expected = ExpectedKind {
            group_version: &core,
            kind: "ConfigMap",
            strategy: None,
            custom,
        };
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let headers = HeaderMap::new();
        let found = object(&headers, content.as_bytes(), expected, validation, &context);
        (found, context.warnings())
    }

    fn message(content: &str) -> String {
        let (found, _) = decode(content, FieldValidation::Strict);
        found.expect_err(content).status().message.clone()
    }

    #[test]
    fn events_of_both_groups_are_of_one_package() {
        for (group, package) in [
            ("", "core"),
            ("events.k8s.io", "core"),
            ("apps", "apps"),
            ("rbac.authorization.k8s.io", "rbac"),
        ] {
            assert_eq!(go_package(group), package);
        }
    }

    #[test]
    fn kind_and_version_may_be_left_out() {
        let (value, _) = decode("{\"data\":{\"a\":\"1\"}}", FieldValidation::Warn);
        let value = value.expect("an object");
        assert_eq!(value["kind"], "ConfigMap");
        assert_eq!(value["apiVersion"], "v1");
    }

    #[test]
    fn unreadable_bodies_are_told_in_gos_words() {
        assert_eq!(
            message("hello"),
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'h' looking for beginning of value (68656c6c6f)"
        );
        assert!(message("").ends_with("unexpected end of JSON input (<empty>)"));
        assert!(
            message("{\"apiVersion\":\"v1\",")
                .ends_with("unexpected end of JSON input ({\"apiVersion\":\"v1\",)")
        );
    }

    #[test]
    fn wrong_types_are_told_apart() {
        assert_eq!(
            message("{\"kind\":\"Secret\",\"apiVersion\":\"v1\"}"),
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"
        );
        assert_eq!(
            message("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}"),
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/api/legacyscheme/scheme.go:30\""
        );
    }

    #[test]
    fn custom_resources_tell_their_type_themselves() {
        use FieldValidation::{Ignore, Strict};
        let refused = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap";
        for (content, validation, expected) in [
            (
                r#"{"apiVersion":"v1"}"#,
                Strict,
                r#"the object provided is unrecognized (must be of type ConfigMap): Object 'Kind' is missing in '{"apiVersion":"v1"}' ({"apiVersion":"v1"})"#.to_owned(),
            ),
            (
                r#"{"kind":null}"#,
                Ignore,
                format!("{refused}: Object 'Kind' is missing in '{{\"kind\":null}}'"),
            ),
            (
                r#"{"kind":"ConfigMap","apiVersion":null}"#,
                Strict,
                "ConfigMap in version \"\" cannot be handled as a ConfigMap: .apiVersion accessor error: <nil> is of the type <nil>, expected string".to_owned(),
            ),
            (
                r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":5}"#,
                Strict,
                format!("{refused}: json: cannot unmarshal number into Go value of type v1.ObjectMeta"),
            ),
        ] {
            let (found, _) = decode_kind(content, validation, true);
            assert_eq!(found.expect_err(content).status().message, expected);
        }
    }

    #[test]
    fn duplicate_and_unknown_fields_follow_the_clients_wish() {
        let twice = "{\"data\":{\"a\":\"1\"},\"data\":{\"b\":\"2\"}}";
        assert_eq!(
            message(twice),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \"data\""
        );
        let (value, warnings) = decode(twice, FieldValidation::Warn);
        assert_eq!(value.expect("an object")["data"]["b"], "2");
        assert_eq!(warnings, ["duplicate field \"data\""]);
        let (value, warnings) = decode("{\"bogus\":1}", FieldValidation::Warn);
        assert!(value.expect("an object").get("bogus").is_none());
        assert_eq!(warnings, ["unknown field \"bogus\""]);
        let (_, warnings) = decode("{\"bogus\":1}", FieldValidation::Ignore);
        assert!(warnings.is_empty());
    }

    #[test]
    fn null_is_an_object_without_fields() {
        let (value, _) = decode("null", FieldValidation::Strict);
        assert_eq!(value.expect("an object")["kind"], "ConfigMap");
        let (value, _) = decode_kind("null", FieldValidation::Strict, true);
        let failure = value.expect_err("no kind");
        let told = "Object 'Kind' is missing in 'null' (6e756c6c)";
        assert!(failure.status().message.ends_with(told));
    }

    #[test]
    fn duplicates_are_within_a_path_at_the_end_of_a_name() {
        for (path, expected) in [("a", true), ("a.b", true), ("a.bc", false), ("b", false)] {
            assert_eq!(is_within("duplicate field \"a.b[0].c\"", path), expected);
        }
    }

    #[test]
    fn wrong_types_of_fields_are_told_in_gos_words() {
        assert_eq!(
            message("{\"data\":{\"a\":1}}"),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        assert!(message("{\"kind\":1}").contains(
            "cannot unmarshal number into Go struct field .kind of type string ({\"kind\":1})"
        ));
    }

    #[tokio::test]
    async fn bodies_have_a_limit() {
        let (memory, user) = (MemoryGate::open(), User::default());
        for most in [BODY_BYTES_MAX, REVIEW_BYTES_MAX] {
            for announced in [true, false] {
                let read = async |bytes: usize| {
                    let mut headers = HeaderMap::new();
                    if announced {
                        headers.insert(CONTENT_LENGTH, bytes.into());
                    }
                    let body = ringwatch_http::full(vec![b'x'; bytes]);
                    read_body(&memory, &user, &headers, body, most).await
                };
                assert!(read(most).await.is_ok());
                let failure = read(most + 1).await.expect_err("too large");
                assert_eq!(failure.code(), 413);
                assert_eq!(
                    failure.status().message,
                    format!("Request entity too large: limit is {most}")
                );
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_waits_for_a_thread_is_counted_there_alone() {
        let ledger = Ledger::new(1 << 30);
        let memory = MemoryGate::new(ledger.clone(), Metrics::new());
        let read = async move {
            let body = ringwatch_http::full(vec![b'x'; 1 << 20]);
            let (user, headers) = (User::default(), HeaderMap::new());
            let content = read_body(&memory, &user, &headers, body, BODY_BYTES_MAX).await;
            content.is_ok_and(|it| it.len() == 1 << 20)
        };
        let request = OffloadableRequest::new(Box::pin(read));
        let OffloadProgress::Offload(asked, rest) = request.start().await else {
            panic!("a large body was read where it began");
        };
        assert_eq!(asked.bytes, 1 << 20);
        assert_eq!(ledger.total(), 0);
        assert!(rest.resume().await);
    }
}
