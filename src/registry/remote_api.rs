//! An APIService that names a service: an API that another server serves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::GroupVersion;

/// The port of a service that does not say which.
const PORT_DEFAULT: u16 = 443;

/// The group that says which APIs there are. It is always served here.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// An API that another server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteApi {
    /// The name of the APIService.
    pub name: String,
    /// What is served.
    pub group_version: GroupVersion,
    /// Where its group comes in discovery: higher ones come first.
    pub group_priority: i64,
    /// Where its version comes within the group.
    pub version_priority: i64,
    /// Who serves it.
    pub service: ServiceReference,
    /// Authorities in PEM that vouch for that server; `None` for those of the system.
    pub ca_bundle: Option<Vec<u8>>,
    /// Whether the server need not prove anything.
    pub insecure: bool,
    /// Whether it was found to be available.
    pub available: bool,
}

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReference {
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub name: String,
    /// The port.
    pub port: u16,
}

impl RemoteApi {
    /// Reads an APIService; `None` if this server serves what it is about.
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
        // What is not base64 vouches for nobody.
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

    /// Whether requests to both go to the same place in the same way.
    #[must_use]
    pub fn is_reached_like(&self, other: &Self) -> bool {
        let changed = Self {
            available: self.available,
            ..other.clone()
        };
        *self == changed
    }

    /// Where the documents of the API are.
    #[must_use]
    pub fn path(&self) -> String {
        if self.group_version.group.is_empty() {
            format!("/api/{}", self.group_version.version)
        } else {
            format!("/apis/{}", self.group_version)
        }
    }

    /// Whom the server's certificate must be for.
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
