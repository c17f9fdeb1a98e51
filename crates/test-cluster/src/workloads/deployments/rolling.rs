//! The next step of a rolling update: which ReplicaSets get larger or smaller.
//!
//! The new set grows while there may be more pods. Else the old sets shrink: by pods that are not available first,
//! which nobody misses, then by as many as are available beyond those that have to be. Pods of the new set that are
//! not available yet count as if they were missing.
//!
//! Source of the semantics: `pkg/controller/deployment/rolling.go` of kube-controller-manager 1.36.

use super::limits::RolloutLimits;

/// The size of a ReplicaSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetSize {
    /// Number of pods that it is to have.
    pub(super) wanted: i64,
    /// Number of its pods that are available.
    pub(super) available: i64,
}

/// The next step of a rolling update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RollingStep {
    /// The new set gets this size.
    New(i64),
    /// The old sets get these sizes.
    Old(Vec<i64>),
    /// None for now.
    Rest,
}

/// Returns the next step. The old sets are those that are to have pods, in the order of their creation.
pub(super) fn step(limits: &RolloutLimits, new: SetSize, old: &[SetSize]) -> RollingStep {
    let old_total: i64 = old.iter().map(|it| it.wanted).sum();
    let next = new_size(limits, new.wanted, old_total);
    if next != new.wanted {
        return RollingStep::New(next);
    }
    let new_unavailable = new.wanted - new.available;
    let surplus = old_total + new.wanted - limits.min_available() - new_unavailable;
    if old_total == 0 || surplus <= 0 {
        return RollingStep::Rest;
    }
    let mut sizes: Vec<i64> = old.iter().map(|it| it.wanted).collect();
    let mut left = surplus;
    for (size, set) in sizes.iter_mut().zip(old) {
        let unavailable = (set.wanted - set.available).max(0);
        let less = unavailable.min(left);
        *size -= less;
        left -= less;
    }
    let available: i64 = old.iter().map(|it| it.available).sum();
    let mut left = (available + new.available - limits.min_available()).max(0);
    for size in &mut sizes {
        let less = left.min(*size);
        *size -= less;
        left -= less;
    }
    if sizes.iter().zip(old).all(|(size, set)| *size == set.wanted) {
        return RollingStep::Rest;
    }
    RollingStep::Old(sizes)
}

/// Returns the next size of the new set (`NewRSNewReplicas`), given the sum of the sizes of the others.
pub(super) fn new_size(limits: &RolloutLimits, wanted: i64, others: i64) -> i64 {
    if wanted >= limits.replicas {
        return limits.replicas;
    }
    let room = limits.max_total() - wanted - others;
    wanted + room.clamp(0, limits.replicas - wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(replicas: i64, max_surge: i64, max_unavailable: i64) -> RolloutLimits {
        RolloutLimits {
            replicas,
            max_surge,
            max_unavailable,
        }
    }

    fn size(wanted: i64, available: i64) -> SetSize {
        SetSize { wanted, available }
    }

    #[test]
    fn the_steps_are_those_of_kube_controller_manager() {
        let ten = limits(10, 3, 2);
        let cases = [
            (ten, size(0, 0), vec![size(10, 10)], RollingStep::New(3)),
            (
                ten,
                size(3, 0),
                vec![size(10, 10)],
                RollingStep::Old(vec![8]),
            ),
            (ten, size(3, 0), vec![size(8, 8)], RollingStep::New(5)),
            (ten, size(5, 0), vec![size(8, 8)], RollingStep::Rest),
            // One old pod is lost. Back to the old template: what cannot run goes first.
            (ten, size(5, 0), vec![size(8, 7)], RollingStep::Rest),
            (ten, size(8, 7), vec![size(5, 0)], RollingStep::Old(vec![1])),
            // Another template before the pods of the second have become available.
            (
                ten,
                size(0, 0),
                vec![size(8, 8), size(5, 0)],
                RollingStep::Old(vec![8, 0]),
            ),
            (
                ten,
                size(10, 10),
                vec![size(3, 3)],
                RollingStep::Old(vec![0]),
            ),
            (ten, size(12, 12), vec![], RollingStep::New(10)),
            (ten, size(10, 4), vec![], RollingStep::Rest),
            (
                limits(0, 0, 0),
                size(0, 0),
                vec![size(4, 4)],
                RollingStep::Old(vec![0]),
            ),
            // The oldest shrinks first.
            (
                limits(2, 0, 1),
                size(0, 0),
                vec![size(1, 1), size(1, 1)],
                RollingStep::Old(vec![0, 1]),
            ),
        ];
        for (limits, new, old, expected) in cases {
            assert_eq!(
                step(&limits, new, &old),
                expected,
                "{limits:?} {new:?} {old:?}"
            );
        }
    }

    fn set() -> impl Strategy<Value = SetSize> {
        (0..30i64, 0..30i64).prop_map(|(wanted, available)| size(wanted, available.min(wanted)))
    }

    fn any_limits() -> impl Strategy<Value = RolloutLimits> {
        (0..30i64, 0..10i64, 0..10i64).prop_map(|(replicas, surge, unavailable)| {
            let unavailable = if surge == 0 {
                unavailable.max(1)
            } else {
                unavailable
            };
            limits(replicas, surge, unavailable.min(replicas))
        })
    }

    /// Returns the number of pods that are sure to be available when sets have these sizes.
    fn kept(sizes: &[(i64, SetSize)]) -> i64 {
        sizes
            .iter()
            .map(|(size, set)| set.available.min(*size))
            .sum()
    }

    proptest! {
        #[test]
        fn no_step_makes_too_many_pods_or_leaves_too_few(
            limits in any_limits(),
            new in set(),
            old in prop::collection::vec(set(), 0..4),
        ) {
            let before: Vec<_> = old.iter().chain([&new]).map(|set| (set.wanted, *set)).collect();
            let mut after = before.clone();
            let last = old.len();
            match step(&limits, new, &old) {
                RollingStep::New(size) => after[last].0 = size,
                RollingStep::Old(sizes) => {
                    for (at, size) in sizes.into_iter().enumerate() {
                        after[at].0 = size;
                    }
                }
                RollingStep::Rest => {}
            }
            let total = |sizes: &[(i64, SetSize)]| sizes.iter().map(|(size, _)| size).sum::<i64>();
            prop_assert!(after.iter().all(|(size, _)| *size >= 0));
            prop_assert!(total(&after) <= total(&before).max(limits.max_total()));
            prop_assert!(kept(&after) >= kept(&before).min(limits.min_available()));
        }

        #[test]
        fn a_rollout_ends_when_pods_become_available(
            limits in any_limits(),
            mut new in set(),
            mut old in prop::collection::vec(set(), 0..4),
        ) {
            old.retain(|set| set.wanted > 0);
            for _ in 0..200 {
                match step(&limits, new, &old) {
                    RollingStep::New(size) => new.wanted = size,
                    RollingStep::Old(sizes) => {
                        for (set, size) in old.iter_mut().zip(sizes) {
                            set.wanted = size;
                        }
                    }
                    RollingStep::Rest if new.available == new.wanted => break,
                    RollingStep::Rest => new.available = new.wanted,
                }
                new.available = new.available.min(new.wanted);
                for set in &mut old {
                    set.available = set.available.min(set.wanted);
                }
                old.retain(|set| set.wanted > 0);
            }
            prop_assert_eq!((new.wanted, old.len()), (limits.replicas, 0));
        }
    }
}
