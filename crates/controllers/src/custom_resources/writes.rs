//! Writes the status of definitions, and removes their finalizer.
//!
//! A write that fails is logged and repeated later. It does not hold up other definitions.

use async_trait::async_trait;
use ringwatch::storage::ListOptions;
use ringwatch_apiextensions::{CLEAN_UP, Definition, accept};
use ringwatch_apimachinery::{Error, User};
use ringwatch_registry::{DeleteOptions, RequestContext, Store, UpdateOptions, UpdatedObject};
use serde_json::Value;

use super::{ControllerState, CustomResources};

/// The field manager of writes of definitions' status.
const MANAGER: &str = "kube-apiserver";

impl CustomResources {
    /// Writes the status of definitions whose names are accepted, or refused, now.
    pub(super) async fn accept_names(&self, state: &mut ControllerState) {
        let names: Vec<String> = state.definitions.keys().cloned().collect();
        for name in names {
            let definition = &state.definitions[&name];
            let all = state.definitions.values();
            if definition.is_terminating() || !state.retries.is_due(&name, self.clock.now()) {
                continue;
            }
            if accept(definition, all, self.clock.wall()).is_none() {
                state.retries.forget(&name);
                continue;
            }
            let mut change = DefinitionChange(|object: &Value| {
                let definition = Definition::new(object.clone());
                accept(&definition, state.definitions.values(), self.clock.wall())
            });
            match self.update(&name, "status", &mut change).await {
                Ok(changed) => {
                    state.retries.forget(&name);
                    state.definitions.extend(changed.map(|it| (name, it)));
                }
                Err(error) => self.try_later(state, &name, &error),
            }
        }
    }

    /// Deletes the objects of a definition, and removes its finalizer if it has none left.
    pub(super) async fn clean_up(&self, name: &str, objects: Option<Store>) -> Result<(), Error> {
        if let Some(store) = objects {
            let context = self.context("");
            let options = DeleteOptions::default();
            store
                .delete_collection(&context, "", options, ListOptions::default())
                .await?;
            let left = store.list("", ListOptions::default()).await?;
            if !left.items.is_empty() {
                return Ok(());
            }
        }
        let mut change = DefinitionChange(|object: &Value| {
            let mut next = object.clone();
            let finalizers = next.pointer_mut("/metadata/finalizers");
            let finalizers = finalizers.and_then(Value::as_array_mut)?;
            finalizers.retain(|it| it != CLEAN_UP);
            Some(next)
        });
        self.update(name, "", &mut change).await.map(drop)
    }

    pub(super) fn try_later(&self, state: &mut ControllerState, name: &str, error: &Error) {
        let pause = state.retries.failed(name, self.clock.now());
        tracing::warn!(
            %error,
            definition = name,
            seconds = pause.as_secs(),
            "a definition cannot be written or cleaned up, and is tried again later"
        );
    }

    /// Changes a definition; `None` if it is gone.
    async fn update(
        &self,
        name: &str,
        subresource: &str,
        change: &mut dyn UpdatedObject,
    ) -> Result<Option<Definition>, Error> {
        let context = self.context(subresource);
        let options = UpdateOptions::default();
        let updated = self
            .definitions
            .update(&context, "", name, change, &options);
        match updated.await {
            Ok((object, _)) => self.read(&object).map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn context(&self, subresource: &str) -> RequestContext {
        let user = User::default();
        let mut context = RequestContext::new(user, MANAGER.to_owned(), self.clock.clone());
        subresource.clone_into(&mut context.subresource);
        context
    }
}

/// A change of a definition as it is when it is written; nothing if there is nothing to change.
struct DefinitionChange<F>(F);

#[async_trait]
impl<F: Fn(&Value) -> Option<Value> + Send> UpdatedObject for DefinitionChange<F> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing =
            existing.ok_or_else(|| Error::Internal("an update of nothing".to_owned()))?;
        Ok((self.0)(existing).unwrap_or_else(|| existing.clone()))
    }
}
