//! The kinds that kube-apiserver's schemes know, whether or not their versions are served: a body of such a kind is
//! refused in other words than one of a kind that nobody knows.

use ringwatch::codec;

use super::scheme_of;

/// The kinds of each version, a line each: the group and version, and the kinds.
const KINDS: &str = include_str!("registered_kinds.txt");

/// Returns true if the scheme that serves a group knows a kind of a version, such as `apps/v1beta1`.
pub(super) fn is_registered(served_group: &str, version: &str, kind: &str) -> bool {
    let of_every_version = codec::is_of_every_version(kind);
    if codec::is_unversioned(kind) || of_every_version && version == "v1" {
        return true;
    }
    let scheme = scheme_of(served_group);
    let mut lines = KINDS.lines().filter_map(|line| line.split_once(' '));
    lines.any(|(of, kinds)| {
        let group = of.split_once('/').map_or("", |(group, _)| group);
        let mut kinds = kinds.split(' ');
        of == version
            && scheme_of(group) == scheme
            && (of_every_version || kinds.any(|it| it == kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_knows_its_kinds_and_those_of_all() {
        for (group, version, kind, is_known) in [
            ("apps", "apps/v1", "DeploymentList", true),
            ("apps", "apps/v1beta1", "Deployment", true),
            ("apps", "apps/v1beta3", "Deployment", false),
            ("apps", "v1", "SerializedReference", true),
            ("apps", "apps/v1", "WatchEvent", true),
            ("apps", "example.com/v1", "WatchEvent", false),
            ("apps", "example.com/v1", "Status", true),
            ("apps", "apps/v1", "Pod", false),
            ("apiextensions.k8s.io", "v1", "Pod", false),
            ("apiextensions.k8s.io", "v1", "DeleteOptions", true),
            (
                "apiextensions.k8s.io",
                "apiextensions.k8s.io/v1",
                "ConversionReview",
                true,
            ),
            ("apps", "apiextensions.k8s.io/v1", "ConversionReview", false),
        ] {
            let found = is_registered(group, version, kind);
            assert_eq!(found, is_known, "{group}: {version} {kind}");
        }
    }
}
