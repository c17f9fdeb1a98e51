//! Checks of writes that grant permissions or access, in addition to the permission to write the object.
//!
//! kube-apiserver has them in the strategies of the kinds: they ask the authorizer for rights that the object makes use
//! of.

pub(crate) mod device_claims;
pub(crate) mod escalation;
pub(crate) mod policy_parameters;
