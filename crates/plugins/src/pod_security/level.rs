//! Levels and versions of the Pod Security Standards.
//!
//! Ported from `api/helpers.go` of pod-security-admission, Kubernetes 1.36.

use std::fmt;

/// A level of the Pod Security Standards; a greater one is stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Level {
    /// Everything is allowed.
    Privileged,
    /// Known ways to gain privileges are not allowed.
    Baseline,
    /// Hardening is required besides.
    Restricted,
}

/// A version of the Pod Security Standards; a greater one is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum StandardVersion {
    /// That of Kubernetes 1.x, by its minor version.
    Minor(u64),
    /// The newest.
    Latest,
}

/// A level in one of its versions, such as `baseline:v1.34`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LevelVersion {
    pub(super) level: Level,
    pub(super) version: StandardVersion,
}

impl Level {
    /// Reads the name of a level.
    ///
    /// # Errors
    /// An explanation that names all levels.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "privileged" => Ok(Self::Privileged),
            "baseline" => Ok(Self::Baseline),
            "restricted" => Ok(Self::Restricted),
            _ => Err("must be one of privileged, baseline, restricted"),
        }
    }

    /// Returns the name of the level.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

impl StandardVersion {
    /// Reads `latest` or `v1.x`.
    ///
    /// # Errors
    /// An explanation of the two forms.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = r#"must be "latest" or "v1.x""#;
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let minor = text.strip_prefix("v1.").ok_or(WRONG)?;
        let is_number = minor.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (minor.len() > 1 && minor.starts_with('0')) {
            return Err(WRONG);
        }
        // Go's numbers are signed.
        let minor: i64 = minor.parse().map_err(|_| WRONG)?;
        Ok(Self::Minor(minor.unsigned_abs()))
    }

    /// Returns true if checks that begin with this minor version are part of the version.
    pub(super) fn includes(self, minor: u64) -> bool {
        self >= Self::Minor(minor)
    }
}

impl fmt::Display for StandardVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(formatter, "v1.{minor}"),
            Self::Latest => formatter.write_str("latest"),
        }
    }
}

impl LevelVersion {
    /// The newest version of the level that allows everything.
    pub(super) const PRIVILEGED: Self = Self {
        level: Level::Privileged,
        version: StandardVersion::Latest,
    };

    /// Returns true if both mean the same: two versions of the level that allows everything do.
    pub(super) fn is_equivalent(self, other: Self) -> bool {
        let privileged = [self, other].map(|it| it.level == Level::Privileged);
        self == other || privileged == [true, true]
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.level.name(), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_written() {
        for text in ["latest", "v1.0", "v1.9", "v1.36", "v1.9223372036854775807"] {
            let version = StandardVersion::parse(text).expect(text);
            assert_eq!(version.to_string(), text);
        }
        for text in [
            "",
            "v1",
            "v1.",
            "v1.01",
            "v1.-1",
            "v1.+1",
            "v2.0",
            "1.22",
            "v.122",
            "Latest",
            "v1.22 ",
            "v1.9223372036854775808",
        ] {
            let why = StandardVersion::parse(text).expect_err(text);
            assert_eq!(why, "must be \"latest\" or \"v1.x\"");
        }
    }

    #[test]
    fn newer_versions_and_stricter_levels_are_greater() {
        assert!(StandardVersion::Latest > StandardVersion::Minor(u64::MAX));
        assert!(
            StandardVersion::Minor(22).includes(22) && !StandardVersion::Minor(21).includes(22)
        );
        assert!(StandardVersion::Latest.includes(35));
        assert!(Level::Privileged < Level::Baseline && Level::Baseline < Level::Restricted);
        Level::parse("Baseline").expect_err("levels are in lower case");
    }

    #[test]
    fn privileged_is_the_same_in_all_versions() {
        let of = |level, minor| LevelVersion {
            level,
            version: StandardVersion::Minor(minor),
        };
        assert!(of(Level::Privileged, 1).is_equivalent(LevelVersion::PRIVILEGED));
        assert!(of(Level::Baseline, 1).is_equivalent(of(Level::Baseline, 1)));
        assert!(!of(Level::Baseline, 1).is_equivalent(of(Level::Baseline, 2)));
    }
}
