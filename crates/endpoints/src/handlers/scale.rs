//! The `scale` subresource: an object's replicas as an `autoscaling/v1` Scale.
//!
//! A write of a Scale is an update of its object that sets the number of replicas. If the client sends a resource
//! version, it must be the object's. The write also decides who manages the replicas of the object:
//! [`ringwatch_apply::Replicas`] says how.

use async_trait::async_trait;
use http::{Response, StatusCode};
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch_apimachinery::accessor::text;
use ringwatch_apimachinery::path::{get, remove};
use ringwatch_apimachinery::validation::{validate_kube_finalizers, validate_object_meta};
use ringwatch_apimachinery::{Error, FieldError, GroupVersion, NameRule, selector_text};
use ringwatch_apply::{Manager, Replicas};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::store::normalize_sent_metadata;
use ringwatch_registry::{Operation, SubresourceCall};
use ringwatch_registry::{RequestContext, ScalePaths, SelectorForm, Store, UpdatedObject};
use ringwatch_resources::Printer;
use serde_json::{Map, Value, json};

use super::apply::{is_apply, scale_configuration};
use super::get::get_options;
use super::patch::{SentPatch, read_patch};
use super::update::{check_name, check_names, update_options};
use crate::call::Call;
use crate::decode::{ExpectedKind, REVIEW_BYTES_MAX, check_patched};
use crate::encoding::frame::partial_metadata;
use crate::errors::Failure;
use crate::negotiation::{ObjectForm, Output};
use crate::params::{FieldValidation, WriteKind, WriteParams};
use crate::patches::Patch;
use crate::response;

/// The group, version and kind of a Scale.
const SCALE: (&str, &str, &str) = ("autoscaling", "v1", "Scale");

fn scale_version() -> GroupVersion {
    GroupVersion::new(SCALE.0, SCALE.1)
}

/// Returns the kind that the body of a write must have.
fn scale_kind(group_version: &GroupVersion) -> ExpectedKind<'_> {
    ExpectedKind {
        group_version,
        kind: SCALE.2,
        strategy: None,
        custom: false,
    }
}

/// The replicas in the Scale of an object that has none: the smallest number of the type, as kube-apiserver has it, by
/// which a change is known that sets no replicas.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The members of a Scale's metadata.
const METADATA: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
];

/// Answers with the Scale of an object.
///
/// # Errors
/// As a read of the object.
pub(crate) async fn get_scale(call: &Call<'_>) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let object = call
        .store
        .get(call.namespace(), call.name(), get_options(call)?)
        .await
        .map_err(|error| call.fail(error))?;
    let tree = codec::tree(&object).map_err(Failure::internal)?;
    let path = &paths(call)?.spec_replicas;
    if get(&tree, path).is_none() {
        let why = format!("the spec replicas field \".{path}\" does not exist");
        return Err(call.fail(Error::Internal(why)));
    }
    respond(call, output, &object)
}

/// Sets the replicas to those of the Scale in the body.
///
/// # Errors
/// As an update of the object.
pub(crate) async fn update_scale(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let content = call.read_body(body, REVIEW_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Update)?;
    let mut scale = call
        .decode(&content, &scale_version(), SCALE.2, &params)
        .map_err(|failure| undecodable(failure, call.store.resource().is_custom()))?;
    check_name(call, &scale)?;
    normalize_sent_metadata(&call.context, &mut scale);
    write(call, Change::Replace(scale), &params).await
}

/// Returns the failure to decode a Scale. Those of custom resources are decoded by a scheme in which kube-apiserver
/// then looks for the type in vain, so that it tells of that alone.
fn undecodable(failure: Failure, is_custom: bool) -> Failure {
    if !is_custom || !failure.is_bad_request() {
        return failure;
    }
    Failure::bad_request(
        "no kind is registered for the type v1.Scale in scheme \
         \"pkg/apiserver/customresource_handler.go:781\"",
    )
}

/// Patches the Scale of an object.
///
/// # Errors
/// As a patch of the object.
pub(crate) async fn patch_scale(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    if is_apply(call.headers) {
        return apply_scale(call, body).await;
    }
    let (patch, params) = read_patch(call, body).await?;
    write(call, Change::Patch(patch), &params).await
}

/// Applies a configuration of a Scale.
///
/// # Errors
/// As an apply of the object.
async fn apply_scale(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let content = call.read_body(body, REVIEW_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Apply)?;
    if let Some(recording) = &call.context.recording {
        recording.request_patch(&content);
    }
    let scale = scale_configuration(call, &content, &params, scale_kind(&scale_version()))?;
    let force = params.force;
    let change = Change::Apply { scale, force };
    write(call, change, &params).await
}

