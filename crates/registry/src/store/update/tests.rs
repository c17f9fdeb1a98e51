//! Tests of updates: conflicts, what clients may not change, and creation by PUT.

use ringwatch::codec;
use ringwatch_apimachinery::NameRule;
use serde_json::json;

use super::*;
use crate::testing::{Fixture, OtherWrite, Put, TestStrategy, config_map, patch};

impl Fixture {
    async fn update(
        &self,
        name: &str,
        updated: &mut dyn UpdatedObject,
    ) -> Result<(Value, bool), Error> {
        self.update_with(UpdateOptions::default(), name, updated)
            .await
    }

    async fn update_with(
        &self,
        options: UpdateOptions,
        name: &str,
        updated: &mut dyn UpdatedObject,
    ) -> Result<(Value, bool), Error> {
        let context = &self.context;
        let result = self.store.update(context, "ns", name, updated, &options);
        let result = result.await;
        result.map(|(object, created)| (codec::tree(&object).expect("an object"), created))
    }

    /// Updates what may be updated; returns the object as it is then.
    async fn updated(&self, name: &str, mut updated: impl UpdatedObject) -> Value {
        let updated = self.update(name, &mut updated).await;
        updated.expect("it is not refused").0
    }

    /// Returns the error of an update that is refused.
    async fn refused(&self, name: &str, mut updated: impl UpdatedObject) -> Error {
        let refused = self.update(name, &mut updated).await;
        refused.expect_err("it is refused")
    }

    async fn begin_deletion(&self, name: &str) {
        let options = Default::default();
        let deleted = self.store.delete(&self.context, "ns", name, options).await;
        deleted.expect("it begins");
    }
}

#[tokio::test]
async fn the_strategy_is_called_in_kubernetes_order() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let (updated, created) = fixture
        .update("a", &mut patch(|object| object["data"]["k"] = json!("w")))
        .await
        .expect("updated");
    assert!(!created);
    assert_eq!(
        fixture.strategy.take_calls(),
        [
            "default",
            "default",
            "prepare_for_update",
            "validate_update",
            "warnings_on_update",
            "canonicalize"
        ]
    );
    assert_eq!(updated["metadata"]["generation"], 2);
    assert_eq!(updated["metadata"]["resourceVersion"], "3");
    assert!(
        fixture
            .context
            .warnings()
            .contains(&"updated with a warning".to_owned())
    );
}

#[tokio::test]
async fn what_only_the_server_sets_is_kept() {
    let fixture = Fixture::new(TestStrategy::default());
    let old = fixture.create(json!({"name": "a"})).await;
    let put = config_map(
        json!({"name": "a", "generation": 7, "creationTimestamp": "2000-01-01T00:00:00Z"}),
    );
    let updated = fixture.updated("a", Put(put)).await;
    for member in ["uid", "creationTimestamp", "generation", "namespace"] {
        assert_eq!(
            updated["metadata"][member], old["metadata"][member],
            "{member}"
        );
    }
}

#[tokio::test]
async fn immutable_fields_cannot_change() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let change = patch(|object| object["metadata"]["uid"] = json!("other"));
    let error = fixture.refused("a", change).await;
    assert_eq!(
        error.to_string(),
        "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable"
    );
    let mut change =
        patch(|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z"));
    let error = fixture.update("a", &mut change).await.expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("metadata.deletionTimestamp: Invalid value")
    );
    let change = patch(|object| object["metadata"]["namespace"] = json!("other"));
    let error = fixture.refused("a", change).await;
    assert!(matches!(error, Error::BadRequest(_)), "{error}");
}

#[tokio::test]
async fn an_old_name_may_be_kept_that_could_not_be_given() {
    let fixture = Fixture::new(TestStrategy::default());
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Old_Name", "namespace": "ns"}});
    let key = "/configmaps/ns/Old_Name";
    fixture
        .store
        .storage()
        .create(key, &object, None)
        .await
        .expect("stored");
    let change = patch(|object| object["data"] = json!({"k": "w"}));
    fixture.updated("Old_Name", change).await;
}

#[tokio::test]
async fn what_a_name_is_generated_from_is_judged_by_two_rules() {
    let fixture = Fixture::with_a(TestStrategy {
        names_on_update: NameRule::DnsLabel,
        ..TestStrategy::default()
    })
    .await;
    let refused = async |name: &'static str| {
        let change = patch(move |object| object["metadata"]["generateName"] = name.into());
        let Error::Invalid { errors, .. } = fixture.refused("a", change).await else {
            panic!("valid: {name}");
        };
        errors.into_iter().map(|it| it.detail).collect::<Vec<_>>()
    };
    let both = refused("a/").await;
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].contains("may not contain '/'"), "{both:?}");
    assert!(both[1].contains("a lowercase RFC 1123 label"), "{both:?}");
    assert_eq!(refused("A_").await.len(), 1);
}

