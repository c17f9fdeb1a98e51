//! How much of what limits and quotas count an object uses.

mod amounts;
mod counted;
mod pod_usage;
mod scope;

pub(super) use amounts::Amounts;
pub(super) use counted::Counted;
pub(super) use pod_usage::{Which, amounts_of_containers, container_amounts, pod_amounts};
pub(super) use scope::Scope;