async fn write(
    call: &Call<'_>,
    change: Change,
    params: &WriteParams,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let resource = call.store.resource();
    let mut scaled = AdmittedScale {
        store: call.store,
        namespace: call.namespace(),
        dry_run: params.dry_run,
        scaled: ScaleUpdate {
            change,
            paths: paths(call)?.clone(),
            resource: resource.qualified_name(),
            version: resource.group_version.to_string(),
            is_custom: resource.is_custom(),
            name: call.name().to_owned(),
            validation: params.field_validation,
        },
    };
    let (object, _) = call
        .store
        .admitted()
        .update(
            &call.context,
            call.namespace(),
            call.name(),
            &mut scaled,
            &update_options(params),
        )
        .await
        .map_err(|error| call.fail(error))?;
    respond(call, output, &object)
}

fn paths<'a>(call: &'a Call<'_>) -> Result<&'a ScalePaths, Failure> {
    let paths = call.store.resource().scale.as_ref();
    paths.ok_or_else(Failure::no_such_resource)
}

fn respond(
    call: &Call<'_>,
    output: Output,
    object: &Object,
) -> Result<Response<ResponseBody>, Failure> {
    let object = codec::tree(object).map_err(Failure::internal)?;
    let scale = scale_of(&object, paths(call)?).map_err(|error| call.fail(error))?;
    if let ObjectForm::Table(form) = output.form {
        let tables = call.tables(form).with_printer(Printer::for_scale());
        let table = tables.value_table(&scale, true)?;
        return response::document(StatusCode::OK, output.format, &table);
    }
    if output.form == ObjectForm::Metadata {
        let metadata = partial_metadata(scale.to_string().as_bytes(), "v1");
        let metadata = metadata.map_err(Failure::internal)?;
        return response::document(StatusCode::OK, output.format, &metadata);
    }
    response::serialized(StatusCode::OK, output.format, &scale)
}

/// The change of a Scale that a request makes.
enum Change {
    Replace(Value),
    Patch(SentPatch),
    /// A server-side apply of this configuration.
    Apply {
        scale: Value,
        force: bool,
    },
}

/// The update of an object by a change of its Scale.
struct ScaleUpdate {
    change: Change,
    paths: ScalePaths,
    resource: String,
    /// The version of the object.
    version: String,
    /// True for the Scale of a custom resource, which is checked as part of its object alone.
    is_custom: bool,
    name: String,
    validation: FieldValidation,
}

impl ScaleUpdate {
    /// Returns the Scale after the change of the one before.
    fn scale(&self, context: &RequestContext, before: &Value) -> Result<Value, Error> {
        let manager = Manager {
            name: &context.field_manager,
            api_version: &scale_version().to_string(),
            subresource: &context.subresource,
            has_status_subresource: false,
            custom: None,
            time: Some(context.clock.wall()),
        };
        let mut scale = match &self.change {
            Change::Apply { scale, force } => {
                return ringwatch_apply::apply(Some(before), scale, &manager, *force);
            }
            Change::Replace(scale) => scale.clone(),
            Change::Patch(patch) => self.patched(context, patch.patch()?, before)?,
        };
        // kube-apiserver's type leaves out a 0, so nobody manages it.
        if get(&scale, "spec.replicas").is_some_and(|it| it.is_null() || *it == 0) {
            drop(remove(&mut scale, "spec.replicas"));
        }
        ringwatch_apply::update(Some(before), &mut scale, &manager);
        Ok(scale)
    }

    fn patched(
        &self,
        context: &RequestContext,
        patch: &Patch,
        before: &Value,
    ) -> Result<Value, Error> {
        let mut scale = patch.apply(before)?;
        if self.is_custom && get(&scale, "apiVersion").is_none_or(|it| it.is_null() || it == "") {
            // The type of a custom resource's Scale has one version, in which it is decoded.
            set(&mut scale, "apiVersion", json!(scale_version().to_string()));
        }
        check_patched(
            &mut scale,
            patch,
            before,
            scale_kind(&scale_version()),
            self.validation,
            context,
        )?;
        Ok(scale)
    }

