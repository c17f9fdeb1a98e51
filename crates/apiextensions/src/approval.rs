//! The approval of definitions in Kubernetes' own domains. Follows `GetAPIApprovalState`.

use ringwatch_apimachinery::go_url::Url;
use ringwatch_apimachinery::path::{get, text};
use serde_json::Value;

/// The annotation with the approval.
pub const APPROVED: &str = "api-approved.kubernetes.io";

/// The domains of Kubernetes itself.
const PROTECTED: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// The approval of a definition in a protected domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is no annotation.
    Missing,
    /// The annotation says that nobody has approved it.
    Bypassed,
    /// The annotation is the URL of the approval.
    Approved,
    /// The annotation is something else.
    Invalid,
}

impl Approval {
    /// Returns the approval of a definition; `None` if its group needs none.
    #[must_use]
    pub fn of(definition: &Value) -> Option<Self> {
        let group = text(definition, "spec.group");
        let within = |domain: &&str| {
            let before = group.strip_suffix(*domain);
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        PROTECTED.iter().any(within).then(|| {
            let annotation = annotation(definition);
            if annotation.is_empty() {
                Self::Missing
            } else if annotation.starts_with("unapproved") {
                Self::Bypassed
            } else if is_url(annotation) {
                Self::Approved
            } else {
                Self::Invalid
            }
        })
    }

    /// Returns what the approval says of a definition.
    #[must_use]
    pub fn message(self, definition: &Value) -> String {
        const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
        let must = format!("protected groups must have approval annotation {APPROVED:?}");
        let annotation = annotation(definition);
        match self {
            Self::Missing => format!("{must}, {SEE}"),
            Self::Bypassed => format!("not approved: {annotation:?}"),
            Self::Approved => format!("approved in {annotation}"),
            Self::Invalid => {
                format!("{must} with either a URL or a reason starting with \"unapproved\", {SEE}")
            }
        }
    }

    /// Returns the reason of the condition `KubernetesAPIApprovalPolicyConformant`.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Missing => "MissingAnnotation",
            Self::Bypassed => "UnapprovedAnnotation",
            Self::Approved => "ApprovedAnnotation",
            Self::Invalid => "InvalidAnnotation",
        }
    }
}

/// Returns the value of the annotation of a definition.
#[must_use]
pub fn annotation(definition: &Value) -> &str {
    let annotations = get(definition, "metadata.annotations");
    let value = annotations.and_then(|it| it.get(APPROVED)?.as_str());
    value.unwrap_or_default()
}

/// Returns true if a text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    Url::parse_request(text).is_ok_and(|url| !url.scheme.is_empty() && !url.host.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_of_kubernetes_domains_need_an_approval() {
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        let must = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
        for (group, annotation, approval, message) in [
            ("example.com", "", None, String::new()),
            ("notk8s.io", "", None, String::new()),
            (
                "k8s.io",
                "",
                Some(Approval::Missing),
                format!("{must}, {see}"),
            ),
            (
                "x.k8s.io",
                "unapproved, experimental",
                Some(Approval::Bypassed),
                "not approved: \"unapproved, experimental\"".to_owned(),
            ),
            (
                "x.kubernetes.io",
                "https://example.com/1",
                Some(Approval::Approved),
                "approved in https://example.com/1".to_owned(),
            ),
            (
                "x.k8s.io",
                "https://",
                Some(Approval::Invalid),
                format!("{must} with either a URL or a reason starting with \"unapproved\", {see}"),
            ),
            (
                "x.k8s.io",
                "yes",
                Some(Approval::Invalid),
                format!("{must} with either a URL or a reason starting with \"unapproved\", {see}"),
            ),
        ] {
            let definition = json!({"metadata": {"annotations": {APPROVED: annotation}},
                "spec": {"group": group}});
            let found = Approval::of(&definition);
            assert_eq!(found, approval, "{group} {annotation}");
            let found = found.map_or(String::new(), |it| it.message(&definition));
            assert_eq!(found, message, "{group} {annotation}");
        }
    }
}
