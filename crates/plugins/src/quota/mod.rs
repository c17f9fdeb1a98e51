//! How much of what limits and quotas count an object uses.

mod counted;
mod scope;

pub(super) use counted::Counted;

pub(super) use scope::Scope;