    /// Returns the Scale of an object before its change, with the managers of the replicas.
    fn before(&self, existing: &Value) -> Result<Value, Error> {
        let mut scale = scale_of(existing, &self.paths)?;
        if self.is_custom && get(existing, &self.paths.spec_replicas).is_none() {
            set(&mut scale, "spec.replicas", json!(NO_REPLICAS));
        }
        self.replicas().manage_scale(existing, &mut scale)?;
        Ok(scale)
    }

    fn replicas(&self) -> Replicas<'_> {
        Replicas {
            api_version: &self.version,
            path: &self.paths.spec_replicas,
            versions: &self.paths.versions,
        }
    }

    /// Returns the existing object with the replicas that a Scale wants.
    fn object(&self, scale: &Value, existing: &Value) -> Result<Value, Error> {
        if self.is_custom && get(scale, "spec.replicas") == Some(&json!(NO_REPLICAS)) {
            let path = &self.paths.spec_replicas;
            let why = format!("the spec replicas field \".{path}\" cannot be empty");
            return Err(Error::BadRequest(why));
        }
        self.check(scale)?;
        self.check_uid(scale, existing)?;
        // What is sent has been decoded by its type.
        let replicas = match get(scale, "spec.replicas") {
            None | Some(Value::Null) => 0,
            Some(wanted) => wanted.as_i64().ok_or(Error::Unprocessable)?,
        };
        let mut object = existing.clone();
        set(&mut object, &self.paths.spec_replicas, json!(replicas));
        // Without a resource version, any version of the object may be overwritten.
        let version = text(scale, "resourceVersion");
        if !version.is_empty() {
            set(&mut object, "metadata.resourceVersion", json!(version));
        }
        self.replicas().manage_object(scale, &mut object)?;
        Ok(object)
    }

    /// Refuses a Scale that a patch has given another UID. That of a whole Scale is a precondition.
    fn check_uid(&self, scale: &Value, existing: &Value) -> Result<(), Error> {
        let (sent, uid) = (text(scale, "uid"), text(existing, "uid"));
        if self.is_custom || sent.is_empty() || sent == uid {
            return Ok(());
        }
        let message =
            format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {uid}");
        let (plural, group) = match self.resource.split_once('.') {
            Some((plural, group)) => (plural, format!(".{group}")),
            None => (self.resource.as_str(), String::new()),
        };
        Err(Error::Conflict {
            resource: format!("{plural}/scale{group}"),
            name: self.name.clone(),
            message,
        })
    }

    /// Refuses a Scale that is not valid. Follows `ValidateScale`, which sees the managed fields of the object whatever
    /// the client sends.
    fn check(&self, scale: &Value) -> Result<(), Error> {
        if self.is_custom {
            return Ok(());
        }
        let mut sent = scale.clone();
        drop(remove(&mut sent, "metadata.managedFields"));
        // Without a namespace it has that of the request.
        let is_placed = !text(&sent, "namespace").is_empty();
        let mut errors = validate_object_meta(&sent, is_placed, NameRule::DnsSubdomain);
        errors.extend(validate_kube_finalizers(&sent));
        let replicas = get(scale, "spec.replicas").unwrap_or(&Value::Null);
        if replicas.as_i64().is_some_and(|it| it < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.replicas", replicas, why));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(Error::Invalid {
            kind: "Scale.autoscaling".to_owned(),
            name: self.name.clone(),
            errors: FieldError::as_told(errors),
        })
    }
}

/// The update of an object by its Scale, once admission has accepted the Scale.
struct AdmittedScale<'a> {
    store: &'a Store,
    namespace: &'a str,
    dry_run: bool,
    scaled: ScaleUpdate,
}

#[async_trait]
impl UpdatedObject for AdmittedScale<'_> {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let scaled = &self.scaled;
        let existing = existing.ok_or_else(|| Error::not_found(&scaled.resource, &scaled.name))?;
        let before = scaled.before(existing)?;
        let mut scale = scaled.scale(context, &before)?;
        if matches!(scaled.change, Change::Patch(_)) {
            let resource = self.store.resource();
            check_names(&scale, resource, self.namespace, &scaled.name)
                .map_err(Error::BadRequest)?;
        }
        self.store
            .admit_other(
                context,
                SubresourceCall {
                    namespace: self.namespace,
                    name: &scaled.name,
                    operation: Operation::Update,
                    old: Some(&before),
                    dry_run: self.dry_run,
                },
                &mut scale,
            )
            .await?;
        scaled.object(&scale, existing)
    }

    fn precondition_uid(&self) -> Option<String> {
        let Change::Replace(scale) = &self.scaled.change else {
            return None;
        };
        let uid = scale.pointer("/metadata/uid")?.as_str()?;
        (!uid.is_empty()).then(|| uid.to_owned())
    }

    /// Returns true: they are those of the Scale.
    fn managed_fields_are_current(&self) -> bool {
        true
    }
}

