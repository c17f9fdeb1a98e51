//! Calls admission and the write guard at the points of a write where kube-apiserver does.

use async_trait::async_trait;
use ringwatch::meta::Object;
use ringwatch::storage::{DeletionCheck, Rejection};
use ringwatch_apimachinery::accessor::text;
use ringwatch_apimachinery::{Error, FieldError};
use serde_json::Value;

use super::Store;
use super::incoming::deduplicate_owners;
use super::read::tree_of;
use crate::RequestContext;
use crate::{Operation, Request};

/// The words about repeated owners that came with mutating admission.
const AFTER_ADMISSION: &str = " after mutating admission happens";

/// The parts of a write that all calls of admission get.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) context: &'a RequestContext,
    pub(super) namespace: &'a str,
    pub(super) dry_run: bool,
}

/// A call of a subresource whose object is of another kind than the resource's objects, such as a `Scale`.
#[derive(Clone, Copy, Debug)]
pub struct SubresourceCall<'a> {
    /// The namespace of the resource's object; empty if it has none.
    pub namespace: &'a str,
    /// The name of the resource's object.
    pub name: &'a str,
    /// The operation that admission sees.
    pub operation: Operation,
    /// The subresource's object before an update.
    pub old: Option<&'a Value>,
    /// True if nothing is to be stored.
    pub dry_run: bool,
}

impl Store {
    /// Returns the store without admission, for writes that admission has already seen as a request to a subresource of
    /// another kind, such as an eviction.
    #[must_use]
    pub fn admitted(&self) -> Self {
        Self {
            admission: None,
            ..self.clone()
        }
    }

    /// Runs mutating and validating admission on the object of a subresource that is of another kind than the
    /// resource's objects, or on the options of a connection.
    ///
    /// # Errors
    /// The refusal of an admission plugin or webhook.
    pub async fn admit_other(
        &self,
        context: &RequestContext,
        call: SubresourceCall<'_>,
        object: &mut Value,
    ) -> Result<(), Error> {
        let request = Request {
            context,
            operation: call.operation,
            resource: &self.resource,
            namespace: call.namespace,
            name: call.name,
            old: call.old,
            dry_run: call.dry_run,
        };
        self.ask_to_admit(&request, object).await?;
        deduplicate_owners(context, AFTER_ADMISSION, object);
        self.ask_to_validate(&request, object).await
    }

    /// Runs mutating admission and the guard on a new object. Returns true if a webhook or a policy has changed it.
    pub(super) async fn admit_new(
        &self,
        write: Write<'_>,
        object: &mut Value,
    ) -> Result<bool, Error> {
        let name = text(object, "name").to_owned();
        let request = self.request(write, Operation::Create, &name, None);
        let is_changed = self.ask_to_admit(&request, object).await?;
        deduplicate_owners(write.context, AFTER_ADMISSION, object);
        self.guard(&request, object).await?;
        Ok(is_changed)
    }

    /// Runs validating admission on a new object that passed the strategy.
    pub(super) async fn validate_new(&self, write: Write<'_>, object: &Value) -> Result<(), Error> {
        let name = text(object, "name");
        let request = self.request(write, Operation::Create, name, None);
        self.ask_to_validate(&request, object).await
    }

    /// Runs mutating admission and the guard on an updated object. Returns true if a webhook or a policy has changed
    /// it.
    pub(super) async fn admit_change(
        &self,
        write: Write<'_>,
        name: &str,
        object: &mut Value,
        old: &Value,
    ) -> Result<bool, Error> {
        let request = self.request(write, Operation::Update, name, Some(old));
        let is_changed = self.ask_to_admit(&request, object).await?;
        deduplicate_owners(write.context, AFTER_ADMISSION, object);
        self.guard(&request, object).await?;
        Ok(is_changed)
    }

    /// Runs validating admission on an updated object that passed the strategy.
    pub(super) async fn validate_change(
        &self,
        write: Write<'_>,
        name: &str,
        object: &Value,
        old: &Value,
    ) -> Result<(), Error> {
        let request = self.request(write, Operation::Update, name, Some(old));
        self.ask_to_validate(&request, object).await
    }

    /// Runs admission for a deletion. `name` is the name in the request.
    pub(super) async fn admit_deletion(
        &self,
        write: Write<'_>,
        name: &str,
        old: &Value,
    ) -> Result<(), Error> {
        let request = self.request(write, Operation::Delete, name, Some(old));
        let mut nothing = Value::Null;
        self.ask_to_admit(&request, &mut nothing).await?;
        self.ask_to_validate(&request, &nothing).await
    }

