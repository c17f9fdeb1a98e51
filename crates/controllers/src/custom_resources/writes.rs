//! Writes the status of definitions, and removes their finalizer.
//!
//! A write that fails is logged and repeated later. It does not hold up other definitions.

use jiff::Timestamp;
use ringwatch::storage::ListOptions;
use ringwatch_apiextensions::{CLEAN_UP, Definition, next_status};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::conditions::put_condition;
use ringwatch_registry::{
    DeleteOptions, FunctionUpdate, RequestContext, Store, UpdateOptions, UpdatedObject,
};
use serde_json::{Value, json};

use super::{ControllerState, CustomResources};

/// A state of a clean-up, as the condition `Terminating` tells it.
struct TerminatingState {
    status: &'static str,
    reason: &'static str,
    message: &'static str,
}

impl TerminatingState {
    const IN_PROGRESS: Self = Self {
        status: "True",
        reason: "InstanceDeletionInProgress",
        message: "CustomResource deletion is in progress",
    };
    const COMPLETED: Self = Self {
        status: "False",
        reason: "InstanceDeletionCompleted",
        message: "removed all instances",
    };
    const NEVER_ESTABLISHED: Self = Self {
        status: "False",
        reason: "NeverEstablished",
        message: "resource was never established",
    };
}

impl CustomResources {
    /// Writes the next change of each status that needs one. The change after it follows once this one is seen, when
    /// what it says is served.
    pub(super) async fn write_statuses(&self, state: &mut ControllerState) {
        let names: Vec<String> = state.definitions.keys().cloned().collect();
        for name in names {
            let definition = &state.definitions[&name];
            let all = state.definitions.values();
            if definition.is_terminating() || !state.retries.is_due(&name, self.clock.now()) {
                continue;
            }
            if next_status(definition, all, self.clock.wall()).is_none() {
                state.retries.forget(&name);
                continue;
            }
            let mut change = FunctionUpdate::new(|object| {
                let definition = Definition::new(object.clone());
                let all = state.definitions.values();
                if let Some(next) = next_status(&definition, all, self.clock.wall()) {
                    *object = next;
                }
                Ok(())
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

    /// Deletes the objects of a definition, and removes its finalizer if it has none left. The condition `Terminating`
    /// tells how far this is.
    pub(super) async fn clean_up(&self, name: &str, objects: Option<Store>) -> Result<(), Error> {
        let mut change = FunctionUpdate::new(|object| {
            set_terminating(object, &TerminatingState::IN_PROGRESS, self.clock.wall());
            Ok(())
        });
        self.update(name, "status", &mut change).await?;
        if let Some(store) = objects {
            let context = RequestContext::of_server(&self.clock);
            let options = DeleteOptions::default();
            store
                .delete_collection(&context, "", options, ListOptions::default())
                .await?;
            let left = store.list("", ListOptions::default()).await?;
            if !left.items.is_empty() {
                return Ok(());
            }
        }
        let mut change = FunctionUpdate::new(|object| {
            let state = if Definition::new(object.clone()).has("Established") {
                &TerminatingState::COMPLETED
            } else {
                &TerminatingState::NEVER_ESTABLISHED
            };
            set_terminating(object, state, self.clock.wall());
            let finalizers = object.pointer_mut("/metadata/finalizers");
            if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
                finalizers.retain(|it| it != CLEAN_UP);
            }
            Ok(())
        });
        self.update(name, "status", &mut change).await.map(drop)
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
        let context = RequestContext::of_server(&self.clock).on_subresource(subresource);
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
}

fn set_terminating(object: &mut Value, state: &TerminatingState, now: Timestamp) {
    let condition = json!({
        "type": "Terminating",
        "status": state.status,
        "lastTransitionTime": format_time(now),
        "reason": state.reason,
        "message": state.message,
    });
    put_condition(object, condition);
}
