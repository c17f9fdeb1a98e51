//! The amounts that an object uses of what quotas count.

mod counted;
mod scope;

pub(super) use counted::Counted;

pub(super) use scope::Scope;