    async fn ask_to_admit(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, Error> {
        match &self.admission {
            Some(admission) => admission.admit(request, object).await,
            None => Ok(false),
        }
    }

    async fn ask_to_validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        match &self.admission {
            Some(admission) => admission.validate(request, object).await,
            None => Ok(()),
        }
    }

    async fn guard(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        match &self.guard {
            Some(guard) => guard.check(request, object).await,
            None => Ok(()),
        }
    }

    /// Returns what the guard says is wrong with an object, which is new if there is no old one.
    pub(super) async fn wrong_for_guard(
        &self,
        write: Write<'_>,
        name: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<FieldError>, Error> {
        match &self.guard {
            Some(guard) => {
                let request = self.written(write, name, old);
                guard.wrong_fields(&request, object).await
            }
            None => Ok(Vec::new()),
        }
    }

    /// Runs the guard on an object that passed the strategy; it is new if there is no old one.
    pub(super) async fn guard_valid(
        &self,
        write: Write<'_>,
        name: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Error> {
        match &self.guard {
            Some(guard) => {
                let request = self.written(write, name, old);
                guard.check_valid(&request, object).await
            }
            None => Ok(()),
        }
    }

    /// Returns the request of a creation, or of an update if there is an old object.
    fn written<'a>(
        &'a self,
        write: Write<'a>,
        name: &'a str,
        old: Option<&'a Value>,
    ) -> Request<'a> {
        let operation = match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        };
        self.request(write, operation, name, old)
    }

    fn request<'a>(
        &'a self,
        write: Write<'a>,
        operation: Operation,
        name: &'a str,
        old: Option<&'a Value>,
    ) -> Request<'a> {
        Request {
            context: write.context,
            operation,
            resource: &self.resource,
            namespace: write.namespace,
            name,
            old,
            dry_run: write.dry_run,
        }
    }
}

/// Runs admission on an object inside its deletion from the storage, with its content at that time.
pub(super) struct AdmittedDeletion<'a> {
    pub(super) store: &'a Store,
    pub(super) write: Write<'a>,
    pub(super) name: &'a str,
}

