//! The features of `--feature-gates`, by kube-apiserver's names. All are off unless they are switched on.

/// A feature that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Objects that cannot be read may be deleted.
    UnsafeDeletion,
    /// Lists and watches may select a shard.
    ShardedLists,
}

/// A switch of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGate {
    /// The feature that is switched.
    pub feature: Feature,
    /// True if the feature is enabled; the last of several switches counts.
    pub enabled: bool,
}

impl Feature {
    /// All features, in the order of their names.
    const ALL: [Self; 2] = [Self::UnsafeDeletion, Self::ShardedLists];

    /// Returns kube-apiserver's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UnsafeDeletion => "AllowUnsafeMalformedObjectDeletion",
            Self::ShardedLists => "ShardedListAndWatch",
        }
    }
}

impl FeatureGate {
    /// Reads `NAME=BOOL`.
    ///
    /// # Errors
    /// A line for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let Some(feature) = Feature::ALL.into_iter().find(|it| it.name() == name) else {
            let known = Feature::ALL.map(Feature::name).join(" and ");
            return Err(format!("no such feature gate here; there are {known}"));
        };
        match value {
            "true" => Ok(Self {
                feature,
                enabled: true,
            }),
            "false" => Ok(Self {
                feature,
                enabled: false,
            }),
            _ => Err(format!("write {name}=true or =false")),
        }
    }

    /// Returns true if the last switch of a feature enables it.
    #[must_use]
    pub fn is_enabled(gates: &[Self], feature: Feature) -> bool {
        let last = gates.iter().rfind(|gate| gate.feature == feature);
        last.is_some_and(|gate| gate.enabled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_open_and_close() {
        for feature in Feature::ALL {
            for enabled in [true, false] {
                let text = format!("{}={enabled}", feature.name());
                let gate = FeatureGate { feature, enabled };
                assert_eq!(FeatureGate::parse(&text), Ok(gate));
            }
            for value in ["=yes", ""] {
                let text = format!("{}{value}", feature.name());
                FeatureGate::parse(&text).expect_err("neither true nor false");
            }
        }
        FeatureGate::parse("WatchList=true").expect_err("not a gate");
    }

    #[test]
    fn the_last_switch_of_a_feature_counts() {
        let gates = [
            "ShardedListAndWatch=true",
            "AllowUnsafeMalformedObjectDeletion=true",
            "AllowUnsafeMalformedObjectDeletion=false",
        ];
        let gates = gates.map(|text| FeatureGate::parse(text).expect("a gate"));
        for (feature, until, enabled) in [
            (Feature::ShardedLists, 0, false),
            (Feature::ShardedLists, 3, true),
            (Feature::UnsafeDeletion, 1, false),
            (Feature::UnsafeDeletion, 2, true),
            (Feature::UnsafeDeletion, 3, false),
        ] {
            let is_enabled = FeatureGate::is_enabled(&gates[..until], feature);
            assert_eq!(is_enabled, enabled, "{feature:?} {until}");
        }
    }
}
