//! Lists: pages, versions, selectors, corrupt values.

use ringwatch::budget::{Account, Ledger};
use ringwatch::meta::{LabelSelector, ResourceVersion, VersionMatch};
use ringwatch::storage::{
    CORRUPT_KEYS_MAX, ContinueToken, Interface as _, List, ListOptions, SelectionPredicate,
    StorageError,
};

use super::{ALL, Fixture, app, key, over_backends};

over_backends!(
    lists_end_at_segments,
    a_single_key_is_a_list_too,
    pages_stay_at_the_revision_of_the_first,
    selectors_fill_their_pages,
    a_list_asks_for_memory_page_by_page,
    versions_bind_lists,
    a_future_version_is_refused,
    compacted_versions_are_expired,
    a_compacted_page_offers_to_go_on_inconsistently,
    tokens_and_versions_exclude_each_other,
    corrupt_values_are_all_named,
    a_list_goes_on_without_corrupt_values_if_it_may,
    stats_count_and_weigh,
);

fn names(list: &List) -> Vec<&str> {
    list.items.iter().map(|object| object.name()).collect()
}

fn recursive() -> ListOptions {
    ListOptions {
        recursive: true,
        ..ListOptions::default()
    }
}

fn page(limit: u64, token: Option<String>) -> ListOptions {
    ListOptions {
        predicate: SelectionPredicate {
            limit,
            continue_token: token.unwrap_or_default(),
            ..SelectionPredicate::default()
        },
        ..recursive()
    }
}

fn at(version: u64, version_match: Option<VersionMatch>, limit: u64) -> ListOptions {
    ListOptions {
        resource_version: Some(ResourceVersion(version)),
        version_match,
        ..page(limit, None)
    }
}

async fn list(fixture: &Fixture, options: ListOptions) -> Result<List, StorageError> {
    fixture.store.get_list(ALL, options).await
}

async fn lists_end_at_segments(fixture: Fixture) {
    fixture.create("a", "x").await;
    let value = r#"{"kind":"A","apiVersion":"v1","metadata":{"name":"stranger"}}"#;
    fixture
        .write_raw("/registry/configmapsx/default/a", value)
        .await;
    let last = fixture.write_raw("/registry/configmaps0", value).await;
    let all = list(&fixture, recursive()).await.expect("a list");
    assert_eq!((names(&all), all.revision), (vec!["a"], last));
    assert_eq!((all.continue_token, all.remaining_item_count), (None, None));
    let scoped = fixture
        .store
        .get_list("/configmaps/default", recursive())
        .await;
    assert_eq!(names(&scoped.expect("a list")), ["a"]);
    let empty = fixture.store.get_list("/configmaps/def", recursive()).await;
    assert!(empty.expect("a list").items.is_empty());
}

async fn a_single_key_is_a_list_too(fixture: Fixture) {
    fixture.create("a", "x").await;
    let last = fixture.create("b", "x").await.revision();
    for (name, expected) in [("a", vec!["a"]), ("c", vec![])] {
        let options = ListOptions::default();
        let single = fixture.store.get_list(&key(name), options).await;
        let single = single.expect("a list");
        assert_eq!((names(&single), single.revision), (expected, last));
    }
}

async fn pages_stay_at_the_revision_of_the_first(fixture: Fixture) {
    for name in ["a", "b", "d", "e", "f"] {
        fixture.create(name, "x").await;
    }
    let first = list(&fixture, page(2, None)).await.expect("a page");
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first.remaining_item_count, Some(3));
    fixture.create("c", "x").await;
    fixture.delete("e").await;
    let second = list(&fixture, page(2, first.continue_token))
        .await
        .expect("a page");
    assert_eq!(
        (names(&second), second.revision),
        (vec!["d", "e"], first.revision)
    );
    assert_eq!(second.remaining_item_count, Some(1));
    let third = list(&fixture, page(2, second.continue_token))
        .await
        .expect("a page");
    assert_eq!((names(&third), third.revision), (vec!["f"], first.revision));
    assert_eq!(
        (third.continue_token, third.remaining_item_count),
        (None, None)
    );
}