#[async_trait]
impl DeletionCheck for AdmittedDeletion<'_> {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        if self.store.admission.is_none() {
            return Ok(());
        }
        let old = tree_of(existing).await?;
        self.store
            .admit_deletion(self.write, self.name, &old)
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ringwatch::storage::ListOptions;
    use ringwatch_apimachinery::accessor::{ZERO_TIME, set};
    use serde_json::json;

    use super::*;
    use crate::Admission;
    use crate::testing::{Fixture, Put, TestStrategy, config_map, patch};
    use crate::{CreateOptions, DeleteOptions, UpdateOptions};

    /// An admission that notes its calls among those of the strategy, and refuses one step.
    #[derive(Debug)]
    struct Noting {
        strategy: Arc<TestStrategy>,
        calls: Mutex<Vec<String>>,
        refuses: &'static str,
        /// True if it changes objects as a webhook does, and not as a plugin of the server.
        is_webhook: bool,
    }

    impl Noting {
        fn note(
            &self,
            step: &'static str,
            request: &Request<'_>,
            object: &Value,
        ) -> Result<(), Error> {
            self.strategy.calls.lock().expect("sound").push(step);
            let operation = request.operation.name();
            let dry = if request.dry_run { " dry" } else { "" };
            let old = request.old.map_or(&Value::Null, |old| &old["data"]["k"]);
            let calls = format!(
                "{step} {operation} {:?}{dry} {old} -> {}",
                request.name, object["data"]["k"]
            );
            self.calls.lock().expect("sound").push(calls);
            if step == self.refuses {
                return Err(request.forbid(object, "no"));
            }
            Ok(())
        }

        fn take_calls(&self) -> Vec<String> {
            std::mem::take(&mut self.calls.lock().expect("sound"))
        }
    }

    #[async_trait]
    impl Admission for Noting {
        async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, Error> {
            self.note("admit", request, object)?;
            if !object.is_null() {
                object["data"]["k"] = json!("admitted");
            }
            Ok(self.is_webhook)
        }

        async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
            self.note("agree", request, object)
        }
    }

    fn fixture(strategy: TestStrategy, refuses: &'static str) -> (Fixture, Arc<Noting>) {
        changed_fixture(strategy, refuses, false)
    }

    fn changed_fixture(
        strategy: TestStrategy,
        refuses: &'static str,
        is_webhook: bool,
    ) -> (Fixture, Arc<Noting>) {
        let mut fixture = Fixture::new(strategy);
        let noting = Arc::new(Noting {
            strategy: Arc::clone(&fixture.strategy),
            calls: Mutex::default(),
            refuses,
            is_webhook,
        });
        fixture.store = fixture.store.with_admission(Arc::clone(&noting) as _);
        (fixture, noting)
    }

    #[tokio::test]
    async fn plugins_change_objects_before_the_strategy_and_judge_them_after_it() {
        let (fixture, noting) = fixture(TestStrategy::default(), "");
        let created = fixture.store.create(
            &fixture.context,
            "ns",
            config_map(json!({"name": "a"})),
            &CreateOptions { dry_run: true },
        );
        created.await.expect("agreed");
        assert_eq!(
            fixture.strategy.take_calls(),
            [
                "default",
                "admit",
                "prepare_for_create",
                "validate",
                "warnings_on_create",
                "canonicalize",
                "agree",
            ]
        );
        assert_eq!(
            noting.take_calls(),
            [
                r#"admit CREATE "a" dry null -> "v""#,
                r#"agree CREATE "a" dry null -> "admitted""#
            ]
        );
        let created = fixture.create(json!({"generateName": "a-"})).await;
        assert_eq!(created["data"]["k"], "admitted");
        let calls = noting.take_calls();
        assert!(calls[0].starts_with(r#"admit CREATE "" null"#), "{calls:?}");
        assert!(calls[1].starts_with(r#"agree CREATE "a-"#), "{calls:?}");
    }

    #[tokio::test]
    async fn only_what_webhooks_and_policies_have_changed_is_prepared_to_be_stored() {
        for is_webhook in [false, true] {
            let (fixture, _) = changed_fixture(TestStrategy::default(), "", is_webhook);
            let is_prepared = || {
                let calls = fixture.strategy.take_calls();
                calls.contains(&"prepare_to_store")
            };
            let (store, context) = (&fixture.store, &fixture.context);
            for metadata in [json!({"name": "a"}), json!({"generateName": "b-"})] {
                let (object, options) = (config_map(metadata), CreateOptions::default());
                let created = store.create(context, "ns", object, &options);
                created.await.expect("agreed");
                assert_eq!(is_prepared(), is_webhook);
            }
            let mut put = patch(|object| object["data"]["k"] = json!("put"));
            let options = UpdateOptions::default();
            let updated = store.update(context, "ns", "a", &mut put, &options);
            updated.await.expect("agreed");
            assert_eq!(is_prepared(), is_webhook);
        }
    }

    /// An admission that sets a zero time of deletion as a webhook may.
    #[derive(Debug)]
    struct Dating;

    #[async_trait]
    impl Admission for Dating {
        async fn admit(&self, _: &Request<'_>, object: &mut Value) -> Result<bool, Error> {
            set(object, "deletionTimestamp", ZERO_TIME);
            Ok(true)
        }

        async fn validate(&self, _: &Request<'_>, _: &Value) -> Result<(), Error> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn no_object_is_being_deleted_from_its_creation_on() {
        let mut fixture = Fixture::new(TestStrategy::default());
        fixture.store = fixture.store.with_admission(Arc::new(Dating));
        let created = fixture.create(json!({"name": "a"})).await;
        assert_eq!(created["metadata"].get("deletionTimestamp"), None);
        assert_eq!(fixture.stored("a").await, Some(created));
    }

    #[tokio::test]
    async fn plugins_are_asked_about_every_attempt_of_an_update() {
        let (fixture, noting) = fixture(TestStrategy::default(), "");
        fixture.create(json!({"name": "a"})).await;
        noting.take_calls();
        let (store, context) = (&fixture.store, &fixture.context);
        let mut object = config_map(json!({"name": "a"}));
        object["data"]["k"] = json!("put");
        let options = UpdateOptions::default();
        let mut put = Put(object);
        let updated = store.update(context, "ns", "a", &mut put, &options);
        updated.await.expect("agreed");
        let both = [
            r#"admit UPDATE "a" "admitted" -> "put""#,
            r#"agree UPDATE "a" "admitted" -> "admitted""#,
        ];
        assert_eq!(noting.take_calls(), both);

        // A patch finds that somebody else has written since it was read.
        let mut written = false;
        let other = fixture.store.admitted();
        let mut patched = patch(|object| {
            object["data"] = json!({"k": "put", "other": "patched"});
        });
        let mut racing = Racing {
            inner: &mut patched,
            store: &other,
            written: &mut written,
        };
        let updated = store.update(context, "ns", "a", &mut racing, &options);
        updated.await.expect("agreed");
        assert_eq!(
            noting.take_calls(),
            [
                r#"admit UPDATE "a" "admitted" -> "put""#,
                r#"agree UPDATE "a" "admitted" -> "admitted""#,
                r#"admit UPDATE "a" "other" -> "put""#,
                r#"agree UPDATE "a" "other" -> "admitted""#,
            ]
        );
    }

    /// An admission during whose first call another request writes the object.
    struct Racing<'a> {
        inner: &'a mut dyn crate::UpdatedObject,
        store: &'a Store,
        written: &'a mut bool,
    }

    #[async_trait]
    impl crate::UpdatedObject for Racing<'_> {
        async fn updated(
            &mut self,
            context: &RequestContext,
            existing: Option<&Value>,
        ) -> Result<Value, Error> {
            if !std::mem::replace(self.written, true) {
                let mut other = patch(|object| object["data"]["k"] = json!("other"));
                let options = UpdateOptions::default();
                self.store
                    .update(context, "ns", "a", &mut other, &options)
                    .await?;
            }
            self.inner.updated(context, existing).await
        }
    }

    #[tokio::test]
    async fn plugins_are_asked_about_every_deletion() {
        let (fixture, noting) = fixture(TestStrategy::default(), "");
        for name in ["a", "b", "c"] {
            fixture.create(json!({"name": name})).await;
        }
        noting.take_calls();
        let (store, context) = (&fixture.store, &fixture.context);
        let options = DeleteOptions::default();
        let deleted = store.delete(context, "ns", "a", options.clone()).await;
        assert!(deleted.expect("agreed").finished);
        let one = |name: &str| {
            [
                format!("admit DELETE {name:?} \"admitted\" -> null"),
                format!("agree DELETE {name:?} \"admitted\" -> null"),
            ]
        };
        assert_eq!(noting.take_calls(), one("a"));
        let list = ListOptions::default();
        let deleted = store.delete_collection(context, "ns", options, list).await;
        assert_eq!(deleted.expect("agreed").items.len(), 2);
        assert_eq!(noting.take_calls(), [one(""), one("")].concat());
    }

    #[tokio::test]
    async fn what_a_plugin_refuses_is_not_done() {
        for refuses in ["admit", "agree"] {
            let strategy = TestStrategy {
                create_on_update: true,
                ..TestStrategy::default()
            };
            let (fixture, _) = fixture(strategy, refuses);
            let (store, context) = (&fixture.store, &fixture.context);
            let object = || config_map(json!({"name": "a"}));
            let options = CreateOptions::default();
            let error = store.create(context, "ns", object(), &options).await;
            let words = "configmaps \"a\" is forbidden: no";
            assert_eq!(error.expect_err("refused").to_string(), words);
            let options = UpdateOptions::default();
            let mut put = Put(object());
            let error = store.update(context, "ns", "a", &mut put, &options).await;
            assert_eq!(error.expect_err("refused").to_string(), words);

            let (name, admitted) = ("a", store.admitted());
            let options = CreateOptions::default();
            let created = admitted.create(context, "ns", object(), &options).await;
            created.expect("nobody is asked");
            let mut finalized = patch(|it| it["metadata"]["finalizers"] = json!(["x/y"]));
            for finalizers in [false, true] {
                if finalizers {
                    let options = UpdateOptions::default();
                    let updated = admitted.update(context, "ns", name, &mut finalized, &options);
                    updated.await.expect("nobody is asked");
                }
                let options = DeleteOptions::default();
                let error = store.delete(context, "ns", name, options).await;
                assert_eq!(error.expect_err("refused").to_string(), words);
                let stored = fixture.stored("a").await.expect("it is still there");
                assert!(stored["metadata"]["deletionTimestamp"].is_null());
            }
        }
    }
}
