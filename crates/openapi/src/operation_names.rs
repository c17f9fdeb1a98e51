//! The names that operations have, as kube-apiserver makes them of group, version and kind.

use ringwatch_apimachinery::GroupVersion;

/// The parts of operations' names that come from the group and version: `AppsV1`, and `apps_v1` as their tag.
pub(super) struct Scope {
    /// The first part of operation ids, such as `AppsV1`.
    pub(super) id: String,
    /// The tag that groups the operations in a document.
    pub(super) tag: String,
}

impl Scope {
    /// Returns the scope of a group version.
    pub(super) fn from_version(group_version: &GroupVersion) -> Self {
        let version = &group_version.version;
        let Self { id, tag } = Self::from_group(&group_version.group);
        Self {
            id: id + &camel(version, true),
            tag: format!("{tag}_{}", camel(version, false)),
        }
    }

    /// Returns the scope of a group.
    pub(super) fn from_group(group: &str) -> Self {
        let group = if group.is_empty() { "core" } else { group };
        let group = group.strip_suffix(".k8s.io").unwrap_or(group);
        Self {
            id: camel(group, true),
            tag: camel(group, false),
        }
    }
}

/// Joins the words between dots and dashes into one in camel case.
pub(super) fn camel(text: &str, mut capital: bool) -> String {
    let mut word = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '-' | '.' | '_' | ' ' | '/' | '{' | '}') {
            capital = true;
        } else if std::mem::take(&mut capital) {
            word.extend(letter.to_uppercase());
        } else {
            word.push(letter);
        }
    }
    word
}

/// Returns a kind with its article; plurals have none.
pub(super) fn with_article(kind: &str) -> String {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_articles() {
        for (group, version, id, tag) in [
            ("", "v1", "CoreV1", "core_v1"),
            (
                "rbac.authorization.k8s.io",
                "v1",
                "RbacAuthorizationV1",
                "rbacAuthorization_v1",
            ),
            (
                "my-own.example.com",
                "v1beta1",
                "MyOwnExampleComV1beta1",
                "myOwnExampleCom_v1beta1",
            ),
        ] {
            let scope = Scope::from_version(&GroupVersion::new(group, version));
            assert_eq!((scope.id.as_str(), scope.tag.as_str()), (id, tag));
        }
        for (kind, text) in [
            ("Pod", "a Pod"),
            ("Ingress", "an Ingress"),
            ("Endpoints", "Endpoints"),
        ] {
            assert_eq!(with_article(kind), text);
        }
    }
}