#[tokio::test]
async fn what_was_stored_before_a_default_is_not_changed_by_it() {
    let fixture = Fixture::new(TestStrategy::default());
    let object = config_map(json!({"name": "a", "namespace": "ns"}));
    let storage = fixture.store.storage();
    let stored = storage.create("/configmaps/ns/a", &object, None).await;
    assert!(codec::tree(&stored.expect("stored")).expect("an object")["defaulted"].is_null());
    let change = patch(|object| {
        assert_eq!(
            object["defaulted"], true,
            "the change is one of what is read"
        );
        object["data"] = json!({"k": "w"});
    });
    let updated = fixture.updated("a", change).await;
    assert_eq!(updated["defaulted"], true);
}

#[tokio::test]
async fn what_is_invalid_is_refused() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let mut change = patch(|object| {
        object["data"]["bad"] = json!("x");
        object["metadata"]["labels"] = json!({"a b": "c"});
    });
    let error = fixture
        .update("a", &mut change)
        .await
        .expect_err("refused")
        .to_string();
    assert!(
        error.starts_with("ConfigMap \"a\" is invalid: [metadata.labels: Invalid value: \"a b\""),
        "{error}"
    );
    assert!(error.ends_with("data.bad: Forbidden: not here]"), "{error}");
    assert_eq!(fixture.storage.revision().await, 2);
}

#[tokio::test]
async fn a_missing_object_is_not_found() {
    let fixture = Fixture::new(TestStrategy::default());
    let put = config_map(json!({"name": "newone"}));
    let error = fixture.refused("newone", Put(put)).await;
    assert_eq!(error.to_string(), "configmaps \"newone\" not found");
}

#[tokio::test]
async fn an_outdated_version_conflicts() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    fixture
        .updated("a", patch(|object| object["data"]["k"] = json!("w")))
        .await;
    let put = config_map(json!({"name": "a", "resourceVersion": "2"}));
    let error = fixture.refused("a", Put(put)).await;
    assert_eq!(
        error.to_string(),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

#[tokio::test]
async fn a_missing_version_overwrites_where_the_type_allows_it() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let put = config_map(json!({"name": "a", "labels": {"x": "y"}}));
    let updated = fixture.updated("a", Put(put)).await;
    assert_eq!(updated["metadata"]["resourceVersion"], "3");
}

#[tokio::test]
async fn a_missing_version_is_refused_where_the_type_does_not_allow_it() {
    let fixture = Fixture::with_a(TestStrategy {
        unconditional_update: false,
        ..TestStrategy::default()
    })
    .await;
    let put = config_map(json!({"name": "a"}));
    let error = fixture.refused("a", Put(put)).await;
    assert_eq!(
        error.to_string(),
        "configmaps \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
}

#[tokio::test]
async fn the_uid_of_a_put_is_a_precondition() {
    let fixture = Fixture::new(TestStrategy::default());
    let uid = fixture.create(json!({"name": "c02"})).await["metadata"]["uid"].clone();
    let wanted = "11111111-2222-3333-4444-555555555555";
    let put = config_map(json!({"name": "c02", "uid": wanted}));
    let error = fixture.refused("c02", Put(put)).await;
    assert_eq!(
        error.to_string(),
        format!(
            "Operation cannot be fulfilled on configmaps \"c02\": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns/c02, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {}",
            uid.as_str().unwrap()
        )
    );
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let same = fixture.updated("a", patch(|_| {})).await;
    assert_eq!(
        (
            same["metadata"]["resourceVersion"].as_str(),
            fixture.storage.revision().await
        ),
        (Some("2"), 2)
    );
}

#[tokio::test]
async fn new_times_of_managed_fields_alone_are_dropped() {
    let fixture = Fixture::new(TestStrategy::default());
    let managed = |time: &str| json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]);
    let mut object = config_map(
        json!({"name": "a", "namespace": "ns", "managedFields": managed("2026-01-01T00:00:00Z")}),
    );
    object["defaulted"] = json!(true);
    object["canonical"] = json!(true);
    fixture
        .store
        .storage()
        .create("/configmaps/ns/a", &object, None)
        .await
        .expect("stored");
    let again = Applied(managed("2026-01-02T00:00:00Z"), json!("v"));
    let same = fixture.updated("a", again).await;
    assert_eq!(
        same["metadata"]["managedFields"],
        managed("2026-01-01T00:00:00Z")
    );
    assert_eq!(fixture.storage.revision().await, 2);

    let changed = Applied(managed("2026-01-02T00:00:00Z"), json!("w"));
    let changed = fixture.updated("a", changed).await;
    assert_eq!(
        changed["metadata"]["managedFields"],
        managed("2026-01-02T00:00:00Z")
    );
}

