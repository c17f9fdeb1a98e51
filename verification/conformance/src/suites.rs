//! The lists of cases, as macros that make a test of each.

/// Says that a case cannot run here, because there is no etcd.
#[doc(hidden)]
pub fn skipped(case: &str) {
    ringwatch_testing::tools::skipped(case, "no etcd");
}

/// Makes a module of tests for every implementation that keeps its objects itself, with every case in it. A function
/// that builds a subject returns `None` if it needs an etcd and there is none.
///
/// ```ignore
/// suite! {
///     memory_store "the store in memory" super::subjects::memory_store;
/// }
/// ```
#[macro_export]
macro_rules! suite {
    ($($module:ident $what:literal $build:path;)*) => {
        $(
            mod $module {
                $crate::cases_of_any_store!($what $build);
                $crate::tests!($what $build, {
                    stored_form:
                        create_with_a_ttl_expires
                        update_can_set_a_ttl
                        an_object_that_is_made_again_outlives_its_former_time
                        objects_that_expire_together_are_all_told
                        corrupt_objects_are_named_and_stop_no_other;
                });
            }
        )*
    };
}

/// Makes a module of tests for every implementation that reaches its objects through an API, which gives them no time
/// to live and no bytes that are no object.
#[macro_export]
macro_rules! suite_over_an_api {
    ($($module:ident $what:literal $build:path;)*) => {
        $(
            mod $module {
                $crate::cases_of_any_store!($what $build);
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! cases_of_any_store {
    ($what:literal $build:path) => {
        $crate::tests!($what $build, {
            store:
                create_returns_what_is_stored
                create_refuses_a_version
                create_refuses_what_exists
                get_reads_by_version
                get_of_nothing_is_not_found
                delete_returns_the_last_content_at_its_own_revision
                delete_checks_its_preconditions
                delete_with_an_outdated_suggestion_deletes_the_newest
                delete_with_a_suggestion_of_a_deleted_object_is_not_found
                a_deletion_check_decides_on_the_newest_content
                keys_cannot_lead_out_of_their_type
                stats_count_objects
                the_current_version_is_that_of_the_last_write;
            updates:
                update_creates_if_it_may
                update_that_changes_nothing_writes_nothing
                update_with_an_outdated_suggestion_tries_twice
                update_with_a_suggestion_of_a_deleted_object_is_not_found
                update_retries_when_somebody_writes_in_between
                update_checks_its_preconditions
                a_rejection_of_outdated_content_is_not_believed;
            races:
                a_deletion_that_lost_a_race_checks_its_preconditions_again
                an_update_that_lost_a_race_checks_its_preconditions_again
                an_update_that_may_create_does_so_after_a_deletion_that_was_faster
                a_write_that_lost_a_race_is_decided_again;
            list:
                a_list_is_never_older_than_the_last_write
                lists_are_in_key_order_and_end_at_their_prefix
                a_single_key_is_listed_without_recursion
                selectors_filter
                pages_show_the_state_of_the_first
                pages_with_a_selector_skip_what_it_leaves_out
                every_version_rule_of_lists
                bad_tokens_are_refused
                what_is_compacted_is_gone_and_the_rest_can_be_had;
            watch:
                each_change_is_told_once_and_in_order
                a_watch_resumes_after_any_version
                a_watch_from_zero_begins_with_the_state
                objects_enter_and_leave_a_selection
                labels_select_too
                a_namespace_and_a_name_are_watched_alone
                initial_events_end_with_a_bookmark
                initial_events_without_bookmarks_have_no_end_mark
                an_empty_type_ends_its_initial_events_at_once
                a_compacted_version_is_expired
                unread_events_wait
                many_unread_watches_hold_up_no_write
                every_watcher_sees_the_same;
        });
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($what:literal $build:path, { $($group:ident: $($case:ident)*;)* }) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                match $build().await {
                    Some(subject) => $crate::$group::$case(subject).await,
                    None => $crate::skipped(concat!($what, " ", stringify!($case))),
                }
            }
        )*)*
    };
}
