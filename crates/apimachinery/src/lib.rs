//! Types and rules that every Kubernetes API shares: metadata, group versions, quantities, users, errors of fields and
//! requests, and validation of names and labels.
//!
//! Here belongs a rule that is known to all kinds and to none in particular, as in `k8s.io/apimachinery` of Go. Stores
//! and strategies do not, which are in `ringwatch-registry`, nor does anything of one kind, which is in
//! `ringwatch-resources`.

pub mod accessor;
pub mod bounds;
pub mod conditions;
pub mod duration;
pub mod error;
pub mod generation;
pub mod go_address;
pub mod go_json;
pub mod go_text;
pub mod go_url;
pub mod go_values;
mod group_version;
pub mod json_patch;
pub mod names;
mod network;
pub mod numbers;
pub mod path;
pub mod quantity;
mod requester;
pub mod selector_text;
pub mod upgrade;
mod user;
pub mod validation;
mod version_order;
pub mod yaml;

pub use self::error::{Error, FieldError, FieldErrorKind, PolicyDenial, PolicyKind};
pub use self::group_version::GroupVersion;
pub use self::network::Network;
pub use self::requester::{Lane, Requester};
pub use self::user::{SERVICE_ACCOUNT_PREFIX, User, service_account, valid_service_account};
pub use self::validation::formats::NameRule;
pub use self::version_order::version_order;
