//! Lists: versions, selectors, pages.

use ringwatch::meta::{FieldSelector, LabelSelector, ResourceVersion, VersionMatch};
use ringwatch::storage::{DeleteOptions, List, ListOptions, StorageError};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::Subject;
use super::objects::key;

/// Returns the names in a list, with their namespaces.
fn names(list: &List) -> Vec<String> {
    list.items
        .iter()
        .map(|item| format!("{}/{}", item.namespace(), item.name()))
        .collect()
}

fn at(version: u64) -> impl FnOnce(&mut ListOptions) {
    move |options| options.resource_version = Some(ResourceVersion(version))
}

fn exactly(version: u64) -> impl FnOnce(&mut ListOptions) {
    move |options| {
        options.resource_version = Some(ResourceVersion(version));
        options.version_match = Some(VersionMatch::Exact);
    }
}

fn page(limit: u64, token: Option<String>) -> impl FnOnce(&mut ListOptions) {
    move |options| {
        options.predicate.limit = limit;
        options.predicate.continue_token = token.unwrap_or_default();
    }
}

pub async fn a_list_is_never_older_than_the_last_write(subject: Subject) {
    for number in 0..20 {
        let name = format!("p{number:02}");
        let created = subject.create("ns", &name).await;
        let list = subject.list("/pods/", |_| {}).await.unwrap();
        assert!(list.revision >= created.revision());
        assert_eq!(list.items.len(), number + 1);
        assert_eq!(list.items[number].bytes(), created.bytes());
    }
    subject
        .delete("ns", "p07", DeleteOptions::default())
        .await
        .unwrap();
    let list = subject.list("/pods/", |_| {}).await.unwrap();
    assert!(!names(&list).contains(&"ns/p07".to_owned()));
}

pub async fn lists_are_in_key_order_and_end_at_their_prefix(subject: Subject) {
    for (namespace, name) in [("foo", "b"), ("foobar", "a"), ("foo", "a"), ("bar", "z")] {
        subject.create(namespace, name).await;
    }
    let all = subject.list("/pods/", |_| {}).await.unwrap();
    assert_eq!(names(&all), ["bar/z", "foo/a", "foo/b", "foobar/a"]);
    let one = subject.list("/pods/foo/", |_| {}).await.unwrap();
    assert_eq!(names(&one), ["foo/a", "foo/b"]);
    let none = subject.list("/pods/fo/", |_| {}).await.unwrap();
    assert!(none.items.is_empty());
    assert!(none.revision > 0, "an empty list has a version too");
}

pub async fn a_single_key_is_listed_without_recursion(subject: Subject) {
    let wanted = subject.create("ns", "a").await;
    subject.create("ns", "ab").await;
    subject.catch_up().await;
    for version in [None, Some(0), Some(wanted.revision())] {
        let list = subject
            .list(&key("ns", "a"), |options| {
                options.recursive = false;
                options.resource_version = version.map(ResourceVersion);
            })
            .await
            .unwrap();
        assert_eq!(names(&list), ["ns/a"], "at {version:?}");
    }
    let none = subject
        .list(&key("ns", "none"), |options| options.recursive = false)
        .await;
    assert!(none.unwrap().items.is_empty());
}

pub async fn selectors_filter(subject: Subject) {
    for name in ["a", "b", "c"] {
        subject.create("ns", name).await;
    }
    subject.set_node("ns", "b", "n1").await;
    let by_label = subject
        .list("/pods/", |options| {
            options.predicate.label = LabelSelector::parse("name in (a, b)").unwrap();
        })
        .await
        .unwrap();
    assert_eq!(names(&by_label), ["ns/a", "ns/b"]);
    subject.catch_up().await;
    for version in [None, Some(ResourceVersion(0))] {
        let by_field = subject
            .list("/pods/", |options| {
                options.predicate.field = FieldSelector::parse("spec.nodeName=n1").unwrap();
                options.resource_version = version;
            })
            .await
            .unwrap();
        assert_eq!(names(&by_field), ["ns/b"], "at {version:?}");
    }
}

pub async fn pages_show_the_state_of_the_first(subject: Subject) {
    for name in ["a", "c", "e", "g", "i"] {
        subject.create("ns", name).await;
    }
    let first = subject.list("/pods/", page(2, None)).await.unwrap();
    assert_eq!(names(&first), ["ns/a", "ns/c"]);
    assert_eq!(first.remaining_item_count, Some(3));

    subject.create("ns", "d").await;
    subject.set_node("ns", "e", "later").await;
    subject
        .delete("ns", "g", DeleteOptions::default())
        .await
        .unwrap();

    let second = subject
        .list("/pods/", page(2, first.continue_token))
        .await
        .unwrap();
    assert_eq!(
        names(&second),
        ["ns/e", "ns/g"],
        "neither d nor the deletion of g"
    );
    assert_eq!(second.revision, first.revision);
    assert_eq!(
        second.items[0].attributes().field("spec.nodeName"),
        Some("")
    );
    assert_eq!(second.remaining_item_count, Some(1));
    let last = subject
        .list("/pods/", page(2, second.continue_token))
        .await
        .unwrap();
    assert_eq!(names(&last), ["ns/i"]);
    assert_eq!(
        (last.continue_token, last.remaining_item_count),
        (None, None)
    );
}

