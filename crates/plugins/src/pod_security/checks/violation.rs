//! A violation of a check, and the wording that violations share.

use crate::pod_security::pod::SecurityScope;

/// A reason for which a check does not allow a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pod_security) struct Violation {
    /// The short reason, such as `host namespaces`.
    pub(in crate::pod_security) reason: &'static str,
    /// The parts of the pod that violate the check.
    pub(in crate::pod_security) detail: String,
}

impl Violation {
    /// Makes a violation of its reason and detail.
    pub(super) fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}

/// Returns the first word for one thing, and the second for any other number.
pub(super) fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// Returns names in quotation marks, separated by commas.
pub(super) fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|it| format!("\"{it}\"")).collect();
    names.join(", ")
}

/// Returns containers by their names, such as `containers "a", "b"`.
pub(super) fn containers(names: &[&str]) -> String {
    let word = plural(names.len(), "container", "containers");
    format!("{word} {}", quoted(names.iter().copied()))
}

/// Returns the parts of a pod by their names, such as `pod and container "a"`.
pub(super) fn parts(parts: &[SecurityScope<'_>]) -> String {
    let mut pod = None;
    let mut names = Vec::new();
    for part in parts {
        match part {
            SecurityScope::Pod => pod = Some("pod".to_owned()),
            SecurityScope::Container(name) => names.push(*name),
        }
    }
    let named = (!names.is_empty()).then(|| containers(&names));
    let words: Vec<String> = pod.into_iter().chain(named).collect();
    words.join(" and ")
}
