//! The options of writes.

use serde_json::{Value, json};

use super::{FieldError, FieldErrorKind};

/// How to create.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Do everything but store.
    pub dry_run: bool,
}

/// How to update.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// Create the object if there is none, whatever the strategy says (server-side apply).
    pub force_allow_create: bool,
}

/// How to delete: metav1.DeleteOptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Do everything but delete.
    pub dry_run: bool,
    /// How long to wait; `None` for the type's own period.
    pub grace_period_seconds: Option<i64>,
    /// The uid that the object must have.
    pub precondition_uid: Option<String>,
    /// The resource version that the object must have.
    pub precondition_resource_version: Option<String>,
    /// The old way to say that dependents are kept.
    pub orphan_dependents: Option<bool>,
    /// What happens to dependents.
    pub propagation_policy: Option<PropagationPolicy>,
    /// Delete the object only if what is stored of it cannot be read, without a look at anything else
    /// (KEP-3926).
    pub ignore_store_read_error: bool,
}

/// What [`DeleteOptions::ignore_store_read_error`] is called in the API.
pub const IGNORE_STORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// They are kept.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}

impl PropagationPolicy {
    /// Reads what a client sent.
    ///
    /// # Errors
    /// What is wrong with the options' field.
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

    /// Its name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

impl DeleteOptions {
    /// The options as the object that admission sees.
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

    /// What is wrong with the options.
    #[must_use]
    pub fn validate(&self) -> Vec<FieldError> {
        let mut errors = match (self.orphan_dependents, self.propagation_policy) {
            (Some(_), Some(policy)) => vec![FieldError::invalid(
                "propagationPolicy",
                &policy.name().into(),
                "orphanDependents and deletionPropagation cannot be both set",
            )],
            _ => Vec::new(),
        };
        if self.ignore_store_read_error {
            errors.extend(self.excluded_by_ignored_errors());
        }
        errors
    }

    /// What makes no sense of an object that cannot be read.
    fn excluded_by_ignored_errors(&self) -> impl Iterator<Item = FieldError> {
        let preconditions =
            self.precondition_uid.is_some() || self.precondition_resource_version.is_some();
        let set = [
            ("dryRun", self.dry_run),
            ("propagationPolicy", self.propagation_policy.is_some()),
            ("orphanDependents", self.orphan_dependents.is_some()),
            ("gracePeriodSeconds", self.grace_period_seconds.is_some()),
            ("preconditions", preconditions),
        ];
        set.into_iter().filter(|(_, set)| *set).map(|(name, _)| {
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
