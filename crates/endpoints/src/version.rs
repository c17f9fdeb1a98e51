//! The response of `/version`.

use serde::Serialize;

/// The version of the Kubernetes API that is served, and of the program that serves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionInfo {
    /// The major version of Kubernetes that is served, `1`.
    pub major: String,
    /// The minor version of Kubernetes that is served, such as `36`.
    pub minor: String,
    /// The major version of Kubernetes whose behaviour is emulated.
    pub emulation_major: String,
    /// The minor version of Kubernetes whose behaviour is emulated.
    pub emulation_minor: String,
    /// The major version of the oldest Kubernetes that clients may assume.
    pub min_compatibility_major: String,
    /// The minor version of the oldest Kubernetes that clients may assume.
    pub min_compatibility_minor: String,
    /// The full version, such as `v1.36.2+ringwatch`.
    pub git_version: String,
    /// The commit of the program.
    pub git_commit: String,
    /// The state of the source tree: `clean` or `dirty`.
    pub git_tree_state: String,
    /// The time at which the program was built, in RFC 3339.
    pub build_date: String,
    /// The compiler and its version, in the member that kube-apiserver uses for Go's.
    pub go_version: String,
    /// The compiler.
    pub compiler: String,
    /// The operating system and architecture, such as `linux/amd64`.
    pub platform: String,
}

impl VersionInfo {
    /// Kubernetes 1.36, served by this program.
    #[must_use]
    pub fn kubernetes_1_36() -> Self {
        let platform = format!("{}/{}", std::env::consts::OS, go_architecture());
        Self {
            major: "1".to_owned(),
            minor: "36".to_owned(),
            emulation_major: "1".to_owned(),
            emulation_minor: "36".to_owned(),
            min_compatibility_major: "1".to_owned(),
            min_compatibility_minor: "35".to_owned(),
            git_version: format!("v1.36.2+ringwatch-{}", env!("CARGO_PKG_VERSION")),
            git_commit: "unknown".to_owned(),
            git_tree_state: "clean".to_owned(),
            build_date: "1970-01-01T00:00:00Z".to_owned(),
            go_version: "none".to_owned(),
            compiler: "rustc".to_owned(),
            platform,
        }
    }
}

/// Returns the architecture in Go's words, which clients compare.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
