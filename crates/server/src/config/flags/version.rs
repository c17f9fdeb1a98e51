//! The flag `--version`, which prints the version or sets the one that clients are told.

use std::fmt::Write;

use ringwatch_endpoints::VersionInfo;

use super::go_values::parse_bool;

/// A value of `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionFlag {
    /// The server runs and tells its own version.
    Unset,
    /// The version is printed.
    Print,
    /// All parts of the version are printed.
    PrintRaw,
    /// The server runs and tells clients this version.
    Report(String),
}

impl VersionFlag {
    /// Reads a boolean, `raw`, or a version that begins with a `v`. Ported from Kubernetes 1.36,
    /// component-base/version/verflag/verflag.go `versionValue.Set`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "raw" {
            return Ok(Self::PrintRaw);
        }
        if text.starts_with('v') {
            return reported(text).map(Self::Report);
        }
        Ok(match parse_bool(text)? {
            true => Self::Print,
            false => Self::Unset,
        })
    }

    /// Returns the version that clients are told.
    #[must_use]
    pub fn version(&self) -> VersionInfo {
        let own = VersionInfo::kubernetes_1_36();
        match self {
            Self::Report(version) => VersionInfo {
                git_version: version.clone(),
                ..own
            },
            _ => own,
        }
    }

    /// Returns the text to print instead of running the server, if there is one.
    #[must_use]
    pub fn printed(&self) -> Option<String> {
        match self {
            Self::Unset | Self::Report(_) => None,
            Self::Print => Some(format!("Kubernetes {}", self.version().git_version)),
            Self::PrintRaw => Some(raw(&self.version())),
        }
    }
}

/// Checks that a version differs from the server's own in nothing but what follows the patch version.
fn reported(text: &str) -> Result<String, String> {
    let own = VersionInfo::kubernetes_1_36().git_version;
    let end = |text: &str| text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, suffix) = text.split_at(end(text));
    let own = &own[..end(&own)];
    if numbers != own || !is_suffix(suffix) {
        return Err(format!(
            "version {text:?} must match major/minor/patch of default version {own:?}"
        ));
    }
    Ok(text.to_owned())
}

/// Returns true for what may follow a patch version: identifiers that dots separate, after a dash or a plus.
fn is_suffix(suffix: &str) -> bool {
    let (release, build) = suffix.split_once('+').unzip();
    let release = release.unwrap_or(suffix);
    let identifiers = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        text.split('.')
            .all(|part| !part.is_empty() && part.bytes().all(plain))
    };
    let release = release
        .strip_prefix('-')
        .map_or(release.is_empty(), identifiers);
    release && build.is_none_or(identifiers)
}

/// Returns all parts of a version, as Go's `%#v` writes kube-apiserver's.
fn raw(version: &VersionInfo) -> String {
    let mut text = String::new();
    for (name, value) in [
        ("Major", &version.major),
        ("Minor", &version.minor),
        ("EmulationMajor", &version.emulation_major),
        ("EmulationMinor", &version.emulation_minor),
        ("MinCompatibilityMajor", &version.min_compatibility_major),
        ("MinCompatibilityMinor", &version.min_compatibility_minor),
        ("GitVersion", &version.git_version),
        ("GitCommit", &version.git_commit),
        ("GitTreeState", &version.git_tree_state),
        ("BuildDate", &version.build_date),
        ("GoVersion", &version.go_version),
        ("Compiler", &version.compiler),
        ("Platform", &version.platform),
    ] {
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing into a String cannot fail.
        let _ = write!(text, "{separator}{name}:{value:?}");
    }
    format!("version.Info{{{text}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_printed_or_reported() {
        let printed = |text: &str| VersionFlag::parse(text).expect("a value").printed();
        assert!(
            printed("true")
                .expect("text")
                .starts_with("Kubernetes v1.36.2")
        );
        let raw = printed("raw").expect("text");
        assert!(
            raw.starts_with(r#"version.Info{Major:"1", Minor:"36", "#),
            "{raw}"
        );
        assert_eq!(printed("false"), None);
        for version in ["v1.36.2", "v1.36.2-mine.1", "v1.36.2-a+b.c", "v1.36.2+b"] {
            let flag = VersionFlag::parse(version).expect("a version");
            assert_eq!(flag.version().git_version, version);
            assert_eq!(flag.printed(), None);
        }
    }

    #[test]
    fn another_version_is_refused() {
        for wrong in [
            "v1.36.1",
            "v1.36",
            "v1.36.2-",
            "v1.36.2-a b",
            "v1.36.20",
            "v",
        ] {
            let error = VersionFlag::parse(wrong).expect_err(wrong);
            assert!(error.contains("must match major/minor/patch"), "{error}");
        }
        VersionFlag::parse("yes").expect_err("no value");
    }
}
