//! Computes the usage of an object, as quotas count it.

mod counted;
mod scope;

pub(super) use counted::CountedType;

pub(super) use scope::QuotaScope;