/// Returns the Scale of an object. Follows `scaleFromCustomResource`.
///
/// # Errors
/// Replicas of a custom resource that are no integers.
fn scale_of(object: &Value, paths: &ScalePaths) -> Result<Value, Error> {
    let mut metadata = Map::new();
    for name in METADATA {
        if let Some(value) = object.get("metadata").and_then(|meta| meta.get(name)) {
            metadata.insert((*name).to_owned(), value.clone());
        }
    }
    let number = |path: &str| match get(object, path) {
        None => Ok(0),
        Some(found) => found.as_i64().ok_or_else(|| {
            Error::Internal(format!(
                ".{path} accessor error: {found} is not of the type int64"
            ))
        }),
    };
    let mut spec = Map::new();
    let wanted = number(&paths.spec_replicas)?;
    if wanted != 0 {
        spec.insert("replicas".to_owned(), json!(wanted));
    }
    let mut status = json!({"replicas": number(&paths.status_replicas)?});
    let selector = paths.selector.as_deref().and_then(|path| get(object, path));
    let selector = selector.map(|selector| selector_in_words(selector, paths.selector_form));
    if let Some(text) = selector.filter(|text| !text.is_empty()) {
        status["selector"] = Value::String(text);
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec,
        "status": status}),
    )
}

/// Returns a selector as text.
fn selector_in_words(selector: &Value, form: SelectorForm) -> String {
    match form {
        SelectorForm::Text => selector.as_str().unwrap_or_default().to_owned(),
        SelectorForm::Map => selector_text::labels(selector),
        SelectorForm::LabelSelector => selector_text::label_selector(selector),
    }
}

