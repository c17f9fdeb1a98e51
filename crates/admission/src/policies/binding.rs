//! A ValidatingAdmissionPolicyBinding, as it is stored.

use ringwatch::meta::LabelSelector;
use ringwatch_apimachinery::selector_text;
use serde_json::Value;

use super::member::text;
use crate::matching::Criteria;

/// A ValidatingAdmissionPolicyBinding or MutatingAdmissionPolicyBinding.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    /// The name of its policy.
    pub(super) policy: String,
    /// The criteria of `matchResources`; `None` for all that the policy matches.
    pub(super) criteria: Option<Criteria>,
    pub(super) params: Option<ParamRef>,
    pub(super) denies: bool,
    pub(super) warns: bool,
    /// True if violations are told to the audit log.
    pub(super) audits: bool,
    /// `validationActions`, as they are written.
    pub(super) actions: Vec<String>,
}

/// The reference to the params, `paramRef`.
#[derive(Debug)]
pub(super) struct ParamRef {
    /// The name; empty if there is a selector.
    pub(super) name: String,
    /// The namespace; empty for that of the request.
    pub(super) namespace: String,
    pub(super) selector: LabelSelector,
    /// True if a request is denied when no params are found: `parameterNotFoundAction: Deny`.
    pub(super) required: bool,
}

impl Binding {
    /// Reads a binding out of its object.
    ///
    /// # Errors
    /// A message that names the member that cannot be read.
    pub(super) fn read(object: &Value) -> Result<Self, String> {
        let spec = &object["spec"];
        let member = |name: &str| spec.get(name).filter(|it| it.is_object());
        let criteria = member("matchResources").map(Criteria::read_binding);
        let actions = spec.get("validationActions").and_then(Value::as_array);
        let actions = actions.into_iter().flatten().filter_map(Value::as_str);
        let actions: Vec<String> = actions.map(str::to_owned).collect();
        let acts = |action: &str| actions.iter().any(|it| it == action);
        Ok(Self {
            name: text(&object["metadata"], "name"),
            policy: text(spec, "policyName"),
            criteria: criteria.transpose()?,
            params: member("paramRef").map(ParamRef::read).transpose()?,
            denies: acts("Deny"),
            warns: acts("Warn"),
            audits: acts("Audit"),
            actions,
        })
    }
}

impl ParamRef {
    fn read(source: &Value) -> Result<Self, String> {
        let selector = source.get("selector").map(selector_text::label_selector);
        let selector = LabelSelector::parse(&selector.unwrap_or_default());
        Ok(Self {
            name: text(source, "name"),
            namespace: text(source, "namespace"),
            selector: selector.map_err(|error| error.to_string())?,
            required: text(source, "parameterNotFoundAction") == "Deny",
        })
    }
}
