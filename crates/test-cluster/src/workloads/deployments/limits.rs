//! The number of pods that a Deployment is to have, and by which it may differ while it rolls out.

use ringwatch_apimachinery::path;
use serde_json::Value;

/// The limits of a rollout, in pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RolloutLimits {
    /// Number of pods that the Deployment is to have.
    pub(super) replicas: i64,
    /// Number of pods that it may have besides.
    pub(super) max_surge: i64,
    /// Number of pods that may be missing.
    pub(super) max_unavailable: i64,
}

impl RolloutLimits {
    /// Returns those of a Deployment (`MaxSurge` and `MaxUnavailable`). One that does not roll has no leeway.
    pub(super) fn of(deployment: &Value) -> Self {
        let replicas = path::get(deployment, "spec.replicas").and_then(Value::as_i64);
        let replicas = replicas.unwrap_or(1);
        if !rolls(deployment) {
            return Self {
                replicas,
                max_surge: 0,
                max_unavailable: 0,
            };
        }
        let of = |member| path::get(deployment, "spec.strategy.rollingUpdate")?.get(member);
        let max_surge = scaled(of("maxSurge"), replicas, 99);
        let mut max_unavailable = scaled(of("maxUnavailable"), replicas, 0);
        // Validation refuses two zeros, but a percentage may be rounded to one.
        if max_surge == 0 && max_unavailable == 0 {
            max_unavailable = 1;
        }
        Self {
            replicas,
            max_surge,
            max_unavailable: max_unavailable.min(replicas),
        }
    }

    /// Returns the number of pods that there may be.
    pub(super) fn max_total(&self) -> i64 {
        self.replicas + self.max_surge
    }

    /// Returns the number of pods that have to be available.
    pub(super) fn min_available(&self) -> i64 {
        self.replicas - self.max_unavailable
    }
}

/// Returns true if a Deployment replaces its pods little by little.
pub(super) fn rolls(deployment: &Value) -> bool {
    path::text(deployment, "spec.strategy.type") != "Recreate"
}

/// Returns a number, or a percentage of the replicas, rounded down after `more` hundredths are added.
fn scaled(value: Option<&Value>, replicas: i64, more: i64) -> i64 {
    let Some(value) = value else { return 0 };
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|it| it.strip_suffix('%'));
    let percent: i64 = percent.and_then(|it| it.parse().ok()).unwrap_or_default();
    percent.saturating_mul(replicas).saturating_add(more) / 100
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits(replicas: i64, surge: Value, unavailable: Value) -> (i64, i64) {
        let limits = RolloutLimits::of(&json!({"spec": {"replicas": replicas, "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
        }}}));
        assert_eq!(limits.max_total(), replicas + limits.max_surge);
        assert_eq!(limits.min_available(), replicas - limits.max_unavailable);
        (limits.max_surge, limits.max_unavailable)
    }

    #[test]
    fn a_surge_is_rounded_up_and_missing_pods_are_rounded_down() {
        let quarter = || json!("25%");
        assert_eq!(limits(4, quarter(), quarter()), (1, 1));
        assert_eq!(limits(5, quarter(), quarter()), (2, 1));
        assert_eq!(limits(10, quarter(), quarter()), (3, 2));
        assert_eq!(limits(10, json!(3), json!(2)), (3, 2));
        assert_eq!(limits(1, json!("100%"), json!(0)), (1, 0));
        assert_eq!(
            limits(2, json!(0), json!(5)),
            (0, 2),
            "never more than all are missing"
        );
        assert_eq!(
            limits(2, json!(0), json!("1%")),
            (0, 1),
            "one of both is not zero"
        );
        assert_eq!(limits(0, quarter(), quarter()), (0, 0));
    }

    #[test]
    fn what_is_made_anew_has_no_leeway() {
        let limits =
            RolloutLimits::of(&json!({"spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}));
        let none = RolloutLimits {
            replicas: 3,
            max_surge: 0,
            max_unavailable: 0,
        };
        assert_eq!(limits, none);
    }
}
