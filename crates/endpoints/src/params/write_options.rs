//! The parameters of writes: metav1.CreateOptions, UpdateOptions and PatchOptions.

use ringwatch_apimachinery::go_text::{is_printed, quoted};
use ringwatch_apimachinery::validation::{FIELD_MANAGER_BYTES_MAX, validate_field_manager};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use ringwatch_registry::Verb;
use serde_json::{Value, json};

use super::query::Query;
use crate::errors::Failure;

/// The query parameters of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteParams {
    /// True if nothing is to be stored: `dryRun=All`.
    pub(crate) dry_run: bool,
    /// The treatment of unknown and duplicate fields.
    pub(crate) field_validation: FieldValidation,
    /// True if an apply takes fields from other managers.
    pub(crate) force: bool,
}

/// The treatment of unknown and duplicate fields: `fieldValidation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Removes them silently.
    Ignore,
    /// Removes them, and sends a warning for each.
    #[default]
    Warn,
    /// Refuses the request with 400.
    Strict,
}

/// The kind of the options object that a write has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// CreateOptions, of a POST.
    Create,
    /// UpdateOptions, of a PUT.
    Update,
    /// PatchOptions of any patch but an apply.
    Patch,
    /// PatchOptions of an apply, which must name its manager.
    Apply,
}

impl WriteParams {
    /// Reads the parameters of a write.
    ///
    /// # Errors
    /// 422 for values that are not allowed.
    pub(crate) fn read(query: &Query, kind: WriteKind) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let manager = query.first("fieldManager");
        let force = query.switch("force");
        if kind == WriteKind::Apply && manager.is_empty() {
            errors.push(FieldError::new(
                FieldErrorKind::Required,
                "fieldManager",
                "is required for apply patch",
            ));
        }
        if kind == WriteKind::Patch && force.is_some() {
            errors.push(FieldError::forbidden(
                "force",
                "may not be specified for non-apply patch",
            ));
        }
        errors.extend(validate_field_manager(manager, "fieldManager"));
        let dry_run = read_dry_run(&query.all("dryRun"), &mut errors);
        let field_validation = read_field_validation(query.first("fieldValidation"), &mut errors);
        if errors.is_empty() {
            Ok(Self {
                dry_run,
                field_validation,
                force: force.unwrap_or(false),
            })
        } else {
            Err(Failure::invalid_options(kind.name(), errors))
        }
    }
}

impl WriteKind {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

/// Returns the options object of a write that admission sees; `None` for other requests.
pub(crate) fn write_options(verb: Option<Verb>, query: &Query) -> Option<Value> {
    let kind = match verb? {
        Verb::Create => WriteKind::Create,
        Verb::Update => WriteKind::Update,
        Verb::Patch => WriteKind::Patch,
        _ => return None,
    };
    let mut options = json!({"kind": kind.name(), "apiVersion": "meta.k8s.io/v1"});
    if query.has("dryRun") {
        options["dryRun"] = query.all("dryRun").into();
    }
    for name in ["fieldManager", "fieldValidation"] {
        let said = query.first(name);
        if !said.is_empty() {
            options[name] = said.into();
        }
    }
    if let Some(force) = query.switch("force") {
        options["force"] = force.into();
    }
    Some(options)
}

/// Returns the name under which fields are managed: the one that is given, or the start of the user agent.
pub(crate) fn manager_name(said: &str, user_agent: &str) -> String {
    if !said.is_empty() {
        return said.to_owned();
    }
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for letter in program.chars().filter(|letter| is_printed(*letter)) {
        if name.len() + letter.len_utf8() > FIELD_MANAGER_BYTES_MAX {
            break;
        }
        name.push(letter);
    }
    name
}

/// Reads the values of `dryRun`, of which only `All` exists.
pub(crate) fn read_dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| value != "All") {
        let shown = serde_json::to_string(values).unwrap_or_default();
        errors.push(FieldError::new(
            FieldErrorKind::NotSupported,
            "dryRun",
            format!("{shown}: supported values: \"All\""),
        ));
    }
    !values.is_empty()
}

fn read_field_validation(value: &str, errors: &mut Vec<FieldError>) -> FieldValidation {
    match value {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            errors.push(FieldError::new(
                FieldErrorKind::NotSupported,
                "fieldValidation",
                format!(
                    "{}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
                    quoted(other)
                ),
            ));
            FieldValidation::Warn
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manager_comes_from_the_user_agent() {
        assert_eq!(manager_name("", "kubectl/v1.33.0 (linux/amd64)"), "kubectl");
        assert_eq!(manager_name("me", "kubectl/v1.33.0"), "me");
        assert_eq!(manager_name("", &"x".repeat(200)).len(), 128);
    }

    #[test]
    fn bad_values_are_told_together() {
        let query = Query::parse("dryRun=Some&fieldValidation=Maybe&fieldManager=a%07");
        let failure = WriteParams::read(&query, WriteKind::Create).expect_err("invalid");
        let details = failure.status().details.clone().expect("details");
        assert_eq!(details.kind, "CreateOptions");
        assert_eq!(details.causes.len(), 3);
        assert!(failure.status().message.contains("U+0007 (at position 1)"));
    }

    #[test]
    fn an_empty_dry_run_is_none_that_there_is() {
        let query = Query::parse("dryRun=&dryRun=All");
        let failure = WriteParams::read(&query, WriteKind::Patch).expect_err("invalid");
        assert!(
            failure
                .status()
                .message
                .ends_with(r#"dryRun: Unsupported value: ["","All"]: supported values: "All""#)
        );
    }

    #[test]
    fn apply_needs_a_manager_and_patch_no_force() {
        let query = Query::parse("force=true");
        assert!(WriteParams::read(&query, WriteKind::Patch).is_err());
        assert!(WriteParams::read(&query, WriteKind::Apply).is_err());
        let query = Query::parse("force=true&fieldManager=me");
        assert!(
            WriteParams::read(&query, WriteKind::Apply)
                .expect("fine")
                .force
        );
    }
}