/// An update that tracks its fields itself.
struct Applied(Value, Value);

#[async_trait]
impl UpdatedObject for Applied {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let mut object = existing
            .cloned()
            .unwrap_or_else(|| config_map(json!({"name": "a"})));
        object["metadata"]["managedFields"] = self.0.clone();
        object["data"]["k"] = self.1.clone();
        Ok(object)
    }

    fn managed_fields_are_current(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn an_update_is_tried_again_when_somebody_else_was_faster() {
    let fixture = Fixture::with_a(TestStrategy::default()).await;
    let mut racing = Racing {
        fixture: &fixture,
        calls: 0,
    };
    let options = UpdateOptions::default();
    let result = fixture
        .store
        .update(&fixture.context, "ns", "a", &mut racing, &options)
        .await;
    let updated = codec::tree(&result.expect("updated").0).expect("an object");
    assert_eq!(racing.calls, 2);
    assert_eq!(
        updated["data"],
        json!({"k": "v", "mine": "1", "theirs": "1"})
    );
}

/// A patch that loses its first race.
struct Racing<'a> {
    fixture: &'a Fixture,
    calls: u32,
}

#[async_trait]
impl UpdatedObject for Racing<'_> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        self.calls += 1;
        if self.calls == 1 {
            let mut theirs = patch(|object| object["data"]["theirs"] = json!("1"));
            self.fixture.update("a", &mut theirs).await?;
        }
        let mut object = existing.cloned().expect("it exists");
        object["data"]["mine"] = json!("1");
        Ok(object)
    }
}

#[tokio::test]
async fn an_update_may_create_where_the_type_allows_it() {
    let fixture = Fixture::new(TestStrategy {
        create_on_update: true,
        ..TestStrategy::default()
    });
    let put = config_map(json!({"name": "a"}));
    let (created, is_new) = fixture.update("a", &mut Put(put)).await.expect("created");
    assert!(is_new);
    assert!(created["metadata"]["uid"].is_string());
    assert_eq!(
        fixture.strategy.take_calls(),
        [
            "default",
            "prepare_for_create",
            "validate",
            "warnings_on_create",
            "canonicalize"
        ]
    );
    let put = config_map(json!({"name": "b", "namespace": "other"}));
    assert!(matches!(
        fixture.update("b", &mut Put(put)).await,
        Err(Error::BadRequest(_))
    ));
}

#[tokio::test]
async fn an_apply_may_create_whatever_the_type_says() {
    let fixture = Fixture::new(TestStrategy::default());
    let options = UpdateOptions {
        force_allow_create: true,
        ..UpdateOptions::default()
    };
    let mut put = Put(config_map(json!({"name": "a"})));
    let result = fixture
        .store
        .update(&fixture.context, "ns", "a", &mut put, &options)
        .await;
    assert!(result.expect("created").1);
}

#[tokio::test]
async fn a_subresource_has_its_own_strategy_and_never_creates() {
    let mut fixture = Fixture::with_a(TestStrategy {
        create_on_update: true,
        ..TestStrategy::default()
    })
    .await;
    fixture.context.subresource = "status".to_owned();
    let change = patch(|object| {
        object["status"] = json!({"ready": true});
        object["data"]["k"] = json!("ignored");
    });
    let updated = fixture.updated("a", change).await;
    assert_eq!(
        (&updated["status"]["ready"], &updated["data"]["k"]),
        (&json!(true), &json!("v"))
    );
    let put = config_map(json!({"name": "b"}));
    let error = fixture.refused("b", Put(put)).await;
    assert_eq!(error.to_string(), "configmaps \"b\" not found");
}

#[tokio::test]
async fn removing_the_last_finalizer_deletes() {
    let fixture = Fixture::new(TestStrategy::default());
    fixture
        .create(json!({"name": "a", "finalizers": ["x/y", "x/z"]}))
        .await;
    fixture.begin_deletion("a").await;
    let one = patch(|object| object["metadata"]["finalizers"] = json!(["x/z"]));
    fixture.updated("a", one).await;
    assert!(fixture.stored("a").await.is_some());
    let mut none = patch(|object| object["metadata"]["finalizers"] = json!(null));
    let (last, created) = fixture.update("a", &mut none).await.expect("deleted");
    assert!(last["metadata"]["finalizers"].is_null() && !created);
    assert_eq!(last["metadata"]["resourceVersion"], "4");
    assert_eq!(fixture.stored("a").await, None);
}

