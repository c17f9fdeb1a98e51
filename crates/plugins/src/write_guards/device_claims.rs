//! Checks of claims to devices that the authorizer or the namespace has to allow, as `pkg/registry/resource/utils.go`
//! of Kubernetes 1.36 says.
//!
//! Admin access reaches devices that others use, so the namespace needs a label for it. The status of a claim tells
//! nodes which devices to hand out: allocations need `resourceclaims/binding`, and what a driver says of its devices
//! needs `resourceclaims/driver` with the name of the driver.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::storage::{GetOptions, Interface};
use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_apimachinery::{Error, FieldError, User, service_account};
use ringwatch_authorization::Attributes;
use ringwatch_registry::WriteGuard;
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

const GROUP: &str = "resource.k8s.io";

/// The label of namespaces whose claims may have admin access.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Tells the node of a pod in the extra attributes of its service account.
const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";

/// Checks claims and their templates.
#[derive(Debug)]
pub struct DeviceClaims {
    /// The storage of namespaces.
    pub namespaces: Arc<dyn Interface>,
}

#[async_trait]
impl WriteGuard for DeviceClaims {
    async fn wrong_fields(
        &self,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Vec<FieldError>, Error> {
        match (request.resource.plural.as_str(), request.subresource()) {
            ("resourceclaims", "status") => self.check_status(request, object).await,
            // What is asked for never changes afterwards.
            ("resourceclaims", "") if request.operation == Operation::Create => {
                self.check_requests(request, object, "spec.devices.requests")
                    .await
            }
            ("resourceclaimtemplates", "") if request.operation == Operation::Create => {
                let path = "spec.spec.devices.requests";
                self.check_requests(request, object, path).await
            }
            _ => Ok(Vec::new()),
        }
    }
}

impl DeviceClaims {
    async fn check_requests(
        &self,
        request: &Request<'_>,
        object: &Value,
        path: &str,
    ) -> Result<Vec<FieldError>, Error> {
        let mut requests = list(object, path).iter();
        let wants = |it: &Value| it["exactly"]["adminAccess"] == true;
        match requests.position(wants) {
            Some(place) => {
                let field = format!("spec.devices.requests[{place}].adminAccess");
                self.check_label(request, field).await
            }
            None => Ok(Vec::new()),
        }
    }

    async fn check_status(
        &self,
        request: &Request<'_>,
        claim: &Value,
    ) -> Result<Vec<FieldError>, Error> {
        const RESULTS: &str = "status.allocation.devices.results";
        let old = request.old.unwrap_or(&Value::Null);
        let granted = |claim: &Value| {
            let mut results = list(claim, RESULTS).iter();
            results.position(|it| it["adminAccess"] == true)
        };
        let mut errors = match granted(claim) {
            Some(place) if granted(old).is_none() => {
                let field = format!("{RESULTS}[{place}].adminAccess");
                self.check_label(request, field).await?
            }
            _ => Vec::new(),
        };
        let changes = |path: &str| get(claim, path) != get(old, path);
        if (changes("status.allocation") || changes("status.reservedFor"))
            && let Err(why) = check_binding(request).await
        {
            errors.push(FieldError::forbidden("status.allocation", why));
        }
        // When a claim is given back, what drivers say of it goes as well.
        if get(claim, "status.allocation").is_some_and(|it| !it.is_null()) {
            let verbs = driver_verbs(request, is_on_node_of(&request.context.user, claim));
            for driver in changed_drivers(claim, old) {
                if let Err(why) = check_driver(request, &driver, &verbs).await {
                    errors.push(FieldError::forbidden("status.devices", why));
                }
            }
        }
        Ok(errors)
    }