async fn selectors_fill_their_pages(fixture: Fixture) {
    for number in 0..40 {
        let app = if number % 10 == 9 { "rare" } else { "common" };
        fixture.create(&format!("{number:02}"), app).await;
    }
    let rare = |limit, token| {
        let mut options = page(limit, token);
        options.predicate.label = LabelSelector::parse("app=rare").expect("a selector");
        options
    };
    let first = list(&fixture, rare(3, None)).await.expect("a page");
    assert_eq!(names(&first), ["09", "19", "29"]);
    assert_eq!(first.remaining_item_count, None);
    let second = list(&fixture, rare(3, first.continue_token))
        .await
        .expect("a page");
    assert_eq!(names(&second), ["39"]);
    assert_eq!(second.continue_token, None);
    let all = list(&fixture, rare(0, None)).await.expect("a list");
    assert!(all.items.iter().all(|object| app(object) == "rare"));
    assert_eq!(all.items.len(), 4);
}

/// A type of which nothing has been read yet is read object by object at first.
async fn a_list_asks_for_memory_page_by_page(fixture: Fixture) {
    for number in 0..30 {
        let app = "x".repeat(20 << 10);
        fixture.create(&format!("{number:02}"), &app).await;
    }
    let with = |ledger: &Ledger, limit, token| ListOptions {
        memory: Some(ledger.clone()),
        ..page(limit, token)
    };
    let small = Ledger::new(512 << 10);
    let refused = list(&fixture, with(&small, 0, None)).await;
    let refused = refused.expect_err("too long");
    assert!(matches!(refused, StorageError::OutOfMemory(_)), "{refused}");
    assert_eq!(small.total(), 0);

    let ledger = Ledger::new(8 << 20);
    let all = list(&fixture, with(&ledger, 0, None)).await.expect("room");
    let plain = list(&fixture, page(0, None)).await.expect("a list");
    assert_eq!(names(&all), names(&plain));
    assert_eq!(all.revision, plain.revision);
    assert_eq!(
        (&all.continue_token, all.remaining_item_count),
        (&None, None)
    );
    let held = ledger.spent(Account::Requests);
    assert!((600 << 10..700 << 10).contains(&held), "{held} bytes");
    drop(all);
    assert_eq!(ledger.total(), 0);

    let first = list(&fixture, with(&ledger, 25, None)).await.expect("room");
    assert_eq!(names(&first), names(&plain)[..25]);
    assert_eq!(first.remaining_item_count, Some(5));
    let rest = with(&ledger, 25, first.continue_token.clone());
    let rest = list(&fixture, rest).await.expect("room");
    assert_eq!(names(&rest), names(&plain)[25..]);
}

async fn versions_bind_lists(fixture: Fixture) {
    let first = fixture.create("a", "x").await.revision();
    let last = fixture.create("b", "x").await.revision();
    use VersionMatch::{Exact, NotOlderThan};
    for (options, expected) in [
        (recursive(), (2, last)),
        (at(0, None, 0), (2, last)),
        (at(first, None, 0), (2, last)),
        // The legacy meaning of a version with a limit.
        (at(first, None, 10), (1, first)),
        (at(first, Some(NotOlderThan), 10), (2, last)),
        (at(first, Some(NotOlderThan), 0), (2, last)),
        (at(0, Some(NotOlderThan), 0), (2, last)),
        (at(first, Some(Exact), 0), (1, first)),
        (at(first, Some(Exact), 10), (1, first)),
    ] {
        let found = list(&fixture, options.clone()).await.expect("a list");
        assert_eq!((found.items.len(), found.revision), expected, "{options:?}");
    }
}

async fn a_future_version_is_refused(fixture: Fixture) {
    let last = fixture.create("a", "x").await.revision();
    for version_match in [
        None,
        Some(VersionMatch::Exact),
        Some(VersionMatch::NotOlderThan),
    ] {
        let refused = list(&fixture, at(last + 5, version_match, 0)).await;
        assert!(
            matches!(refused, Err(StorageError::TooLargeResourceVersion {
                requested, current, retry_after_seconds: 0,
            }) if (requested, current) == (last + 5, last)),
            "{refused:?}"
        );
    }
}

