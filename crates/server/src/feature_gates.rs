//! The features of `--feature-gates`, by kube-apiserver's names.

/// The only feature that can be switched.
const UNSAFE_DELETION: &str = "AllowUnsafeMalformedObjectDeletion";

/// A switch of AllowUnsafeMalformedObjectDeletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGate {
    /// True if the feature is enabled; the last of several switches counts.
    pub enabled: bool,
}

impl FeatureGate {
    /// Reads `NAME=BOOL`.
    ///
    /// # Errors
    /// A line for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        if name != UNSAFE_DELETION {
            return Err(format!(
                "no such feature gate here; {UNSAFE_DELETION} is the only one"
            ));
        }
        match value {
            "true" => Ok(Self { enabled: true }),
            "false" => Ok(Self { enabled: false }),
            _ => Err(format!("write {UNSAFE_DELETION}=true or =false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gate_opens_and_closes() {
        let parse = |value: &str| FeatureGate::parse(&format!("{UNSAFE_DELETION}{value}"));
        assert_eq!(parse("=true"), Ok(FeatureGate { enabled: true }));
        assert_eq!(parse("=false"), Ok(FeatureGate { enabled: false }));
        for wrong in [
            parse("=yes"),
            parse(""),
            FeatureGate::parse("WatchList=true"),
        ] {
            wrong.expect_err("not a gate");
        }
    }
}
