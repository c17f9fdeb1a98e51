//! Checks of what a write gives to somebody, besides whether its user may write the object at all.
//!
//! kube-apiserver has them in the strategies of the kinds: they ask the authorizer for rights that the object makes use
//! of.

pub(crate) mod device_claims;
pub(crate) mod escalation;
pub(crate) mod policy_parameters;
