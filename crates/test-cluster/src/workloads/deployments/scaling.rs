//! The sizes of ReplicaSets when a Deployment is scaled in the middle of a rollout: each gets its share of the
//! difference, so that a template that may be bad gets no larger part of the pods.
//!
//! Source of the semantics: `scale` of `pkg/controller/deployment/sync.go` and `GetReplicaSetProportion` of
//! `pkg/controller/deployment/util/deployment_util.go` of kube-controller-manager 1.36.

use std::cmp::Reverse;

use super::limits::RolloutLimits;

/// The size of a ReplicaSet that is to have pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScaledSet {
    /// Number of pods that it is to have.
    pub(super) wanted: i64,
    /// Number of pods that the Deployment could have when the set got its size; `None` if it is not known.
    pub(super) max_total_before: Option<i64>,
}

/// Returns the sizes that sets get, which are given in the order of their creation. The Deployment had so many pods.
pub(super) fn sizes(limits: &RolloutLimits, sets: &[ScaledSet], pods: i64) -> Vec<i64> {
    let mut sizes: Vec<i64> = sets.iter().map(|it| it.wanted).collect();
    let allowed = if limits.replicas > 0 {
        limits.max_total()
    } else {
        0
    };
    let difference = allowed - sizes.iter().sum::<i64>();
    // The largest is first. Of equal ones the newest grows first, and the oldest shrinks first.
    let mut order: Vec<usize> = (0..sets.len()).collect();
    if difference > 0 {
        order.sort_by_key(|at| Reverse((sets[*at].wanted, *at)));
    } else {
        order.sort_by_key(|at| (Reverse(sets[*at].wanted), *at));
    }
    let mut left = difference;
    for at in &order {
        let share = share(limits, &sets[*at], pods);
        let share = if difference > 0 {
            share.min(left)
        } else {
            share.max(left)
        };
        sizes[*at] += share;
        left -= share;
    }
    if let Some(first) = order.first() {
        sizes[*first] = (sizes[*first] + left).max(0);
    }
    sizes
}

/// Returns the number of pods by which a set is to grow, negative if it is to shrink.
fn share(limits: &RolloutLimits, set: &ScaledSet, pods: i64) -> i64 {
    if limits.replicas == 0 {
        return -set.wanted;
    }
    let before = set.max_total_before.filter(|it| *it > 0).unwrap_or(pods);
    if before <= 0 {
        return 0;
    }
    // The nearest number; a half is rounded up.
    let (wanted, before) = (i128::from(set.wanted), i128::from(before));
    let size = (2 * wanted * i128::from(limits.max_total()) + before) / (2 * before);
    i64::try_from(size).unwrap_or(i64::MAX) - set.wanted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(replicas: i64, max_surge: i64) -> RolloutLimits {
        RolloutLimits {
            replicas,
            max_surge,
            max_unavailable: 0,
        }
    }

    fn sets(sizes: &[i64], max_total_before: i64) -> Vec<ScaledSet> {
        let set = |wanted: &i64| ScaledSet {
            wanted: *wanted,
            max_total_before: Some(max_total_before),
        };
        sizes.iter().map(set).collect()
    }

    #[test]
    fn each_set_gets_its_share() {
        // The Deployment of the conformance test grows from 10 to 30 pods, of which 3 may be more.
        assert_eq!(sizes(&limits(30, 3), &sets(&[8, 5], 13), 13), [20, 13]);
        // As few as there may be, of two that are equal the newest grows and the oldest shrinks.
        assert_eq!(sizes(&limits(11, 0), &sets(&[5, 5], 10), 10), [5, 6]);
        assert_eq!(sizes(&limits(9, 0), &sets(&[5, 5], 10), 10), [4, 5]);
        assert_eq!(sizes(&limits(0, 3), &sets(&[8, 5], 13), 13), [0, 0]);
        assert_eq!(sizes(&limits(10, 3), &sets(&[8, 5], 13), 13), [8, 5]);
        assert!(sizes(&limits(10, 3), &[], 13).is_empty());
    }

    #[test]
    fn a_set_whose_time_is_not_known_is_compared_with_the_pods_there_are() {
        let mut unknown = sets(&[8, 5], 0);
        unknown[1].max_total_before = None;
        assert_eq!(sizes(&limits(30, 3), &unknown, 13), [20, 13]);
        // Without any, the largest gets all.
        assert_eq!(sizes(&limits(30, 3), &unknown, 0), [28, 5]);
    }

    proptest! {
        #[test]
        fn there_are_as_many_pods_as_may_be(
            replicas in 0..60i64,
            surge in 0..10i64,
            wanted in prop::collection::vec(1..30i64, 1..5),
        ) {
            let limits = limits(replicas, surge);
            let before = wanted.iter().sum();
            let sizes = sizes(&limits, &sets(&wanted, before), before);
            prop_assert!(sizes.iter().all(|it| *it >= 0));
            let total: i64 = sizes.iter().sum();
            let allowed = if replicas > 0 { limits.max_total() } else { 0 };
            let grows = before <= allowed;
            // What is left over to be taken away may be more than the largest set has.
            prop_assert!(total == allowed || (!grows && total > allowed));
            for (size, before) in sizes.iter().zip(&wanted) {
                prop_assert!(size == before || (size > before) == grows);
            }
        }
    }
}
