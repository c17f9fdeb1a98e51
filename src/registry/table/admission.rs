//! Who has a say in what is admitted: webhooks and policies.

use super::{Column, Subject, TableConvertor, cells};
use crate::registry::selector_text;

const UNSET: &str = "<unset>";

const PARAMETERS: Column = Column::text("ParamKind", "The kind of the policy's parameters.");

/// Configurations of webhooks that validate, or mutate.
pub(super) static WEBHOOKS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number(
            "Webhooks",
            "Webhooks indicates the number of webhooks registered in this configuration",
        ),
        Column::AGE,
    ],
    |configuration| {
        cells![
            configuration.name(),
            configuration.count("webhooks"),
            configuration.age()
        ]
    },
);

/// Policies that validate.
pub(super) static VALIDATING_POLICIES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number("Validations", "How many rules the policy has."),
        PARAMETERS,
        Column::AGE,
    ],
    |policy| {
        let rules = policy.count("spec.validations");
        cells![policy.name(), rules, parameter_kind(policy), policy.age()]
    },
);

/// Policies that mutate.
pub(super) static MUTATING_POLICIES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number("Mutations", "How many changes the policy makes."),
        PARAMETERS,
        Column::AGE,
    ],
    |policy| {
        let rules = policy.count("spec.mutations");
        cells![policy.name(), rules, parameter_kind(policy), policy.age()]
    },
);

/// Where policies apply.
pub(super) static POLICY_BINDINGS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("PolicyName", "The policy that is bound."),
        Column::text("ParamRef", "The parameters with which it is bound."),
        Column::AGE,
    ],
    |binding| {
        cells![
            binding.name(),
            binding.text("spec.policyName"),
            parameters(binding),
            binding.age()
        ]
    },
);

fn parameter_kind(policy: &Subject<'_>) -> String {
    match policy.get("spec.paramKind").map(|it| policy.part(it)) {
        Some(kind) => format!("{}/{}", kind.text("apiVersion"), kind.text("kind")),
        None => UNSET.to_owned(),
    }
}

/// The parameters by name, in all namespaces if none is named, or by a selector.
fn parameters(binding: &Subject<'_>) -> String {
    let name = binding.text("spec.paramRef.name");
    if name.is_empty() {
        let selector = binding.get("spec.paramRef.selector");
        let text = selector.map(selector_text::label_selector);
        return text.unwrap_or_else(|| UNSET.to_owned());
    }
    format!("{}/{name}", binding.text_or("spec.paramRef.namespace", "*"))
}