    /// Returns the error of a field for which the namespace has to allow admin access, if it does not.
    async fn check_label(
        &self,
        request: &Request<'_>,
        field: String,
    ) -> Result<Vec<FieldError>, Error> {
        let key = format!("/namespaces/{}", request.namespace);
        let namespace = self.namespaces.get(&key, GetOptions::default()).await;
        let namespace = namespace.map_err(Error::Storage)?;
        if namespace.attributes().labels().get(ADMIN_LABEL) == Some("true") {
            return Ok(Vec::new());
        }
        let why = format!(
            "admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
        );
        Ok(vec![FieldError::forbidden(field, why)])
    }
}

/// Checks that the user may allocate claims, in all namespaces. Follows `AuthorizedForBinding`.
async fn check_binding(request: &Request<'_>) -> Result<(), String> {
    let verb = request.context.verb;
    let attributes = Attributes {
        subresource: "binding",
        ..attributes(request, verb)
    };
    let checked = request.context.check(&attributes).await;
    checked.map_err(|error| {
        format!(
            "changing status.allocation or status.reservedFor requires \
             resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {error}"
        )
    })
}

/// Checks that the user may write the status of a driver's devices by one of these verbs. Follows
/// `AuthorizedForDeviceStatus`.
async fn check_driver(request: &Request<'_>, driver: &str, verbs: &[String]) -> Result<(), String> {
    let mut first = None;
    for verb in verbs {
        let attributes = Attributes {
            subresource: "driver",
            namespace: request.namespace,
            name: driver,
            ..attributes(request, verb)
        };
        match request.context.check(&attributes).await {
            Ok(()) => return Ok(()),
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    let refusal = first.map(|error| error.to_string()).unwrap_or_default();
    Err(format!(
        "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {refusal}",
        verbs.join(" ")
    ))
}

fn attributes<'a>(request: &'a Request<'_>, verb: &'a str) -> Attributes<'a> {
    let user = &request.context.user;
    Attributes {
        version: &request.resource.group_version.version,
        ..Attributes::of_resource(user, verb, GROUP, "resourceclaims")
    }
}

/// Returns the verbs of which one is needed to tell of a driver's devices: more of them on the node where they are.
fn driver_verbs(request: &Request<'_>, is_near: bool) -> Vec<String> {
    let near: &[&str] = if is_near { &["associated-node"] } else { &[] };
    let prefixes = near.iter().chain(&["arbitrary-node"]);
    let verb = request.context.verb;
    prefixes.map(|prefix| format!("{prefix}:{verb}")).collect()
}

/// Tells the devices of a status apart: driver, pool, device and share.
type DeviceKey<'a> = [&'a str; 4];

fn device_key(device: &Value) -> DeviceKey<'_> {
    ["driver", "pool", "device", "shareID"].map(|name| text(device, name))
}

/// Returns the drivers of which something was added, changed or taken away.
fn changed_drivers(claim: &Value, old: &Value) -> BTreeSet<String> {
    let before = list(old, "status.devices").iter();
    let mut before: HashMap<_, _> = before.map(|it| (device_key(it), it)).collect();
    let now = list(claim, "status.devices").iter();
    let changed = now.filter(|it| before.remove(&device_key(it)) != Some(*it));
    let mut drivers: BTreeSet<String> = changed.map(|it| text(it, "driver").to_owned()).collect();
    drivers.extend(before.keys().map(|key| key[0].to_owned()));
    drivers
}

/// Returns true if the user is the service account of a pod on the one node for which the claim is allocated.
fn is_on_node_of(user: &User, claim: &Value) -> bool {
    let terms = list(claim, "status.allocation.nodeSelector.nodeSelectorTerms");
    let [term] = terms else { return false };
    let [field] = list(term, "matchFields") else {
        return false;
    };
    let is_name = text(field, "key") == "metadata.name" && text(field, "operator") == "In";
    let [node] = list(field, "values") else {
        return false;
    };
    let own = user.extra.get(NODE_NAME_KEY).map_or(&[][..], Vec::as_slice);
    list(term, "matchExpressions").is_empty()
        && is_name
        && service_account(&user.name).is_some()
        && matches!(own, [own] if Some(own.as_str()) == node.as_str())
}
