//! The options of create, update and delete requests that the registry uses.

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

/// The options of a create request.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// True to run defaulting, admission and validation but to store nothing.
    pub dry_run: bool,
}

/// Options of an update, be it by PUT, patch or server-side apply.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// True to run defaulting, admission and validation but to store nothing.
    pub dry_run: bool,
    /// True to create the object if there is none, even if the strategy forbids that, as server-side apply does.
    pub force_allow_create: bool,
}

/// Options of a delete: `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// True to run admission and all checks but to delete nothing.
    pub dry_run: bool,
    /// Seconds until the object is deleted; `None` for the type's own grace period.
    pub grace_period_seconds: Option<i64>,
    /// The uid that the object must have.
    pub precondition_uid: Option<String>,
    /// The resource version that the object must have.
    pub precondition_resource_version: Option<String>,
    /// True if dependents are kept, false if they are deleted: the deprecated form of `propagation_policy`.
    pub orphan_dependents: Option<bool>,
    /// The treatment of dependents; `None` for the type's default.
    pub propagation_policy: Option<PropagationPolicy>,
    /// True to delete the object if and only if its stored data cannot be decoded, without admission, finalizers or
    /// preconditions (KEP-3926).
    pub ignore_store_read_error: bool,
}

/// The name of [`DeleteOptions::ignore_store_read_error`] in the API.
pub const IGNORE_STORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// The treatment of a deleted object's dependents: `metav1.DeletionPropagation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// Dependents are kept, without their owner reference.
    Orphan,
    /// The garbage collector deletes dependents after the object.
    Background,
    /// The garbage collector deletes dependents before the object.
    Foreground,
}

impl PropagationPolicy {
    /// Parses the value of `propagationPolicy` in a client's options.
    ///
    /// # Errors
    /// The field's error if the value is no policy.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        match text {
            "Orphan" => Ok(Self::Orphan),
            "Background" => Ok(Self::Background),
            "Foreground" => Ok(Self::Foreground),
            _ => Err(FieldError::new(
                FieldErrorKind::NotSupported,
                "propagationPolicy",
                format!(
                    r#"{text:?}: supported values: "Foreground", "Background", "Orphan", "nil""#
                ),
            )),
        }
    }

    /// Returns the policy's name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// Returns the error about options that tell in two ways what becomes of an object's dependents.
#[must_use]
pub fn orphaned_twice(policy: &str) -> FieldError {
    FieldError::invalid(
        "propagationPolicy",
        &policy.into(),
        "orphanDependents and deletionPropagation cannot be both set",
    )
}

impl DeleteOptions {
    /// Returns the options as the `DeleteOptions` object that admission sees.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                options[name] = value;
            }
        };
        put(
            "gracePeriodSeconds",
            self.grace_period_seconds.map(Value::from),
        );
        put("orphanDependents", self.orphan_dependents.map(Value::from));
        let policy = self.propagation_policy.map(PropagationPolicy::name);
        put("propagationPolicy", policy.map(Value::from));
        let mut preconditions = json!({});
        for (name, value) in [
            ("uid", &self.precondition_uid),
            ("resourceVersion", &self.precondition_resource_version),
        ] {
            if let Some(value) = value {
                preconditions[name] = value.as_str().into();
            }
        }
        if preconditions != json!({}) {
            options["preconditions"] = preconditions;
        }
        options
    }

    /// Validates the options and returns the errors of their fields.
    #[must_use]
    pub fn validate(&self) -> Vec<FieldError> {
        let mut errors = match (self.orphan_dependents, self.propagation_policy) {
            (Some(_), Some(policy)) => vec![orphaned_twice(policy.name())],
            _ => Vec::new(),
        };
        errors.extend(self.excluded_by_ignored_errors());
        errors
    }

    /// Returns an error for each option that cannot be combined with `ignore_store_read_error`, if that is set.
    pub fn excluded_by_ignored_errors(&self) -> impl Iterator<Item = FieldError> {
        let preconditions =
            self.precondition_uid.is_some() || self.precondition_resource_version.is_some();
        let set = [
            ("dryRun", self.dry_run),
            ("propagationPolicy", self.propagation_policy.is_some()),
            ("orphanDependents", self.orphan_dependents.is_some()),
            ("gracePeriodSeconds", self.grace_period_seconds.is_some()),
            ("preconditions", preconditions),
        ];
        let set = set.into_iter().filter(|(_, set)| *set);
        set.filter(|_| self.ignore_store_read_error)
            .map(|(name, _)| {
                let why = format!("cannot be set together with .{name}");
                FieldError::invalid(IGNORE_STORE_READ_ERROR, &true.into(), why)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_policies_are_refused() {
        for policy in [
            PropagationPolicy::Orphan,
            PropagationPolicy::Background,
            PropagationPolicy::Foreground,
        ] {
            assert_eq!(PropagationPolicy::parse(policy.name()), Ok(policy));
        }
        let error = PropagationPolicy::parse("Nope").expect_err("unknown");
        assert_eq!(
            error.message(),
            r#"Unsupported value: "Nope": supported values: "Foreground", "Background", "Orphan", "nil""#
        );
    }

    #[test]
    fn what_cannot_be_read_is_deleted_without_conditions() {
        let mut options = DeleteOptions {
            ignore_store_read_error: true,
            ..DeleteOptions::default()
        };
        assert_eq!(options.validate(), []);
        options.dry_run = true;
        options.grace_period_seconds = Some(0);
        options.precondition_uid = Some("u".to_owned());
        let messages: Vec<String> = options.validate().iter().map(FieldError::message).collect();
        let expected = ["dryRun", "gracePeriodSeconds", "preconditions"];
        assert_eq!(
            messages,
            expected
                .map(|name| format!("Invalid value: true: cannot be set together with .{name}"))
        );
        options.ignore_store_read_error = false;
        assert_eq!(options.validate(), []);
    }

    #[test]
    fn the_old_and_the_new_way_exclude_each_other() {
        let mut options = DeleteOptions {
            orphan_dependents: Some(false),
            ..DeleteOptions::default()
        };
        assert_eq!(options.validate(), []);
        options.propagation_policy = Some(PropagationPolicy::Orphan);
        assert_eq!(
            options.validate()[0].message(),
            r#"Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#
        );
    }
}