/// Two clients remove the last finalizer at once: the one whose removal of the object comes second has done its part
/// too.
#[tokio::test]
async fn an_object_that_another_client_removes_first_is_answered_as_it_was() {
    let fixture = Fixture::new(TestStrategy::default());
    fixture
        .create(json!({"name": "a", "finalizers": ["x/y"]}))
        .await;
    let deleted = fixture
        .store
        .delete(&fixture.context, "ns", "a", Default::default());
    assert!(!deleted.await.expect("it begins").finished);
    fixture.storage.write_before_deletion(OtherWrite::Removes);
    let mut none = patch(|object| object["metadata"]["finalizers"] = json!(null));
    let (last, created) = fixture.update("a", &mut none).await.expect("removed");
    assert!(last["metadata"]["finalizers"].is_null() && !created);
    assert_eq!(last["metadata"]["resourceVersion"], "3");
    assert_eq!(fixture.stored("a").await, None);
}

#[tokio::test]
async fn a_pending_grace_period_outlasts_the_last_finalizer() {
    let fixture = Fixture::new(TestStrategy {
        grace: Some(30),
        ..TestStrategy::default()
    });
    fixture
        .create(json!({"name": "a", "finalizers": ["x/y"]}))
        .await;
    fixture.begin_deletion("a").await;
    let none = patch(|object| object["metadata"]["finalizers"] = json!([]));
    let updated = fixture.updated("a", none).await;
    assert_eq!(updated["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(fixture.stored("a").await.is_some());
}

#[tokio::test]
async fn a_dry_run_updates_nothing() {
    let fixture = Fixture::with_a(TestStrategy {
        create_on_update: true,
        ..TestStrategy::default()
    })
    .await;
    let options = UpdateOptions {
        dry_run: true,
        ..UpdateOptions::default()
    };
    let mut change = patch(|object| {
        object["data"]["k"] = json!("w");
        object["metadata"]["selfLink"] = json!("/x");
    });
    let result = fixture
        .store
        .update(&fixture.context, "ns", "a", &mut change, &options)
        .await;
    let updated = codec::tree(&result.expect("it could be").0).expect("an object");
    assert_eq!(
        (
            &updated["data"]["k"],
            &updated["metadata"]["selfLink"],
            &updated["metadata"]["resourceVersion"]
        ),
        (&json!("w"), &json!("/x"), &json!("2"))
    );
    assert_eq!(fixture.stored("a").await.expect("stored")["data"]["k"], "v");

    for (metadata, revision) in [
        (json!({"name": "b"}), 0),
        (json!({"name": "b", "resourceVersion": "5"}), 5),
    ] {
        let mut put = Put(config_map(metadata));
        let result = fixture
            .store
            .update(&fixture.context, "ns", "b", &mut put, &options)
            .await;
        let (created, is_new) = result.expect("it could be");
        assert!(is_new && created.revision() == revision);
    }
    assert_eq!(
        (fixture.stored("b").await, fixture.storage.revision().await),
        (None, 2)
    );
}

#[tokio::test]
async fn updates_see_the_served_version() {
    let fixture = Fixture::new(TestStrategy {
        converts: true,
        ..TestStrategy::default()
    });
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "content": {"k": "v"}});
    fixture.create_object(object).await;
    let mut change = patch(|object| {
        assert!(object["data"].is_null());
        object["content"]["k"] = json!("w");
    });
    let updated = fixture.update("a", &mut change).await;
    updated.expect("updated");
    assert_eq!(change.calls, 1);
    assert_eq!(fixture.stored("a").await.expect("stored")["data"]["k"], "w");
}

#[tokio::test]
async fn changed_fields_are_their_changers_in_the_served_version() {
    let mut fixture = Fixture::new(TestStrategy {
        converts: true,
        ..TestStrategy::default()
    });
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "content": {"k": "v"}});
    fixture.create_object(object).await;
    fixture.context.field_manager = "another".to_owned();
    let change = patch(|object| object["content"]["w"] = json!("1"));
    let updated = fixture.updated("a", change).await;
    let managed = updated["metadata"]["managedFields"]
        .as_array()
        .expect("a list");
    let fields = |name: &str| {
        let entry = managed.iter().find(|entry| entry["manager"] == name);
        entry.expect("an entry")["fieldsV1"]["f:content"].clone()
    };
    assert_eq!(fields("tester"), json!({".": {}, "f:k": {}}));
    assert_eq!(fields("another"), json!({"f:w": {}}));
}

#[tokio::test]
async fn managed_fields_can_be_reset() {
    let fixture = Fixture::new(TestStrategy::default());
    for (name, value) in [("a", json!([{}])), ("b", json!([]))] {
        fixture.create(json!({ "name": name })).await;
        let reset = patch(|object| object["metadata"]["managedFields"] = value.clone());
        let updated = fixture.updated(name, reset).await;
        assert!(updated["metadata"]["managedFields"].is_null(), "{updated}");
    }
}