/// Sets the value at a dotted path; parents that are missing or not maps are replaced by maps.
fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for name in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patches::Syntax;

    fn paths() -> ScalePaths {
        ScalePaths {
            spec_replicas: "spec.replicas".to_owned(),
            versions: [("apps/v1".to_owned(), Some("spec.replicas".to_owned()))].into(),
            status_replicas: "status.replicas".to_owned(),
            selector: Some("spec.selector".to_owned()),
            selector_form: SelectorForm::LabelSelector,
        }
    }

    fn patch(content: Value) -> Change {
        let patch = Patch::read(Syntax::Merge, content, Vec::new(), FieldValidation::Strict);
        Change::Patch(patch.expect("a patch").into())
    }

    /// Returns a built-in or custom object after a change of its Scale.
    fn scaled(existing: &Value, change: Change, is_custom: bool) -> Result<Value, Error> {
        let scaled = ScaleUpdate {
            change,
            paths: paths(),
            resource: "deployments.apps".to_owned(),
            version: "apps/v1".to_owned(),
            is_custom,
            name: "d".to_owned(),
            validation: FieldValidation::Strict,
        };
        let context = RequestContext::new(
            ringwatch_apimachinery::User::default(),
            String::new(),
            ringwatch::clock::Clock::real(),
        );
        let scale = scaled.scale(&context, &scaled.before(existing)?)?;
        scaled.object(&scale, existing)
    }

    #[test]
    fn a_scale_shows_replicas_and_selector() {
        let object = json!({"metadata": {"name": "d", "uid": "u", "labels": {"a": "b"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"},
                "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}}});
        assert_eq!(
            scale_of(&object, &paths()).expect("a Scale"),
            json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {"name": "d", "uid": "u"}, "spec": {"replicas": 2},
                "status": {"replicas": 0, "selector": "a in (x,y),app=d"}})
        );
    }

    #[test]
    fn a_patched_scale_sets_the_number_alone() {
        let existing = json!({"metadata": {"name": "d", "resourceVersion": "5"},
            "spec": {"replicas": 2, "x": 1}});
        let scaled_up = scaled(&existing, patch(json!({"spec": {"replicas": 3}})), false);
        let scaled_up = scaled_up.expect("fine");
        assert_eq!(scaled_up["spec"], json!({"replicas": 3, "x": 1}));
        assert_eq!(scaled_up["metadata"]["resourceVersion"], "5");
    }

    #[test]
    fn a_patch_for_another_object_is_refused() {
        let existing = json!({"metadata": {"name": "d", "namespace": "n", "uid": "u"}});
        let change = || patch(json!({"metadata": {"uid": "x"}, "spec": {"replicas": 3}}));
        let refused = scaled(&existing, change(), false).expect_err("another object");
        assert_eq!(
            refused.to_string(),
            "Operation cannot be fulfilled on deployments/scale.apps \"d\": Precondition failed: \
             UID in precondition: x, UID in object meta: u"
        );
        scaled(&existing, change(), true).expect("nobody asks");
    }

    #[test]
    fn who_scales_manages_the_replicas() {
        let entry = json!({"manager": "m", "operation": "Update", "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1", "time": "2025-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {"f:paused": {}, "f:replicas": {}}}});
        let existing = json!({"metadata": {"name": "d", "namespace": "n", "managedFields": [entry]},
            "spec": {"replicas": 2}});
        let change = patch(json!({"spec": {"replicas": 3}}));
        let object = scaled(&existing, change, false).expect("an object");
        let entries = &object["metadata"]["managedFields"];
        assert_eq!(entries[0]["manager"], "unknown");
        assert_eq!(entries[0]["time"], Value::Null);
        assert_eq!(
            entries[0]["fieldsV1"],
            json!({"f:spec": {"f:replicas": {}}})
        );
        assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    }

    #[test]
    fn nothing_is_scaled_beside_managers_that_cannot_be_read() {
        let existing = json!({"metadata": {"name": "d", "managedFields": [{"manager": "m"}]},
            "spec": {"replicas": 2}});
        let change = patch(json!({"spec": {"replicas": 3}}));
        let error = scaled(&existing, change, false).expect_err("no managers");
        let why = "operation must be `Apply` or `Update`";
        assert!(error.to_string().contains(why), "{error}");
    }

    #[test]
    fn the_scale_of_a_built_in_object_is_validated() {
        let existing = json!({"metadata": {"name": "d", "namespace": "n"}});
        for (metadata, replicas, field) in [
            (json!({"labels": {"a": "/"}}), 1, "metadata.labels"),
            (json!({"generateName": "."}), 1, "metadata.generateName"),
            (json!({"finalizers": ["a"]}), 1, "metadata.finalizers[0]"),
            (json!({}), NO_REPLICAS, "spec.replicas"),
            (
                json!({"managedFields": [{}], "resourceVersion": ""}),
                -1,
                "spec.replicas",
            ),
        ] {
            let mut scale = json!({"metadata": metadata, "spec": {"replicas": replicas}});
            scale["metadata"]["name"] = "d".into();
            scale["metadata"]["namespace"] = "n".into();
            let refused = scaled(&existing, Change::Replace(scale.clone()), false);
            match refused.expect_err(field) {
                Error::Invalid { kind, errors, .. } => {
                    assert_eq!((&*kind, &*errors[0].field), ("Scale.autoscaling", field));
                }
                other => panic!("{other}"),
            }
            if replicas == NO_REPLICAS {
                continue;
            }
            // That of a custom one shows its number to the validation of the object.
            let custom = scaled(&existing, Change::Replace(scale), true).expect("an object");
            assert_eq!(custom["spec"]["replicas"], replicas);
            assert_eq!(custom["metadata"], existing["metadata"]);
        }
    }

    #[test]
    fn custom_resources_tell_nothing_of_a_scale_that_is_none() {
        let told = |is_custom| {
            let failure = undecodable(Failure::bad_request("wrong"), is_custom);
            failure.status().message.clone()
        };
        assert_eq!(told(false), "wrong");
        assert!(told(true).starts_with("no kind is registered for the type v1.Scale in scheme"));
        let other = undecodable(Failure::method_not_allowed(), true);
        assert_eq!(other.code(), 405);
    }

    #[test]
    fn a_change_of_an_object_without_replicas_sets_them() {
        let existing = json!({"metadata": {"name": "d", "namespace": "n"}, "spec": {}});
        let change = |content| scaled(&existing, patch(content), true);
        let set = change(json!({"spec": {"replicas": 0}})).expect("replicas");
        assert_eq!(set["spec"], json!({"replicas": 0}));
        let error = change(json!({"metadata": {"name": "d"}})).expect_err("none");
        let why = "the spec replicas field \".spec.replicas\" cannot be empty";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn replicas_are_integers() {
        for wrong in [json!("1"), json!(1.5), Value::Null, json!({})] {
            let object = json!({"spec": {"replicas": wrong}});
            let error = scale_of(&object, &paths()).expect_err("no integer");
            let found = error.to_string();
            assert!(found.contains(".spec.replicas accessor error"), "{found}");
        }
    }
}