pub async fn pages_with_a_selector_skip_what_it_leaves_out(subject: Subject) {
    for number in 0..30 {
        let name = format!("p{number:02}");
        subject.create("ns", &name).await;
        if number % 10 == 9 {
            subject.set_node("ns", &name, "n1").await;
        }
    }
    let rare = |limit, token: Option<String>| {
        move |options: &mut ListOptions| {
            page(limit, token)(options);
            options.predicate.field = FieldSelector::parse("spec.nodeName=n1").unwrap();
        }
    };
    let first = subject.list("/pods/", rare(2, None)).await.unwrap();
    assert_eq!(names(&first), ["ns/p09", "ns/p19"]);
    assert_eq!(first.remaining_item_count, None, "nobody counted");
    let last = subject
        .list("/pods/", rare(2, first.continue_token))
        .await
        .unwrap();
    assert_eq!(names(&last), ["ns/p29"]);
    assert_eq!(last.continue_token, None);
}

pub async fn every_version_rule_of_lists(subject: Subject) {
    let first = subject.create("ns", "a").await.revision();
    let second = subject.create("ns", "b").await.revision();
    let exact = subject.list("/pods/", exactly(first)).await.unwrap();
    assert_eq!(
        (names(&exact), exact.revision),
        (vec!["ns/a".to_owned()], first)
    );
    let exact = subject.list("/pods/", exactly(second)).await.unwrap();
    assert_eq!(exact.items.len(), 2);

    for version_match in [None, Some(VersionMatch::NotOlderThan)] {
        let list = subject
            .list("/pods/", |options| {
                at(first)(options);
                options.version_match = version_match;
            })
            .await
            .unwrap();
        assert!(list.revision >= first);
        assert!(names(&list).contains(&"ns/a".to_owned()));
    }
    let legacy = subject
        .list("/pods/", |options| {
            page(5, None)(options);
            options.resource_version = Some(ResourceVersion(first));
        })
        .await
        .unwrap();
    assert_eq!(
        names(&legacy),
        ["ns/a"],
        "with a limit an unset match is exact"
    );

    let any = subject.list("/pods/", at(0)).await.unwrap();
    assert!(any.revision > 0);
    for version_match in [VersionMatch::Exact, VersionMatch::NotOlderThan] {
        let future = subject
            .list("/pods/", |options| {
                at(second + 1_000_000)(options);
                options.version_match = Some(version_match);
            })
            .await;
        assert!(
            matches!(future, Err(StorageError::TooLargeResourceVersion { .. })),
            "{future:?}"
        );
    }
}

pub async fn bad_tokens_are_refused(subject: Subject) {
    subject.create("ns", "a").await;
    subject.create("ns", "b").await;
    let bad = subject
        .list("/pods/", page(1, Some("abc".to_owned())))
        .await;
    assert!(
        matches!(bad, Err(StorageError::InvalidContinue(_))),
        "{bad:?}"
    );
    let first = subject.list("/pods/", page(1, None)).await.unwrap();
    let both = subject
        .list("/pods/", |options| {
            page(1, first.continue_token)(options);
            options.resource_version = Some(ResourceVersion(first.revision));
        })
        .await;
    assert!(
        matches!(both, Err(StorageError::ContinueWithVersion)),
        "{both:?}"
    );
}

pub async fn what_is_compacted_is_gone_and_the_rest_can_be_had(subject: Subject) {
    for name in ["a", "b", "c"] {
        subject.create("ns", name).await;
    }
    let first = subject.list("/pods/", page(1, None)).await.unwrap();
    let newest = subject.fill_the_window().await;
    subject.compact(newest).await;

    // A cache hears of the compaction, and lets go of its own history, a moment later.
    eventually(DEADLINE, "the version is expired", async || {
        match subject.list("/pods/", exactly(first.revision)).await {
            Err(StorageError::ListExpired) => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let expired = eventually(DEADLINE, "the page expires with the list", async || {
        let next = page(1, first.continue_token.clone());
        match subject.list("/pods/", next).await {
            Err(StorageError::ContinueExpired { token }) => Ok(token),
            other => Err(other),
        }
    });
    let token = expired.await;
    let rest = subject.list("/pods/", page(1, Some(token))).await.unwrap();
    assert_eq!(
        names(&rest),
        ["ns/b"],
        "inconsistent, but from where it stopped"
    );
    assert!(rest.revision >= newest);
    let last = subject
        .list("/pods/", page(1, rest.continue_token))
        .await
        .unwrap();
    assert_eq!(names(&last), ["ns/c"]);
    subject.list("/pods/", |_| {}).await.unwrap();
}