async fn compacted_versions_are_expired(fixture: Fixture) {
    let first = fixture.create("a", "x").await.revision();
    let last = fixture.create("b", "x").await.revision();
    fixture.backend.compact(last).await.expect("a compaction");
    let exact = Some(VersionMatch::Exact);
    let expired = list(&fixture, at(first, exact, 0)).await;
    assert!(
        matches!(expired, Err(StorageError::ListExpired)),
        "{expired:?}"
    );
    let kept = list(&fixture, at(last, exact, 0)).await.expect("a list");
    assert_eq!(kept.items.len(), 2);
}

async fn a_compacted_page_offers_to_go_on_inconsistently(fixture: Fixture) {
    for name in ["a", "b", "c"] {
        fixture.create(name, "x").await;
    }
    let first = list(&fixture, page(1, None)).await.expect("a page");
    let last = fixture.create("d", "x").await.revision();
    fixture.backend.compact(last).await.expect("a compaction");
    let expired = list(&fixture, page(1, first.continue_token)).await;
    let Err(StorageError::ContinueExpired { token }) = expired else {
        panic!("{expired:?}");
    };
    let decoded = ContinueToken::decode(&token, "/registry/configmaps/").expect("a token");
    assert_eq!(decoded.revision, None);
    let rest = list(&fixture, page(0, Some(token)))
        .await
        .expect("the rest");
    assert_eq!((names(&rest), rest.revision), (vec!["b", "c", "d"], last));
}

async fn tokens_and_versions_exclude_each_other(fixture: Fixture) {
    for name in ["a", "b"] {
        fixture.create(name, "x").await;
    }
    let first = list(&fixture, page(1, None)).await.expect("a page");
    let with_version = |version| ListOptions {
        resource_version: Some(ResourceVersion(version)),
        ..page(1, first.continue_token.clone())
    };
    let refused = list(&fixture, with_version(1)).await;
    assert!(matches!(refused, Err(StorageError::ContinueWithVersion)));
    assert!(list(&fixture, with_version(0)).await.is_ok());
    let broken = list(&fixture, page(1, Some("broken!".to_owned()))).await;
    assert!(matches!(broken, Err(StorageError::InvalidContinue(_))));
}

async fn corrupt_values_are_all_named(fixture: Fixture) {
    fixture.create("a", "x").await;
    for number in 0..120 {
        let full = format!("/registry/configmaps/default/bad-{number:03}");
        fixture.write_raw(&full, "garbage").await;
    }
    let corrupt = list(&fixture, recursive()).await;
    let Err(StorageError::Corrupt { keys }) = corrupt else {
        panic!("{corrupt:?}");
    };
    // The last one says that there are more.
    assert_eq!(keys.len(), CORRUPT_KEYS_MAX + 1);
    assert_eq!(keys[0].0, "/registry/configmaps/default/bad-000");
    assert_eq!(keys[99].0, "/registry/configmaps/default/bad-099");
}

async fn a_list_goes_on_without_corrupt_values_if_it_may(fixture: Fixture) {
    fixture.create("a", "x").await;
    let bad = "/registry/configmaps/default/bad";
    fixture.write_raw(bad, "garbage").await;
    fixture.create("c", "x").await;
    let options = ListOptions {
        skip_corrupt: true,
        ..recursive()
    };
    let list = list(&fixture, options).await.expect("a list");
    assert_eq!(names(&list), ["a", "c"]);
    let [(key, why)] = list.corrupt.as_slice() else {
        panic!("{:?}", list.corrupt);
    };
    assert_eq!(key, bad);
    assert!(why.contains("object not decodable"), "{why}");
}

async fn stats_count_and_weigh(fixture: Fixture) {
    let empty = fixture.store.stats().await.expect("figures");
    assert_eq!(
        (
            empty.object_count,
            empty.estimated_average_object_size_bytes
        ),
        (0, 0)
    );
    let size = fixture.create("a", "x").await.stored().len() as u64;
    fixture.create("b", "y").await;
    let two = fixture.store.stats().await.expect("figures");
    assert_eq!(
        (two.object_count, two.estimated_average_object_size_bytes),
        (2, size)
    );
}
