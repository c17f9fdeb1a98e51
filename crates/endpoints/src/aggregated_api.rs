//! An APIService that names a service: an API that another server serves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch_apimachinery::GroupVersion;
use serde_json::Value;

/// Port of an APIService's `spec.service` that names none.
const PORT_DEFAULT: u16 = 443;

/// The group of APIServices, which this server always serves itself.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// One group version that another server serves, as an APIService describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregatedApi {
    /// The name of the APIService.
    pub name: String,
    /// The group and version that the other server serves.
    pub group_version: GroupVersion,
    /// The priority of the group in discovery: higher ones come first.
    pub group_priority: i64,
    /// The priority of the version within the group: higher ones come first.
    pub version_priority: i64,
    /// The service in front of the other server.
    pub service: ServiceReference,
    /// Certificate authorities in PEM that verify the server's certificate; `None` for those of the system.
    pub ca_bundle: Option<Vec<u8>>,
    /// True if the server's certificate is not verified: `insecureSkipTLSVerify`.
    pub insecure: bool,
    /// True if the condition `Available` of the APIService is `True`.
    pub available: bool,
}

/// A reference to one port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReference {
    /// The namespace of the service.
    pub namespace: String,
    /// The name of the service.
    pub name: String,
    /// The number of the service's port.
    pub port: u16,
}

impl AggregatedApi {
    /// Reads an APIService; returns `None` if this server serves its API itself.
    #[must_use]
    pub fn read(object: &Value) -> Option<Self> {
        let spec = object.get("spec")?;
        let service = spec.get("service").filter(|it| it.is_object())?;
        let text = |of: &Value, name: &str| {
            let text = of.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let number = |name: &str| spec.get(name).and_then(Value::as_i64).unwrap_or_default();
        let group_version = GroupVersion {
            group: text(spec, "group"),
            version: text(spec, "version"),
        };
        let port = service.get("port").and_then(Value::as_u64);
        // A bundle that is not base64 counts as absent.
        let bundle = STANDARD.decode(text(spec, "caBundle")).unwrap_or_default();
        (group_version.group != OWN_GROUP).then(|| Self {
            name: text(&object["metadata"], "name"),
            group_version,
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            service: ServiceReference {
                namespace: text(service, "namespace"),
                name: text(service, "name"),
                port: port
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(PORT_DEFAULT),
            },
            ca_bundle: (!bundle.is_empty()).then_some(bundle),
            insecure: spec["insecureSkipTLSVerify"] == true,
            available: is_available(object),
        })
    }

    /// Returns true if the two differ in nothing but `available`, so that connections to one serve the other.
    #[must_use]
    pub fn is_reached_like(&self, other: &Self) -> bool {
        let changed = Self {
            available: self.available,
            ..other.clone()
        };
        *self == changed
    }

    /// Returns the path of the group version's discovery document: `/apis/GROUP/VERSION`, or `/api/VERSION` for the
    /// core group.
    #[must_use]
    pub fn path(&self) -> String {
        if self.group_version.group.is_empty() {
            format!("/api/{}", self.group_version.version)
        } else {
            format!("/apis/{}", self.group_version)
        }
    }

    /// Returns the DNS name that the server's certificate must be for: `NAME.NAMESPACE.svc`.
    #[must_use]
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.service.name, self.service.namespace)
    }
}

fn is_available(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Available" && it["status"] == "True")
}
